import { InvalidOptionError } from '../delay-queue.errors.js';
import { shown } from './duration.js';

/**
 * Turns payloads into what Redis stores and back, synchronously. Text is stored as it is; bytes as base64, because the
 * driver reads replies as text.
 *
 * `decode()` gets what `encode()` gave: text for text, a Buffer for bytes. What either throws is reported without its
 * message, which may quote the payload. A `decode()` that throws `UnknownCodecError` (say, for a key that only other
 * processes have) leaves the job to others; whatever else it throws makes a dead letter `undecodable`.
 */
export interface PayloadCodec<Data extends string | Uint8Array = string | Uint8Array> {
  /** Stored with every job: 1 to 32 letters, digits, `.`, `_`, `-`. Change it whenever older data could be misread. */
  readonly name: string;
  encode(payload: unknown): Data;
  decode(data: Data): unknown;
  /**
   * What `idFromPayload` hashes. Only for codecs whose `encode()` gives something else each time, as encryption does. The
   * hash is stored in the clear, so it should be keyed (HMAC). Default: what `encode()` gives.
   */
  identity?(payload: unknown): string | Uint8Array;
}

/** JSON, as strict as `encodePayload()`, or a codec of the application's own. */
export type CodecOption = 'json' | PayloadCodec<any>;

const NAME = /^[A-Za-z0-9._-]{1,32}$/;

/** @throws InvalidOptionError */
export function checkCodecs(value: unknown, field: string): readonly CodecOption[] {
  const codecs: unknown[] = Array.isArray(value) ? value : [value];
  if (codecs.length === 0) throw new InvalidOptionError(`${field}: an empty list. The first codec writes, all read.`);
  const names = new Set<string>();
  for (const codec of codecs) {
    const name = codec === 'json' ? 'json' : checkCodec(codec, field);
    if (names.has(name)) throw new InvalidOptionError(`${field}: two codecs have the name ${shown(name)}.`);
    names.add(name);
  }
  return Object.freeze(codecs as CodecOption[]);
}

function checkCodec(value: unknown, field: string): string {
  const { name, encode, decode, identity } = (value ?? {}) as Partial<PayloadCodec>;
  if (typeof encode !== 'function' || typeof decode !== 'function') {
    throw new InvalidOptionError(
      `${field}: must be 'json' or an object with a name, encode(payload) and decode(data).`,
    );
  }
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new InvalidOptionError(
      `${field}: the name ${shown(name)} of a codec must be 1 to 32 letters, digits, '.', '_' and '-'.`,
    );
  }
  if (name === 'json') throw new InvalidOptionError(`${field}: the name "json" is taken by the codec 'json'.`);
  if (identity !== undefined && typeof identity !== 'function') {
    throw new InvalidOptionError(`${field}: identity of codec "${name}" must be a function.`);
  }
  return name;
}
