import { LayoutError, StoredDataError } from '../delay-queue.errors.js';
import { decodeBackoff, encodeBackoff } from './backoff.js';
import type { Backoff } from './backoff.js';
import { decodeOccurrence, decodeZoned, encodeOccurrence } from './occurrence-header.js';
import type { OccurrenceHeader } from './occurrence-header.js';
import type { PayloadMark } from './payloads.js';
import type { ZonedMoment } from './wall-clock.js';

/** What a job carries besides its payload. Only what differs from the queue's settings is stored. */
export interface JobHeader {
  attempts?: number;
  backoff?: Backoff;
  timeoutMs?: number;
  keepExpired?: boolean;
  context?: Readonly<Record<string, string>>;
  /** What the tracing part carries from the enqueue to each run. */
  trace?: Readonly<Record<string, string>>;
  /** Only of an occurrence of a schedule. */
  occurrence?: OccurrenceHeader;
  /** Only of a job at a local time. */
  zoned?: ZonedMoment;
  /** Name of its group. */
  group?: string;
  /** Stored fields that only a newer library can read. Who writes the header writes them back. */
  unread?: Readonly<Record<string, unknown>>;
}

export interface Envelope {
  /** Server time in ms. */
  readonly enqueuedAt: number;
  /** Server time in ms: as asked for at enqueue or by the last reschedule; retries and snoozes do not move it. */
  readonly dueAt: number;
  readonly expiresAt: number | undefined;
  readonly header: JobHeader;
  /** 9 is the most urgent. */
  readonly priority: number;
  /** How the payload was written; undefined: as plain JSON. */
  readonly mark: PayloadMark | undefined;
  /** The encoded payload. */
  readonly body: string;
}

/** Version of the stored layout of a job whose payload is plain JSON. lib/lua/shared/envelope.lua writes the same. */
const VERSION = '1';
/** Version with a mark in the header. Readers that know no marks know no such version, and leave the job alone. */
const MARKED = '2';
const TIMES_FROM = 2;
/** A time is seven digits of base 79, from `,` on: lib/lua/shared/envelope.lua tells why. */
const DIGITS = 7;
/** And so is a place, of a job that has a group or a priority. */
const PLACE_DIGITS = 9;
const BASE = 79;
const ZERO = ','.charCodeAt(0);
const EMPTY: JobHeader = Object.freeze({});

/** The part of an envelope that TypeScript writes; the server puts version and times before it. */
export function encodeContent(header: JobHeader, body: string, mark?: PayloadMark): string {
  const { attempts, backoff, timeoutMs, keepExpired, context, trace, occurrence, zoned, group, unread } = header;
  const isDefault = attempts === undefined && backoff === undefined && timeoutMs === undefined && !keepExpired;
  const isPlain = isDefault && !context && !trace && !occurrence && !zoned && group === undefined && !unread;
  if (!mark && isPlain) return `\n${body}`;
  const fields = {
    ...unread,
    a: attempts,
    b: backoff && encodeBackoff(backoff),
    t: timeoutMs,
    k: keepExpired ? 1 : undefined,
    c: context,
    w: trace ?? unread?.['w'],
    s: occurrence ? encodeOccurrence(occurrence) : unread?.['s'],
    l: zoned ? [zoned.local, zoned.timeZone, zoned.at, zoned.ambiguous] : unread?.['l'],
    g: group,
  };
  if (!mark) return `${JSON.stringify(fields)}\n${body}`;
  const { codec, bytes, inflated } = mark;
  return `${MARKED}${JSON.stringify({ ...fields, e: codec, y: bytes, z: inflated })}\n${body}`;
}

/** The same content as one occurrence of its schedule. */
export function contentOfOccurrence(content: string, occurrence: OccurrenceHeader): string {
  const bodyFrom = content.indexOf('\n');
  const version = content.startsWith(MARKED) ? MARKED : '';
  const fields = content.slice(version.length, bodyFrom);
  const header = { ...(fields === '' ? {} : JSON.parse(fields)), s: encodeOccurrence(occurrence) };
  return `${version}${JSON.stringify(header)}${content.slice(bodyFrom)}`;
}

/** What a call sends of a payload: the script has not written times before it yet. */
export function bodyOf(content: string): Pick<Envelope, 'body' | 'mark'> {
  const bodyFrom = content.indexOf('\n') + 1;
  const mark = content.startsWith(MARKED) ? markOf(parseFields(content.slice(MARKED.length, bodyFrom - 1))) : undefined;
  return { body: content.slice(bodyFrom), mark };
}

/**
 * @throws StoredDataError when this is no envelope
 * @throws LayoutError when a newer library wrote it
 */
export function decodeEnvelope(text: string): Envelope {
  if (text[0] !== VERSION && text[0] !== MARKED) {
    if (/^[3-9a-z][-xgy]/.test(text)) {
      throw new LayoutError(
        `The job was stored in layout "${text[0]}", this library reads up to ${MARKED}. Upgrade it.`,
      );
    }
    throw new StoredDataError('The stored job is not an envelope.');
  }
  const expires = text[1] === 'x' || text[1] === 'y';
  const timesTo = TIMES_FROM + DIGITS * (expires ? 3 : 2);
  const isPlaced = text[1] === 'g' || text[1] === 'y';
  const headerFrom = isPlaced ? timesTo + PLACE_DIGITS : timesTo;
  const bodyFrom = text.indexOf('\n', headerFrom) + 1;
  const enqueuedAt = timeAt(text, TIMES_FROM);
  const dueAt = timeAt(text, TIMES_FROM + DIGITS);
  const expiresAt = expires ? timeAt(text, TIMES_FROM + 2 * DIGITS) : undefined;
  if (bodyFrom === 0 || Number.isNaN(enqueuedAt) || Number.isNaN(dueAt) || Number.isNaN(expiresAt ?? 0)) {
    throw new StoredDataError('The stored job is not a complete envelope.');
  }
  const fields = bodyFrom - 1 === headerFrom ? NO_FIELDS : parseFields(text.slice(headerFrom, bodyFrom - 1));
  return {
    enqueuedAt,
    dueAt,
    expiresAt,
    header: fields === NO_FIELDS ? EMPTY : headerOf(fields),
    priority: isPlaced ? priorityAt(text, timesTo) : 0,
    mark: text[0] === MARKED ? markOf(fields) : undefined,
    body: text.slice(bodyFrom),
  };
}

/** Of a place, which is group * 16 + 9 - priority. */
function priorityAt(text: string, from: number): number {
  const place = timeAt(text, from, PLACE_DIGITS);
  return Number.isSafeInteger(place) ? Math.max(0, 9 - (place % 16)) : 0;
}

/** When a job is due that no run and no worker has put off since: whatever stands in the index. */
export function dueTimeIn(text: string): number {
  return timeAt(text, TIMES_FROM + DIGITS);
}

/** The number of the group (lib/job/place.ts) that an envelope names; 0 for one without, and for what is no envelope. */
export function groupNumberIn(text: string): number {
  const flag = text[1];
  if (flag !== 'g' && flag !== 'y') return 0;
  const place = timeAt(text, TIMES_FROM + DIGITS * (flag === 'y' ? 3 : 2), PLACE_DIGITS);
  return Number.isSafeInteger(place) ? Math.floor(place / 16) : 0;
}

/** The same without its place in the index of its queue; the name of its group stays. For a queue that may have no groups. */
export function withoutPlace(text: string): string {
  const flag = text[1];
  if (flag !== 'g' && flag !== 'y') return text;
  const timesTo = TIMES_FROM + DIGITS * (flag === 'y' ? 3 : 2);
  return text[0] + (flag === 'y' ? 'x' : '-') + text.slice(TIMES_FROM, timesTo) + text.slice(timesTo + PLACE_DIGITS);
}

function timeAt(text: string, from: number, digits = DIGITS): number {
  let ms = 0;
  for (let at = from; at < from + digits; at++) {
    const digit = text.charCodeAt(at) - ZERO;
    if (!(digit >= 0 && digit < BASE)) return NaN;
    ms = ms * BASE + digit;
  }
  return ms;
}

interface Fields {
  a?: unknown;
  b?: unknown;
  t?: unknown;
  k?: unknown;
  c?: unknown;
  w?: unknown;
  s?: unknown;
  l?: unknown;
  g?: unknown;
  e?: unknown;
  y?: unknown;
  z?: unknown;
}

const NO_FIELDS: Fields = Object.freeze({});
/** Fields whose other forms are refused, or mean nothing. */
const ALWAYS_READ: ReadonlySet<string> = new Set('abtkcgeyz');

function parseFields(text: string): Fields {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw unreadable(error);
  }
}

function headerOf(fields: Fields): JobHeader {
  try {
    const { a: attempts, t: timeoutMs, c: context, w: trace } = fields;
    if (!isCount(attempts) || !isCount(timeoutMs) || !(context === undefined || isTexts(context))) throw unreadable();
    const occurrence = fields.s === undefined ? undefined : decodeOccurrence(fields.s);
    const zoned = fields.l === undefined ? undefined : decodeZoned(fields.l);
    const read: Record<string, unknown> = { s: occurrence, l: zoned, w: isTexts(trace) };
    const unread = Object.entries(fields).filter(([name]) => !ALWAYS_READ.has(name) && !read[name]);
    return {
      attempts,
      backoff: fields.b === undefined ? undefined : decodeBackoff(fields.b),
      timeoutMs,
      keepExpired: fields.k === 1,
      context,
      // Nothing that only says where a job came from keeps it from running.
      trace: isTexts(trace) ? trace : undefined,
      ...(occurrence && { occurrence }),
      ...(zoned && { zoned }),
      ...(typeof fields.g === 'string' && { group: fields.g }),
      ...(unread.length > 0 && { unread: Object.fromEntries(unread) }),
    };
  } catch (error) {
    throw error instanceof StoredDataError ? error : unreadable(error);
  }
}

function isCount(value: unknown): value is number | undefined {
  return value === undefined || (Number.isSafeInteger(value) && (value as number) > 0);
}

function isTexts(value: unknown): value is Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((text) => typeof text === 'string');
}

function markOf({ e: codec, y: bytes, z: inflated }: Fields): PayloadMark {
  if (isOptional(codec, 'string') && isOptional(bytes, 'number') && isOptional(inflated, 'number')) {
    return { codec, bytes, inflated } as PayloadMark;
  }
  throw unreadable();
}

function isOptional(value: unknown, type: 'string' | 'number'): boolean {
  return value === undefined || typeof value === type;
}

function unreadable(cause?: unknown): StoredDataError {
  return new StoredDataError('The header of the stored job cannot be read.', { cause });
}
