import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { UnknownCodecError } from '../../lib/index.js';
import type { PayloadCodec } from '../../lib/index.js';

/**
 * AES-256-GCM around another codec. Stored: length of the key's id, the id, 12 bytes of nonce, 16 of tag, ciphertext.
 *
 * @param keys by id, 32 bytes each: all that stored jobs may still need
 * @param current id of the key that encrypts
 */
export function encryptingCodec(
  inner: PayloadCodec<string>,
  keys: Readonly<Record<string, Buffer>>,
  current: string,
): PayloadCodec<Buffer> {
  const key = (id: string) => {
    if (Object.hasOwn(keys, id)) return keys[id]!;
    throw new UnknownCodecError(`Its payload needs the encryption key "${id}", which is not here.`);
  };
  key(current);
  return {
    name: `${inner.name}-aes-256-gcm`,
    encode(payload) {
      const id = Buffer.from(current);
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key(current), nonce).setAAD(id);
      const text = Buffer.concat([cipher.update(inner.encode(payload)), cipher.final()]);
      return Buffer.concat([Buffer.of(id.length), id, nonce, cipher.getAuthTag(), text]);
    },
    decode(data) {
      const at = 1 + data[0]!;
      const id = data.subarray(1, at);
      const cipher = createDecipheriv('aes-256-gcm', key(id.toString()), data.subarray(at, at + 12), {
        authTagLength: 16,
      });
      cipher.setAAD(id).setAuthTag(data.subarray(at + 12, at + 28));
      return inner.decode(Buffer.concat([cipher.update(data.subarray(at + 28)), cipher.final()]).toString());
    },
  };
}
