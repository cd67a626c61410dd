/** Why a job became a dead letter. */
export type DeadReason = 'exhausted' | 'discarded' | 'leaseLost' | 'undecodable' | 'invalid' | 'expired';

/** The stored form of a job's last error. */
export interface ErrorRecord {
  name: string;
  message: string;
  stack?: string;
  /** ms of the worker's clock: for people, nothing is decided by it. */
  at: number;
  /** The span of the attempt that failed. */
  trace?: string;
}

// Stacks of every retry of every job once filled whole servers; these caps keep an error below the size of a page.
const NAME_MAX = 200;
const MESSAGE_MAX = 4_096;
const STACK_MAX = 8_192;

function text(read: () => string | undefined, max: number): string | undefined {
  try {
    const value = read();
    if (value === undefined || value === null) return undefined;
    const string = `${value}`;
    return string.length > max ? `${string.slice(0, max)}...` : string;
  } catch {
    return undefined; // A getter or toString that throws must not decide what becomes of the job.
  }
}

/** Describes whatever was thrown: an error, a string, undefined, an object with throwing getters. */
export function describeError(thrown: unknown): ErrorRecord {
  const isObject = typeof thrown === 'object' && thrown !== null;
  const error = thrown as Partial<Error>;
  return {
    name: (isObject && text(() => error.name, NAME_MAX)) || (isObject ? 'Error' : typeof thrown),
    message: (isObject ? text(() => error.message, MESSAGE_MAX) : text(() => `${thrown as string}`, MESSAGE_MAX)) ?? '',
    stack: isObject ? text(() => error.stack, STACK_MAX) : undefined,
    at: Date.now(),
  };
}

/** The stack of an error as it is logged. */
export function stackOf({ stack }: ErrorRecord): string | undefined {
  return stack;
}

export function encodeError(thrown: unknown, trace?: string): string {
  const record = describeError(thrown);
  return JSON.stringify(trace === undefined ? record : { ...record, trace });
}

/** `Name: message` in one short line, for logs. */
export function summarizeError(thrown: unknown): string {
  const { name, message } = describeError(thrown);
  return `${oneLine(name)}: ${oneLine(message)}`;
}

/** A text from outside, short enough for a line of a log and without what would end that or drive a terminal. */
export function oneLine(given: string): string {
  const line = (given.length > 1_000 ? given.slice(0, 1_000) : given).replace(/[\s\p{Cc}]+/gu, ' ');
  return line.length > 200 || given.length > 1_000 ? `${line.slice(0, 200)}...` : line;
}

/** @returns undefined for a text that is no record: it was stored by something else */
export function decodeError(stored: string): { reason: string; error: ErrorRecord | undefined } {
  const at = stored.indexOf('\n');
  const reason = at < 0 ? stored : stored.slice(0, at);
  try {
    const error: unknown = JSON.parse(stored.slice(at + 1));
    return { reason, error: typeof error === 'object' && error !== null ? recordOf(error) : undefined };
  } catch {
    return { reason, error: undefined };
  }
}

/** Whoever reads it relies on its types, whatever was stored. */
function recordOf({ name, message, stack, at, trace }: { [Field in keyof ErrorRecord]?: unknown }): ErrorRecord {
  return {
    name: typeof name === 'string' ? name : 'Error',
    message: typeof message === 'string' ? message : '',
    stack: typeof stack === 'string' ? stack : undefined,
    at: typeof at === 'number' ? at : NaN,
    trace: typeof trace === 'string' ? trace : undefined,
  };
}
