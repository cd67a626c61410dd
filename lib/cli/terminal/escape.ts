// Ids, errors and payloads come from whoever enqueues: what a terminal would obey must be shown instead, and so must what
// turns the direction of a line.
const DANGEROUS = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Text from Redis as one line that no terminal obeys. */
export function escaped(text: string): string {
  return text.replaceAll(DANGEROUS, (found) => NAMED[found] ?? unicode(found));
}

/**
 * JSON has no line breaks of its own, so what is found here stands within its texts. A codec may have kept what JSON does not know: a BigInt
 * becomes a text, and what holds itself a mark.
 */
export function escapedJson(value: unknown): string {
  /** Those within which the present value stands, from the outermost on. */
  const around: unknown[] = [];
  const text = JSON.stringify(value, function (this: unknown, _, inner: unknown) {
    if (typeof inner === 'bigint') return String(inner);
    if (typeof inner !== 'object' || inner === null) return inner;
    // `this` holds the value, so what lies within it has been written.
    around.length = around.lastIndexOf(this) + 1;
    if (around.includes(inner)) return '[Circular]';
    around.push(inner);
    return inner;
  });
  return text.replaceAll(DANGEROUS, unicode);
}

function unicode(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

const WIDE =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uff01-\uff60]/u;
const NO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]/u;

/** How many columns a terminal gives to text, near enough to align it. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += NO_WIDTH.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}

export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let left = Math.max(0, width - 1);
  let kept = '';
  for (const character of text) {
    left -= widthOf(character);
    if (left < 0) break;
    kept += character;
  }
  return `${kept}…`;
}
