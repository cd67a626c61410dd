import {
  DelayQueueError,
  InvalidOptionError,
  PayloadError,
  PayloadTooLargeError,
  StoredDataError,
  UnknownCodecError,
} from '../delay-queue.errors.js';
import { answerOf } from './at-once.js';
import { decodePayload, encodePayload, tooLarge } from './codec.js';
import type { ChangesOfJson } from './codec.js';
import { deflate, inflate } from './compression.js';
import { shown } from './duration.js';
import { forgetPromise } from './forget-promise.js';
import { contentId } from './job-id.js';
import type { CodecOption, PayloadCodec } from './payload-codec.js';

/** How a payload was written, when not as plain JSON. Kept in the header of the envelope. */
export interface PayloadMark {
  /** Undefined: JSON. */
  readonly codec: string | undefined;
  /** The codec gave bytes, so many; undefined: it gave text. */
  readonly bytes: number | undefined;
  /** Compressed, from so many bytes; undefined: not. */
  readonly inflated: number | undefined;
}

export interface EncodedPayload {
  /** What is stored. */
  readonly body: string;
  readonly mark: PayloadMark | undefined;
  /** What the codec gave. */
  readonly data: string | Buffer;
}

export interface PayloadSettings {
  /** The first one writes, all read; JSON is always read. */
  readonly codec: readonly CodecOption[];
  readonly compressAbove: number | undefined;
  readonly maxPayloadBytes: number;
}

/** A small text must not cost a reader more memory than this, unless its own `maxPayloadBytes` is greater. */
const INFLATE_MAX_BYTES = 16 * 1024 * 1024;

/** Encodes and decodes the payloads of one instance: codec, size, compression. */
export class Payloads {
  readonly #writer: CodecOption;
  readonly #readers = new Map<string, PayloadCodec>();
  readonly #compressAbove: number;
  readonly #maxBytes: number;
  /** Known once `idFromPayload` was used. */
  #deterministic: boolean | undefined;

  /** @param changes hears what JSON changes without an error */
  constructor(
    { codec, compressAbove, maxPayloadBytes }: PayloadSettings,
    private readonly changes?: ChangesOfJson,
  ) {
    this.#writer = codec[0]!;
    for (const reader of codec) if (reader !== 'json') this.#readers.set(reader.name, reader);
    this.#compressAbove = compressAbove ?? Infinity;
    this.#maxBytes = maxPayloadBytes;
  }

  /** @throws PayloadError, PayloadTooLargeError naming the queue */
  encode(payload: unknown, queue: string): EncodedPayload {
    const writer = this.#writer;
    const codec = writer === 'json' ? undefined : writer.name;
    const data =
      writer === 'json'
        ? encodePayload(payload, { queue, maxBytes: this.#maxBytes, changes: this.changes })
        : this.#checked(writer, payload, queue);
    const bytes = typeof data === 'string' ? undefined : data.length;
    const size = bytes ?? (data.length * 3 > this.#compressAbove ? Buffer.byteLength(data as string) : 0);
    if (size > this.#compressAbove) {
      const body = deflate(typeof data === 'string' ? Buffer.from(data) : data);
      if (body !== undefined) return { body, mark: { codec, bytes, inflated: size }, data };
    }
    if (typeof data !== 'string') {
      return { body: data.toString('base64'), mark: { codec, bytes, inflated: undefined }, data };
    }
    return { body: data, mark: codec === undefined ? undefined : { codec, bytes, inflated: undefined }, data };
  }

  /**
   * @throws UnknownCodecError when others may be able to read it
   * @throws StoredDataError, or what `JSON.parse` throws, when nobody is
   */
  decode(body: string, mark: PayloadMark | undefined): unknown {
    if (mark === undefined) return decodePayload(body);
    const { codec, bytes, inflated } = mark;
    const reader = codec === undefined ? undefined : this.#readers.get(codec);
    if (codec !== undefined && reader === undefined) {
      throw new UnknownCodecError(
        `Its payload was written by codec ${shown(codec)}; add that to \`codec\` of forRoot().`,
      );
    }
    if (inflated !== undefined && inflated > Math.max(INFLATE_MAX_BYTES, this.#maxBytes)) {
      throw new UnknownCodecError(
        `Its payload has ${inflated} bytes when inflated; raise maxPayloadBytes of forRoot() to read it.`,
      );
    }
    const whole = inflated === undefined ? undefined : inflate(body, inflated);
    if (bytes === undefined) return read(reader, whole ? whole.toString() : body);
    const data = whole ?? Buffer.from(body, 'base64');
    if (data.length === bytes) return read(reader, data);
    throw new StoredDataError(`The stored payload has ${data.length} bytes instead of ${bytes}.`);
  }

  /**
   * What a reader makes of a payload that was just encoded.
   *
   * @throws PayloadError
   */
  reread({ data }: EncodedPayload, queue: string): unknown {
    const writer = this.#writer;
    if (writer === 'json') return decodePayload(data as string);
    try {
      const payload: unknown = writer.decode(data);
      if (!forgetPromise(payload)) return payload;
    } catch (cause) {
      throw failure(queue, writer, 'cannot decode what it encoded', cause);
    }
    throw failure(queue, writer, 'must decode at once and not give a promise');
  }

  /**
   * The id that belongs to the content.
   *
   * @param field where it was asked for; begins the error message
   * @throws InvalidOptionError when the codec never encodes two payloads to the same
   * @throws PayloadError when it cannot encode this one a second time
   */
  idOf(payload: unknown, { data }: EncodedPayload, field: string, queue: string): string {
    const writer = this.#writer;
    if (writer === 'json') return contentId(data);
    if (writer.identity) {
      const what = `${field}: identity() of codec "${writer.name}"`;
      const identity: unknown = answerOf(() => writer.identity!(payload), what, payload);
      if (typeof identity === 'string' || identity instanceof Uint8Array) return contentId(identity);
      throw new InvalidOptionError(`${what} gave ${nameOf(identity)}. It must give text or bytes.`);
    }
    // Once is enough: what differs by a random number differs at the first look.
    this.#deterministic ??= Buffer.from(data).equals(Buffer.from(this.#checked(writer, payload, queue)));
    if (this.#deterministic) return contentId(data);
    throw new InvalidOptionError(
      `${field}: codec "${writer.name}" encodes one payload differently each time. Give \`id\`, or the codec identity().`,
    );
  }

  #checked(codec: PayloadCodec, payload: unknown, queue: string): string | Buffer {
    let data: unknown;
    try {
      data = codec.encode(payload);
    } catch (cause) {
      if (cause instanceof DelayQueueError) throw inQueue(cause, queue);
      throw failure(queue, codec, 'cannot encode the payload', cause);
    }
    if (typeof data === 'string') {
      // Redis is sent UTF-8, which has no half characters: they would be stored as something else.
      if (!isWellFormed(data)) throw failure(queue, codec, 'gave text with half a surrogate pair; let it give bytes');
      this.#assertSize(data.length * 3 > this.#maxBytes ? Buffer.byteLength(data) : 0, queue);
      return data;
    }
    if (!ArrayBuffer.isView(data)) {
      forgetPromise(data);
      throw failure(queue, codec, 'must give text or bytes, at once and not as a promise');
    }
    this.#assertSize(data.byteLength, queue);
    return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  }

  #assertSize(bytes: number, queue: string): void {
    if (bytes > this.#maxBytes) throw tooLarge(queue, `has ${bytes} bytes`, this.#maxBytes);
  }
}

function read(codec: PayloadCodec | undefined, data: string | Buffer): unknown {
  if (codec === undefined) return decodePayload(data as string);
  let payload: unknown;
  try {
    payload = codec.decode(data);
  } catch (cause) {
    if (cause instanceof UnknownCodecError) throw cause;
    throw new StoredDataError(`Codec "${codec.name}" cannot decode the stored payload (${nameOf(cause)}).`, { cause });
  }
  if (!forgetPromise(payload)) return payload;
  throw new StoredDataError(`Codec "${codec.name}" gave a promise. It must decode at once.`);
}

/** A codec may name the path; the queue it does not know. */
function inQueue(error: DelayQueueError, queue: string): DelayQueueError {
  if (error instanceof PayloadTooLargeError) return new PayloadTooLargeError(`Queue "${queue}": ${error.message}`);
  return new PayloadError(`Queue "${queue}": ${error.message}`, { cause: error.cause });
}

function failure(queue: string, { name }: PayloadCodec, problem: string, cause?: unknown): PayloadError {
  const why = cause === undefined ? '' : ` (${nameOf(cause)})`;
  return new PayloadError(`Queue "${queue}": codec "${name}" ${problem}${why}.`, { cause });
}

function nameOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.name : typeof thrown;
}

// Of ES2024; Node 20 has it.
function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}
