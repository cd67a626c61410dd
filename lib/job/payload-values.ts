const MOST_VALUES = 1_000;
const DEEPEST = 10;
/** Texts this long are the payload's wherever they stand; shorter ones, and numbers, may be words of the text. */
const TELLING_LENGTH = 4;
/** Code that shows an object may cut its texts here. */
export const CUT_LENGTH = 200;
const HIDDEN = '[value]';

/**
 * A text without the values of a payload. Some schemas quote what they refuse (`received "4711"`), and handlers throw what
 * they were given; both come into logs and dead letters.
 *
 * @param payload whose long values are left out wherever they stand
 * @param refused a part of it whose short ones are left out, too, where they are words of their own
 */
export function withoutValues(text: string, payload: unknown, refused?: unknown): string {
  const short = new Set(valuesIn(refused));
  const values = [...new Set([...short, ...valuesIn(payload)])].sort((a, b) => b.length - a.length);
  for (const value of values) {
    if (value.length >= TELLING_LENGTH) text = text.replaceAll(value, HIDDEN);
    else if (value !== '' && short.has(value)) text = text.replace(alone(value), HIDDEN);
  }
  return text;
}

/** Not as a part of a word or number. */
function alone(value: string): RegExp {
  return new RegExp(`(?<![\\w.])${value.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)}(?![\\w]|\\.\\d)`, 'gu');
}

/** Texts and numbers, as a message would write them. */
function valuesIn(input: unknown): string[] {
  const found: string[] = [];
  const add = (text: string) => found.push(text, JSON.stringify(text).slice(1, -1));
  // Each object once: one that holds itself ten times, as a codec may give it, would be entered ten billion times.
  const seen = new Set<unknown>();
  const walk = (value: unknown, depth: number): void => {
    if (found.length >= MOST_VALUES || depth > DEEPEST || seen.has(value)) return;
    if (typeof value === 'object') seen.add(value);
    if (typeof value === 'string') {
      add(value);
      if (value.length > CUT_LENGTH) add(value.slice(0, CUT_LENGTH));
    } else if (typeof value === 'number' || typeof value === 'bigint') found.push(String(value));
    else if (value instanceof Date) found.push(String(value), Number.isNaN(value.getTime()) ? '' : value.toISOString());
    else if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) walk(one, depth + 1);
  };
  walk(input, 0);
  return found;
}
