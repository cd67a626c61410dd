import { types } from 'node:util';
import { DelayQueueError, PayloadError, PayloadTooLargeError } from '../delay-queue.errors.js';
import { quoted } from './duration.js';
import { forgetPromise } from './forget-promise.js';

export interface EncodeOptions {
  /** Named in errors. */
  queue: string;
  /** Most UTF-8 bytes of the encoded payload. */
  maxBytes: number;
  /** Hears what JSON changes without an error. */
  changes?: ChangesOfJson | undefined;
}

/** What somebody is told of whose payload JSON changes. */
export interface ChangesOfJson {
  /** A date, of which JSON makes a text. Undefined: nobody listens any more, and payloads with dates are encoded the fast way. */
  readonly date: ((queue: string, path: string) => void) | undefined;
  /**
   * An instance of a class with methods or getters, of which JSON keeps the fields alone. Called once for each class in a process.
   *
   * @param member the first of them, as code names it
   */
  readonly instance: (queue: string, path: string, ofClass: string, member: string) => void;
}

/** The text may quote the payload, and is left to whoever catches the error. */
const WHAT = 'what error.cause says';

// Far more than data needs, far less than the stack holds.
const MAX_DEPTH = 500;

// Encoding stops at so many times the limit; below that, the error gives the exact size. Without this bound a few big
// objects that are shared at every level of a structure would be written out until the process runs out of memory.
const HOPELESS = 8;

/**
 * Encodes as JSON, and refuses values that JSON would silently lose or change: BigInt, functions, symbols, NaN,
 * Infinity, Map, Set, binary data, promises, errors, invalid dates, cycles, and `undefined` anywhere but in a field of
 * an object. As in JSON, fields that are `undefined` are dropped, dates become ISO text, `toJSON()` is called, and
 * class instances keep their own fields.
 *
 * @throws PayloadError naming the path, such as `payload.items[3].price`
 * @throws PayloadTooLargeError
 */
export function encodePayload(payload: unknown, options: EncodeOptions): string {
  const { queue, maxBytes } = options;
  const text = encode(payload, options);
  // No character takes more than three bytes per UTF-16 unit, so short payloads need no counting.
  if (text.length * 3 > maxBytes) {
    const bytes = Buffer.byteLength(text);
    if (bytes > maxBytes) throw tooLarge(queue, `has ${bytes} bytes`, maxBytes);
  }
  return text;
}

/** The reverse of `encodePayload()`. Throws what `JSON.parse` throws. */
export function decodePayload(text: string): unknown {
  return JSON.parse(text);
}

function encode(payload: unknown, { queue, maxBytes, changes }: EncodeOptions): string {
  bytesLeft = maxBytes * HOPELESS;
  tellsOfDates = changes?.date !== undefined;
  tellsOfInstances = changes !== undefined;
  try {
    return isOrdinary(payload, 0) ? JSON.stringify(payload) : new Encoder(queue, maxBytes, changes).encode(payload);
  } catch (cause) {
    if (cause instanceof DelayQueueError) throw cause;
    // A getter or a proxy that throws.
    throw new PayloadError(`Queue "${queue}": payload could not be read: a getter or a proxy threw ${WHAT}.`, {
      cause,
    });
  }
}

// Counts down while a payload is checked: a text takes at least its length, anything else at least one byte.
let bytesLeft = 0;
/** Where a date stands knows only the slow way. */
let tellsOfDates = false;
/** The same of an instance; only the first of each class goes that way. */
let tellsOfInstances = false;
/** Prototypes that were looked at, also those of plain objects of another realm. */
const familiar = new WeakSet<object>();

/**
 * True for values that `JSON.stringify` encodes faithfully. The check never says why it refuses: without paths and a
 * list of parents it costs about as much as the encoding, and nearly all payloads pass. It finds a cycle by its depth.
 */
function isOrdinary(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
      return (bytesLeft -= value.length) >= 0;
    case 'boolean':
      return --bytesLeft >= 0;
    case 'number':
      return --bytesLeft >= 0 && Number.isFinite(value);
    case 'object':
      if (value === null) return --bytesLeft >= 0;
      break;
    default:
      return false;
  }
  if (depth > MAX_DEPTH || --bytesLeft < 0) return false;
  if (typeof (value as Partial<Jsonable>).toJSON === 'function') return isOrdinaryDate(value);
  if (Array.isArray(value)) {
    // A hole reads as undefined, which is not ordinary.
    for (let i = 0; i < value.length; i++) if (!isOrdinary(value[i], depth + 1)) return false;
    return true;
  }
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype) {
    if (tagOf(value) !== 'Object') return false;
    if (tellsOfInstances && prototype !== null && !familiar.has(prototype)) return false;
  }
  // `in` sees inherited fields too; they can only send a harmless object the slow way.
  for (const key in value) {
    const field = (value as Fields)[key];
    if (field !== undefined && !isOrdinary(field, depth + 1)) return false;
  }
  return true;
}

function isOrdinaryDate(value: object): boolean {
  return (
    !tellsOfDates &&
    types.isDate(value) &&
    !Number.isNaN(value.getTime()) &&
    (value as Partial<Jsonable>).toJSON === Date.prototype.toJSON
  );
}

type Fields = Record<string, unknown>;
type Jsonable = { toJSON(key: string): unknown };

/**
 * The slow way, for payloads that are not ordinary. It knows the path of each value and calls each `toJSON()` once.
 * Checking first and then calling `JSON.stringify` would call `toJSON()` twice and could store a value that was never
 * checked.
 */
class Encoder {
  readonly #parents: object[] = [];
  #bytesLeft: number;

  constructor(
    private readonly queue: string,
    private readonly maxBytes: number,
    private readonly changes: EncodeOptions['changes'],
  ) {
    this.#bytesLeft = maxBytes * HOPELESS;
  }

  encode(payload: unknown): string {
    const text = this.#write(payload, 'payload', '');
    if (text === undefined)
      throw this.#refusal('payload', 'is undefined. Send null or {} when there is nothing to say');
    return text;
  }

  /** Undefined when there is nothing to write. */
  #write(given: unknown, path: string, key: string): string | undefined {
    const value = this.#converted(given, path, key);
    this.#bytesLeft -= typeof value === 'string' ? value.length : 1;
    if (this.#bytesLeft < 0) {
      throw tooLarge(this.queue, `has more than ${this.maxBytes * HOPELESS} bytes`, this.maxBytes);
    }
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return JSON.stringify(value);
      case 'number':
        if (!Number.isFinite(value))
          throw this.#refusal(path, `is ${value}, which JSON turns into null. Send null or text`);
        return JSON.stringify(value);
      case 'undefined':
        return undefined;
      case 'bigint':
        throw this.#refusal(path, 'is a BigInt, which JSON does not know. Send it as text');
      case 'function':
      case 'symbol':
        throw this.#refusal(path, `is a ${typeof value}, which JSON drops. Send data alone`);
      default:
        return value === null ? 'null' : this.#writeObject(value as object, path);
    }
  }

  #writeObject(value: object, path: string): string {
    if (types.isNumberObject(value) || types.isStringObject(value) || types.isBooleanObject(value)) {
      return this.#write(value.valueOf(), path, '')!;
    }
    if (this.#parents.includes(value))
      throw this.#refusal(path, 'is one of the objects that it is part of: a cycle. Send an id instead');
    if (this.#parents.length > MAX_DEPTH) throw this.#refusal(path, `is nested more than ${MAX_DEPTH} levels deep`);
    this.#parents.push(value);
    const text = Array.isArray(value) ? this.#writeArray(value, path) : this.#writeFields(value as Fields, path);
    this.#parents.pop();
    return text;
  }

  #writeArray(items: readonly unknown[], path: string): string {
    const parts: string[] = [];
    for (let i = 0; i < items.length; i++) {
      const part = this.#write(items[i], `${path}[${i}]`, String(i));
      if (part === undefined)
        throw this.#refusal(`${path}[${i}]`, 'is undefined, which JSON turns into null. Send null or leave it out');
      parts.push(part);
    }
    return `[${parts.join(',')}]`;
  }

  #writeFields(fields: Fields, path: string): string {
    const keys = Object.keys(fields);
    const loss = whatIsLost(fields, keys.length === 0);
    if (loss !== undefined) throw this.#refusal(path, loss);
    if (this.changes) this.#lookAtClass(fields, path, this.changes);
    const parts: string[] = [];
    for (const key of keys) {
      const part = this.#write(fields[key], pathOf(path, key), key);
      if (part !== undefined) parts.push(`${JSON.stringify(key)}:${part}`);
    }
    return `{${parts.join(',')}}`;
  }

  #lookAtClass(value: object, path: string, changes: ChangesOfJson): void {
    const prototype: object | null = Object.getPrototypeOf(value);
    if (prototype === null || familiar.has(prototype)) return;
    familiar.add(prototype);
    const member = lostMember(prototype);
    if (member === undefined) return;
    const { constructor } = prototype;
    changes.instance(this.queue, path, typeof constructor === 'function' ? constructor.name : '', member);
  }

  #converted(value: unknown, path: string, key: string): unknown {
    if (typeof value !== 'object' || value === null) return value;
    // The toJSON() of a Buffer gives an array of numbers, four times its size, that no handler turns back.
    if (isBinary(value)) return value;
    if (types.isDate(value) && Number.isNaN(value.getTime())) throw this.#refusal(path, 'is an invalid Date');
    if (typeof (value as Partial<Jsonable>).toJSON !== 'function') return value;
    if (types.isDate(value)) this.changes?.date?.(this.queue, path);
    try {
      return (value as Jsonable).toJSON(key);
    } catch (cause) {
      throw this.#refusal(path, `could not be converted, its toJSON() threw ${WHAT}`, cause);
    }
  }

  #refusal(path: string, problem: string, cause?: unknown): PayloadError {
    return new PayloadError(`Queue "${this.queue}": ${path} ${problem}.`, { cause });
  }
}

/** For objects whose content is not in their fields, so that JSON writes `{}` or less than there is. */
function whatIsLost(value: object, withoutFields: boolean): string | undefined {
  if (isBinary(value)) return 'is binary data. Send it as text, such as buffer.toString("base64")';
  if (types.isMap(value)) return 'is a Map. Send Object.fromEntries(map) or [...map]';
  if (types.isSet(value)) return 'is a Set. Send [...set]';
  if (forgetPromise(value)) return 'is a Promise. Await it first';
  if (types.isNativeError(value) || value instanceof Error) return 'is an Error. Send its message as text';
  const tag = tagOf(value);
  if (tag !== 'Object' && withoutFields) return `is a ${tag}, which JSON turns into {}`;
  return undefined;
}

/** A method or a getter that objects with this prototype have, and what JSON makes of them has not. */
function lostMember(prototype: object): string | undefined {
  for (let at = prototype, next = above(at); next !== null; at = next, next = above(at)) {
    for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (name === 'constructor') continue;
      if (typeof member.value === 'function') return `${name}()`;
      if (member.get) return name;
    }
  }
  return undefined;
}

/** Null of the `Object.prototype` of any realm, whose members plain objects have as well. */
function above(prototype: object): object | null {
  return Object.getPrototypeOf(prototype) as object | null;
}

function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice('[object '.length, -1);
}

function isBinary(value: object): boolean {
  return ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value);
}

function pathOf(path: string, key: string): string {
  if (/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(key) && key.length <= 40) return `${path}.${key}`;
  return `${path}[${quoted(key.length > 40 ? `${key.slice(0, 40)}…` : key)}]`;
}

export function tooLarge(queue: string, what: string, maxBytes: number): PayloadTooLargeError {
  return new PayloadTooLargeError(
    `Queue "${queue}": payload ${what}, but maxPayloadBytes is ${maxBytes}. ` +
      'Store the data elsewhere and send its key, or raise the limit.',
  );
}
