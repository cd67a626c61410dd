import { formatOne } from './lua.format.js';
import { argumentError, intArg, numberArg, optional, textArg } from './lua.arguments.js';
import { findPattern } from './lua.patterns.js';
import type { Match } from './lua.patterns.js';
import { asText, isTrue, LuaError, LuaTable, typeOf } from './lua.values.js';
import type { LuaFunction, Value } from './lua.values.js';

/** The part of a text from one place to another, counted from 1 or, when negative, from the end. */
function range(length: number, from: number, to: number): [number, number] {
  const start = from < 0 ? Math.max(length + from + 1, 1) : from === 0 ? 1 : from;
  const end = to < 0 ? length + to + 1 : Math.min(to, length);
  return [start - 1, Math.max(start - 1, end)];
}

function capturesOf(text: string, { start, end, captures }: Match): Value[] {
  return captures.length > 0 ? captures : [text.slice(start, end)];
}

const SPECIAL = /[\^$*+?.([%-]/;

function find(args: Value[], wantsPlaces: boolean): Value[] {
  const name = wantsPlaces ? 'find' : 'match';
  const text = textArg(args, 0, name);
  const pattern = textArg(args, 1, name);
  const init = optional(args, 2, intArg, name) ?? 1;
  const from = Math.min(Math.max((init < 0 ? text.length + init + 1 : init) - 1, 0), text.length);
  if (wantsPlaces && (isTrue(args[3]) || !SPECIAL.test(pattern))) {
    const at = text.indexOf(pattern, from);
    return at < 0 ? [undefined] : [at + 1, at + pattern.length];
  }
  const match = findPattern(text, pattern, from);
  if (!match) return [undefined];
  return wantsPlaces ? [match.start + 1, match.end, ...match.captures] : capturesOf(text, match);
}

/** What stands for one match of gsub(): a text with `%1`, an entry of a table, or what a function answers. */
function replacement(by: Value, text: string, match: Match): string {
  const whole = text.slice(match.start, match.end);
  const captures = capturesOf(text, match);
  let value: Value;
  if (by instanceof LuaTable) value = by.get(captures[0]);
  else if (typeof by === 'function') value = by(captures)[0];
  else {
    return asText(by)!.replace(/%(.)?/gs, (_, char: string | undefined) => {
      if (char === undefined || !/\d/.test(char)) return char ?? '';
      if (char === '0') return whole;
      const capture = captures[Number(char) - 1];
      if (capture === undefined) throw new LuaError('invalid capture index');
      return asText(capture)!;
    });
  }
  if (!isTrue(value)) return whole;
  const written = asText(value);
  if (written === undefined) throw new LuaError(`invalid replacement value (a ${typeOf(value)})`);
  return written;
}

function gsub(args: Value[]): Value[] {
  const text = textArg(args, 0, 'gsub');
  const pattern = textArg(args, 1, 'gsub');
  const most = optional(args, 3, intArg, 'gsub') ?? Infinity;
  const by = args[2];
  if (typeof by !== 'function' && !(by instanceof LuaTable) && asText(by) === undefined) {
    throw argumentError(3, 'gsub', 'string/function/table expected');
  }
  const anchored = pattern.startsWith('^');
  let [out, at, count] = ['', 0, 0];
  while (count < most) {
    const match = findPattern(text, pattern, at);
    if (!match) break;
    count++;
    out += text.slice(at, match.start) + replacement(by, text, match);
    at = match.end;
    if (match.end === match.start) out += text[at++] ?? '';
    if (anchored || at > text.length) break;
  }
  return [out + text.slice(at), count];
}

function gmatch(args: Value[]): Value[] {
  const text = textArg(args, 0, 'gmatch');
  const pattern = textArg(args, 1, 'gmatch');
  let at = 0;
  return [
    () => {
      // Here `^` is no anchor, or the loop would end after its first turn.
      const match = at <= text.length ? findPattern(text, pattern, at, false) : undefined;
      if (!match) return [undefined];
      at = match.end === match.start ? match.end + 1 : match.end;
      return capturesOf(text, match);
    },
  ];
}

function format(args: Value[]): Value[] {
  let at = 0;
  const text = textArg(args, 0, 'format').replace(
    /%(?:%|([-+ #0]*)(\d*)(?:\.(\d*))?([\s\S]?))/g,
    (whole, flags: string, width: string, precision: string | undefined, letter: string) => {
      if (whole === '%%') return '%';
      const index = ++at;
      if (index >= args.length) throw argumentError(index + 1, 'format', 'no value');
      return formatOne(
        { flags, width: Number(width), precision: precision === undefined ? undefined : Number(precision), letter },
        () => textArg(args, index, 'format'),
        () => numberArg(args, index, 'format'),
      );
    },
  );
  return [text];
}

export const STRING: Record<string, LuaFunction> = {
  find: (args) => find(args, true),
  match: (args) => find(args, false),
  gmatch,
  gsub,
  format,
  sub: (args) => {
    const text = textArg(args, 0, 'sub');
    return [text.slice(...range(text.length, intArg(args, 1, 'sub'), optional(args, 2, intArg, 'sub') ?? -1))];
  },
  len: (args) => [textArg(args, 0, 'len').length],
  rep: (args) => [textArg(args, 0, 'rep').repeat(Math.max(0, intArg(args, 1, 'rep')))],
  reverse: (args) => [textArg(args, 0, 'reverse').split('').toReversed().join('')],
  // Only these letters: a byte of a longer character stays as it is.
  lower: (args) => [textArg(args, 0, 'lower').replace(/[A-Z]+/g, (letters) => letters.toLowerCase())],
  upper: (args) => [textArg(args, 0, 'upper').replace(/[a-z]+/g, (letters) => letters.toUpperCase())],
  byte: (args) => {
    const text = textArg(args, 0, 'byte');
    const from = optional(args, 1, intArg, 'byte') ?? 1;
    const piece = text.slice(...range(text.length, from, optional(args, 2, intArg, 'byte') ?? from));
    return Array.from({ length: piece.length }, (_, n) => piece.charCodeAt(n));
  },
  char: (args) => [String.fromCharCode(...args.map((_, n) => intArg(args, n, 'char')))],
};

/** Of tostring(); tables and functions have no address here, so they are written as their type only. */
export function written(value: Value): string {
  return asText(value) ?? (value === undefined ? 'nil' : typeof value === 'boolean' ? String(value) : typeOf(value));
}
