/**
 * The payload of every job of every library: 75 bytes of JSON, or about `bytes`. What makes it larger is text that looks random, of which a
 * compressing network or codec would gain little.
 */
export function payload(n, bytes = 0) {
  const small = { paymentId: `payment-${String(n).padStart(20, '0')}`, amount: 1999, currency: 'EUR' };
  return bytes > 0 ? { ...small, document: textOf(bytes) } : small;
}

const texts = new Map();

function textOf(bytes) {
  let text = texts.get(bytes);
  if (text === undefined) {
    let state = 1;
    const next = () => ((state = (state * 48_271) % 2_147_483_647) % 36).toString(36);
    texts.set(bytes, (text = Array.from({ length: bytes }, next).join('')));
  }
  return text;
}
