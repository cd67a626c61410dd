import { inspect } from 'node:util';

const MOST_VALUES = 1_000;
/** Of all payloads of a batch. Looking for so many in a text takes some milliseconds. */
const MOST_OF_ALL = 50_000;
/** As it is stored, and as the handler got it. */
const OF_ONE_JOB = 2;
/** Of one batch that are remembered: what it has thrown is shown in whole, in short, and by its parts. */
const MOST_TEXTS = 20;
const DEEPEST = 10;
/** Texts this long are the payload's wherever they stand; shorter ones, and numbers, may be words of the text. */
const TELLING_LENGTH = 4;
/** Of each text in what is shown, and of all of them: whoever shows it cuts it sooner. */
const SHOWN_TEXT = 200;
const SHOWN_TEXTS = 16_384;
/** Keys that the code of an application may have chosen; others, such as an address, may be data, and are not shown. */
const PLAIN_KEY = /^[A-Za-z_]{1,40}$/;
/** Names of properties that errors have everywhere. Any other may itself be made from a payload: `{ [email]: 'bounced' }`. */
const USUAL = /^(?:cause|code|data|details|errno|errors?|message|name|reason|response|status|statusCode|type)$/;
/** Around the number of a piece that is done. Of another text with such marks no more than a piece is shown twice. */
const MARK = '\0';
const MARKED = new RegExp(`${MARK}(\\d+)${MARK}`);

/**
 * A text without the values of payloads: where one stood is its path, such as `[payload.kind]`. Some schemas quote what they
 * refuse (`received "4711"`), and handlers throw what they were given; both come into logs and dead letters.
 *
 * @param payloads whose long values are left out wherever they stand
 * @param refused where the first one has a part whose short ones are left out, too, where they are words of their own
 */
export function withoutValues(text: string, payloads: readonly unknown[], refused?: readonly PropertyKey[]): string {
  return hiding(payloads, refused)([text]);
}

/** The same of what was thrown and is no error, as it is shown. */
export function shownWithoutValues(thrown: unknown, payloads: readonly unknown[]): string {
  const hide = hiding(payloads);
  const done: string[] = [];
  let room = SHOWN_TEXTS;
  // Not by `maxStringLength`: of a value that is cut in its middle, nothing tells that it is one.
  const shownText = (quoted: string) => {
    if (room <= 0) return '...';
    const text = hide([quoted]);
    room -= Math.min(text.length, SHOWN_TEXT);
    return text.length > SHOWN_TEXT ? `${text.slice(0, SHOWN_TEXT)}...` : text;
  };
  const stylize = (text: string, style: string) => {
    if (style !== 'string' && !(style === 'name' && USUAL.test(text))) return text;
    return MARK + (done.push(style === 'string' ? shownText(text) : text) - 1) + MARK;
  };
  const shown = { depth: 2, breakLength: Infinity, maxArrayLength: 10, maxStringLength: Infinity, stylize };
  const pieces = inspect(thrown, shown).split(MARKED);
  return hide(pieces.map((piece, index) => (index % 2 ? (done[Number(piece)] ?? '') : piece)));
}

const ofBatches = new WeakMap<readonly unknown[], (parts: string[]) => string>();

/**
 * Looks through texts, which are given as parts: by turns what is looked through and what is not, as labels are not, for a
 * value may be a word of one.
 */
function hiding(payloads: readonly unknown[], refused?: readonly PropertyKey[]): (parts: string[]) => string {
  // Of a batch, whose list is one for all its jobs, each of which is told of.
  if (payloads.length <= OF_ONE_JOB) return hidingOnce(payloads, refused);
  const known = ofBatches.get(payloads);
  if (known) return known;
  const hide = hidingOnce(payloads, refused);
  const done = new Map<string, string>();
  const again = (parts: string[]) => {
    const all = parts.join(MARK);
    const hidden = done.get(all) ?? hide(parts);
    if (done.size < MOST_TEXTS) done.set(all, hidden);
    return hidden;
  };
  ofBatches.set(payloads, again);
  return again;
}

function hidingOnce(payloads: readonly unknown[], refused?: readonly PropertyKey[]): (parts: string[]) => string {
  const at = (refused ?? []).reduce<{ value: unknown; path: string }>(
    ({ value, path }, key) => ({
      value: typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined,
      path: step(path, key),
    }),
    { value: payloads[0], path: 'payload' },
  );
  const found = new Map<string, string>();
  if (refused) gather(found, at.value, at.path);
  const short = new Set(found.keys());
  for (const payload of payloads) {
    gather(found, payload, 'payload');
    if (found.size >= MOST_OF_ALL) return () => '[too many payloads to leave out their values]';
  }
  const long = [...found.keys()].filter((value) => value.length >= TELLING_LENGTH);
  const sorted = [...found].sort(([a], [b]) => b.length - a.length);
  return (parts) => {
    for (const [value, path] of sorted) {
      const apart =
        value.length >= TELLING_LENGTH ? value : value !== '' && short.has(value) ? alone(value) : undefined;
      if (apart === undefined) continue;
      // A key that is a value, too, would bring it back.
      const label = () => (long.some((other) => path.includes(other)) ? '[payload]' : `[${path}]`);
      parts = parts.flatMap((part, index) => {
        const pieces = index % 2 ? [part] : part.split(apart);
        return pieces.length === 1 ? pieces : pieces.flatMap((piece, n) => (n === 0 ? piece : [label(), piece]));
      });
    }
    return parts.join('');
  };
}

function step(path: string, key: PropertyKey): string {
  if (typeof key === 'number') return `${path}[${key}]`;
  return typeof key === 'string' && PLAIN_KEY.test(key) ? `${path}.${key}` : path;
}

/** Not as a part of a word or number. */
function alone(value: string): RegExp {
  return new RegExp(`(?<![\\w.])${value.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)}(?![\\w]|\\.\\d)`, 'u');
}

const QUOTED = { breakLength: Infinity, maxStringLength: Infinity };

/** Texts and numbers, as a message would write them, with where they stand. */
function gather(found: Map<string, string>, input: unknown, root: string): void {
  const most = found.size + MOST_VALUES;
  const add = (text: string, path: string) => {
    const quoted = [JSON.stringify(text), inspect(text, QUOTED)].map((one) => one.slice(1, -1));
    for (const one of [text, ...quoted]) if (!found.has(one)) found.set(one, path);
  };
  // Each object once: one that holds itself ten times, as a codec may give it, would be entered ten billion times.
  const seen = new Set<unknown>();
  const walk = (value: unknown, path: string, depth: number): void => {
    if (found.size >= most || depth > DEEPEST || seen.has(value)) return;
    if (typeof value === 'object') seen.add(value);
    if (typeof value === 'string') add(value, path);
    else if (typeof value === 'number' || typeof value === 'bigint') add(String(value), path);
    else if (value instanceof Date) {
      add(String(value), path);
      if (!Number.isNaN(value.getTime())) add(value.toISOString(), path);
    } else if (Array.isArray(value) || value instanceof Set) {
      for (const [index, one] of [...value].entries()) walk(one, step(path, index), depth + 1);
    } else if (value instanceof Map) for (const one of [...value].flat()) walk(one, path, depth + 1);
    else if (typeof value === 'object' && value !== null) {
      for (const key of Object.keys(value)) {
        const one = read(() => (value as Record<string, unknown>)[key]);
        walk(one, step(path, key), depth + 1);
      }
    }
  };
  read(() => walk(input, root, 0));
}

/** A getter or a proxy that throws hides no other values. */
function read<Value>(get: () => Value): Value | undefined {
  try {
    return get();
  } catch {
    return undefined;
  }
}
