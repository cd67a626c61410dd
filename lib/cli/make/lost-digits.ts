/** In valid JSON. Strings are passed over, so that numbers in them are none. */
const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * Does valid JSON hold a whole number that would be another one after it was read and written again? What JavaScript has written is
 * none: it writes as many digits as it needs to read the same number.
 */
export function losesDigits(json: string): boolean {
  for (const [token] of json.matchAll(STRING_OR_NUMBER)) {
    if (!/^-?\d+$/.test(token)) continue;
    const read = Number(token);
    if (BigInt(read) !== BigInt(token) && String(read) !== token) return true;
  }
  return false;
}
