import { types } from 'node:util';
import { wallClock } from '../time-and-randomness.js';
import { shownWithoutValues, withoutValues } from './payload-values.js';

/** Why a job became a dead letter. */
export type DeadReason = 'exhausted' | 'discarded' | 'leaseLost' | 'undecodable' | 'invalid' | 'expired';

/** What is kept of an error. */
export interface ErrorDescription {
  name: string;
  message: string;
  stack?: string;
  /** What it was caused by; of a chain several, one in another. */
  cause?: ErrorDescription;
  /** Of an AggregateError. */
  errors?: ErrorDescription[];
}

/** The stored form of a job's error. */
export interface ErrorRecord extends ErrorDescription {
  /** ms of the worker's clock: for people, nothing is decided by it. */
  at: number;
  /** The span of the attempt that failed. */
  trace?: string;
}

interface Bounds {
  /** Characters of the message and of the stack: of what was thrown, and of what lies behind it. */
  readonly message: readonly [first: number, behind: number];
  readonly stack: readonly [first: number, behind: number];
  /** How deep, and how many in all, what lies behind it is followed. */
  readonly depth: number;
  readonly most: number;
  /** Characters in all. */
  readonly room: number;
}

// Stacks of every retry of every job once filled whole servers; these caps keep an error to about the size of a page, and
// those of the attempts before to a few lines.
const WHOLE: Bounds = { message: [4_096, 1_024], stack: [8_192, 2_048], depth: 5, most: 10, room: 16_384 };
const BRIEF: Bounds = { message: [500, 200], stack: [0, 0], depth: 2, most: 3, room: 1_200 };
const NAME_MAX = 200;
const HEAD_MAX = 500;
/** Of the list of an AggregateError, and of the complaints of a validation. */
const LIST_MAX = 5;
const COMPLAINTS_MAX = 20;

/** Errors of ours whose cause may quote a payload: it is for the code that catches them, and is neither stored nor logged. */
const QUOTING = new Set(['ERR_DQ_PAYLOAD', 'ERR_DQ_PAYLOAD_TOO_LARGE', 'ERR_DQ_STORED_DATA', 'ERR_DQ_UNKNOWN_CODEC']);

/** A getter, proxy or toString that throws must not decide what becomes of the job. */
function reading<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Describes one thing that was thrown, with what lies behind it. */
class Describer {
  readonly #seen = new Set<unknown>();
  #room: number;
  #left: number;

  constructor(
    private readonly bounds: Bounds,
    private readonly payloads: readonly unknown[] = [],
    /** Of texts of errors, too, not only of what is none. */
    private readonly hidesAll = false,
  ) {
    this.#room = bounds.room;
    this.#left = bounds.most;
  }

  describe(thrown: unknown, depth = 0): ErrorDescription {
    this.#seen.add(thrown);
    const { bounds } = this;
    const behind = depth === 0 ? 0 : 1;
    const isObject = typeof thrown === 'object' && thrown !== null;
    const error = thrown as Partial<Error>;
    const isAnError = isObject && isError(thrown);
    // Before anything is cut: of a value that is cut in its middle, nothing tells that it is one.
    const shown = (text: string) => (this.hidesAll && isAnError ? withoutValues(text, this.payloads) : text);
    const name =
      (isObject && this.#text(() => nameOf(error, this.payloads), NAME_MAX, shown)) ||
      (isAnError ? 'Error' : typeof thrown);
    const message = this.#text(() => messageOf(thrown, this.payloads), bounds.message[behind], shown) ?? '';
    const stackOfError = () => stackTextOf(error, name, message, shown);
    const stack = isObject ? this.#text(stackOfError, bounds.stack[behind]) : undefined;
    const described: ErrorDescription = { name, message, ...(stack && { stack }) };
    if (!isObject || depth >= bounds.depth) return described;
    const { cause, errors } = this.#behind(error as { cause?: unknown; errors?: unknown }, depth);
    if (cause) described.cause = cause;
    if (errors && errors.length > 0) described.errors = errors;
    return described;
  }

  #behind(error: { code?: unknown; cause?: unknown; errors?: unknown }, depth: number) {
    if (QUOTING.has(reading(() => error.code) as string)) return {};
    const cause = reading(() => error.cause);
    const list = reading(() =>
      Array.isArray(error.errors) && isError(error) ? error.errors.slice(0, LIST_MAX) : undefined,
    );
    return {
      cause: cause === undefined || cause === null ? undefined : this.#next(cause, depth),
      errors: list?.map((one: unknown) => this.#next(one, depth)).filter((one) => one !== undefined),
    };
  }

  /** Undefined in a circle, and where there is too much. */
  #next(thrown: unknown, depth: number): ErrorDescription | undefined {
    if (this.#left === 0 || this.#room <= 0 || (typeof thrown === 'object' && this.#seen.has(thrown))) return undefined;
    this.#left--;
    return this.describe(thrown, depth + 1);
  }

  #text(read: () => string | undefined, most: number, shown = (text: string) => text): string | undefined {
    const max = Math.min(most, this.#room);
    if (max <= 0) return undefined;
    const string = reading(() => {
      const value = read();
      return value === undefined || value === null ? undefined : shown(`${value}`);
    });
    if (string === undefined) return undefined;
    const text = string.length > max ? `${string.slice(0, max)}...` : string;
    this.#room -= text.length;
    return text;
  }
}

function isError(thrown: object): boolean {
  return types.isNativeError(thrown) || typeof reading(() => (thrown as Partial<Error>).stack) === 'string';
}

/** A payload that is thrown may have a name, too. */
function nameOf(error: Partial<Error>, payloads: readonly unknown[]): string | undefined {
  const { name } = error;
  return name === undefined || name === null || isError(error) ? name : withoutValues(`${name}`, payloads);
}

/** Of an error its message; of anything else, what it holds, without what the payload holds: that may be what was thrown. */
function messageOf(thrown: unknown, payloads: readonly unknown[]): string | undefined {
  if (typeof thrown === 'string') return withoutValues(thrown, payloads);
  if (thrown === undefined) return 'throw an Error, which says what failed and where';
  if (typeof thrown !== 'object' || thrown === null || !isError(thrown)) {
    return shownWithoutValues(thrown, payloads);
  }
  const { message } = thrown as Partial<Error>;
  const complaints = reading(() => complaintsOf(thrown)) ?? [];
  return complaints.length > 0 ? `${message}: ${complaints.join('; ')}` : message;
}

/** What a validation objects to. Nest's HttpException says "Bad Request Exception" and keeps the fields in its response. */
function complaintsOf(error: object): string[] {
  const { getStatus, getResponse } = error as { getStatus?: unknown; getResponse?: () => unknown };
  if (typeof getStatus !== 'function' || typeof getResponse !== 'function') return [];
  const response = getResponse.call(error) as { message?: unknown; errors?: unknown } | null;
  if (typeof response !== 'object' || response === null) return [];
  const lists = [response.message, response.errors].filter((list) => Array.isArray(list));
  return lists.flatMap((list) => list.slice(0, COMPLAINTS_MAX).flatMap(complaintOf));
}

/** A text; an issue with a path, as of zod; or an error of class-validator, whose value and target are the payload. */
function complaintOf(complaint: unknown): string[] {
  if (typeof complaint === 'string') return [complaint];
  const { message, path, constraints } = (complaint ?? {}) as {
    message?: unknown;
    path?: unknown;
    constraints?: unknown;
  };
  if (typeof constraints === 'object' && constraints !== null) {
    return Object.values(constraints).filter((text): text is string => typeof text === 'string');
  }
  if (typeof message !== 'string') return [];
  return [Array.isArray(path) && path.length > 0 ? `${path.join('.')}: ${message}` : message];
}

/** V8 writes the head of a stack before a constructor can set the name; and a long message would leave no room for lines. */
function stackTextOf(
  error: Partial<Error>,
  name: string,
  message: string,
  shown: (text: string) => string,
): string | undefined {
  const given = error.stack;
  if (typeof given !== 'string') return undefined;
  const stack = shown(given);
  const start = `Error: ${message}`;
  const text = name !== 'Error' && stack.startsWith(start) ? `${name}: ${message}${stack.slice(start.length)}` : stack;
  // Of a message of line breaks alone, `\s` instead would look from each of them to the end: a minute of 200,000 of them.
  const lines = text.search(/\n[ \t]+at /);
  return lines > HEAD_MAX ? `${text.slice(0, HEAD_MAX)}...${text.slice(lines)}` : text;
}

/**
 * Describes whatever was thrown: an error with what caused it, a string, undefined, an object with throwing getters.
 *
 * @param payloads of the job: their values are left out of what is no error
 */
export function describeError(thrown: unknown, payloads?: readonly unknown[]): ErrorRecord {
  return { ...new Describer(WHOLE, payloads).describe(thrown), at: wallClock() };
}

export function encodeError(thrown: unknown, trace?: string, payloads?: readonly unknown[]): string {
  const record = describeError(thrown, payloads);
  return JSON.stringify(trace === undefined ? record : { ...record, trace });
}

/** The same of an attempt that failed: a second line holds it in short, and stays when later attempts add theirs. */
export function encodeFailure(thrown: unknown, trace?: string, payloads?: readonly unknown[]): string {
  const brief = { ...new Describer(BRIEF, payloads).describe(thrown), at: wallClock() };
  return `${encodeError(thrown, trace, payloads)}\n${JSON.stringify(brief)}`;
}

/** `Name: message` and what caused it in one short line, for logs. */
export function summarizeError(thrown: unknown, payloads?: readonly unknown[]): string {
  return summaryOf(new Describer(BRIEF, payloads).describe(thrown), 200);
}

/**
 * The two of code that was given a payload to look at, such as a guard or a schema: its errors quote what they refuse, so
 * values of the payload are left out of their texts as well. A handler's error is a text that its author wrote for people.
 */
export function describeRefusal(thrown: unknown, payload: unknown): ErrorRecord {
  return { ...new Describer(WHOLE, [payload], true).describe(thrown), at: wallClock() };
}

export function summarizeRefusal(thrown: unknown, payload: unknown): string {
  return summaryOf(new Describer(BRIEF, [payload], true).describe(thrown), 200);
}

function summaryOf({ name, message, cause, errors }: ErrorDescription, most: number): string {
  const own = message === '' ? oneLine(name, most) : `${oneLine(name, most)}: ${oneLine(message, most)}`;
  const among = errors ? ` [${errors.map((one) => summaryOf(one, 100)).join('; ')}]` : '';
  return `${own}${among}${cause ? `, caused by ${summaryOf(cause, 100)}` : ''}`;
}

/** The stack of an error as it is logged: with those of what caused it, and nothing that drives a terminal. */
export function stackOf(error: ErrorDescription): string | undefined {
  return error.stack === undefined ? undefined : stackLines(error).join('\n');
}

function stackLines({ name, message, stack, cause, errors = [] }: ErrorDescription): string[] {
  const own = (stack ?? `${name}: ${message}`).split('\n').map((line) => line.replace(/[\p{Cc}\u2028\u2029]+/gu, ' '));
  const indented = (label: string, one: ErrorDescription) =>
    stackLines(one).map((line, index) => (index === 0 ? `  [${label}]: ${line}` : `  ${line}`));
  return [
    ...own,
    ...(cause ? indented('cause', cause) : []),
    ...errors.flatMap((one, index) => indented(`errors ${index}`, one)),
  ];
}

/** A text from outside, short enough for a line of a log and without what would end that or drive a terminal. */
export function oneLine(given: string, most = 200): string {
  const line = (given.length > 1_000 ? given.slice(0, 1_000) : given).replace(/[\s\p{Cc}]+/gu, ' ');
  return line.length > most || given.length > 1_000 ? `${line.slice(0, most)}...` : line;
}

export interface StoredErrors {
  reason: string;
  error: ErrorRecord | undefined;
  /** Of the last attempts that failed, in short, the newest last. */
  attempts: ErrorRecord[];
}

/**
 * @param stored a line with the reason, one with the last error, and one for each of the last attempts, the newest first
 * @returns no error for a text that is no record: it was stored by something else
 */
export function decodeError(stored: string): StoredErrors {
  const [reason = '', last = '', ...attempts] = stored.split('\n');
  const records = attempts.map(recordIn).filter((record) => record !== undefined);
  return { reason, error: recordIn(last), attempts: records.reverse() };
}

function recordIn(line: string): ErrorRecord | undefined {
  const error = reading(() => JSON.parse(line) as unknown);
  if (typeof error !== 'object' || error === null) return undefined;
  const { at, trace } = error as { [Field in keyof ErrorRecord]?: unknown };
  return {
    ...descriptionIn(error, 0),
    at: typeof at === 'number' ? at : NaN,
    ...(typeof trace === 'string' && { trace }),
  };
}

/** The fields have the types that callers rely on, whatever was stored. */
function descriptionIn(stored: object, depth: number): ErrorDescription {
  const { name, message, stack, cause, errors } = stored as { [Field in keyof ErrorDescription]?: unknown };
  const inner = (one: unknown) =>
    depth < WHOLE.depth && typeof one === 'object' && one !== null ? descriptionIn(one, depth + 1) : undefined;
  const causedBy = inner(cause);
  const among = Array.isArray(errors) ? errors.map(inner).filter((one) => one !== undefined) : [];
  return {
    name: typeof name === 'string' ? name : 'Error',
    message: typeof message === 'string' ? message : '',
    ...(typeof stack === 'string' && { stack }),
    ...(causedBy && { cause: causedBy }),
    ...(among.length > 0 && { errors: among }),
  };
}
