import type { Match } from '../../lib/memory/lua/lua.patterns.js';

type FindPattern = (text: string, pattern: string, from: number, anchored?: boolean) => Match | undefined;

/** What is a class of Lua, inside of brackets. Texts hold one byte per character. */
const CLASSES: Readonly<Record<string, string>> = {
  a: 'A-Za-z',
  c: '\\x00-\\x1f\\x7f',
  d: '0-9',
  l: 'a-z',
  p: '!-\\/:-@\\[-`\\{-~',
  s: ' \\t-\\r',
  u: 'A-Z',
  w: 'A-Za-z0-9',
  x: 'A-Fa-f0-9',
  z: '\\x00',
};
const SUFFIXES: Readonly<Record<string, string>> = { '*': '*', '+': '+', '?': '?', '-': '*?' };

/**
 * What the store's own matcher of patterns does, by regular expressions of JavaScript: scripts read their records by patterns, most of all
 * the windows of rates. What is no regular expression goes to the store's own matcher, and so does what is wrong.
 */
export function patternsInJavaScript(original: FindPattern): FindPattern {
  const known = new Map<string, RegExp | undefined>();
  return (text, pattern, from, anchored = true) => {
    let expression = known.get(pattern);
    if (expression === undefined && !known.has(pattern)) known.set(pattern, (expression = expressionOf(pattern)));
    // For gmatch() it is no anchor.
    if (!expression || (expression.sticky && !anchored)) return original(text, pattern, from, anchored);
    expression.lastIndex = from;
    const found = expression.exec(text);
    if (!found) return undefined;
    return { start: found.index, end: found.index + found[0].length, captures: found.slice(1) };
  };
}

/** @returns undefined of a pattern that has no such expression, or none that is written here */
function expressionOf(pattern: string): RegExp | undefined {
  const isFixed = pattern.startsWith('^');
  let [out, at, depth] = ['', isFixed ? 1 : 0, 0];
  while (at < pattern.length) {
    const char = pattern[at]!;
    if (char === '(') {
      if (pattern[at + 1] === ')') return undefined; // A place.
      out += '(';
      depth++;
      at++;
    } else if (char === ')') {
      if (depth-- === 0) return undefined;
      out += ')';
      at++;
    } else if (char === '$' && at + 1 === pattern.length) {
      out += '$';
      at++;
    } else {
      const item = char === '[' ? setOf(pattern, at) : itemOf(pattern, at);
      if (!item) return undefined;
      const suffix = SUFFIXES[pattern[item.end] ?? ''];
      out += item.text + (suffix ?? '');
      at = item.end + (suffix === undefined ? 0 : 1);
    }
  }
  return depth === 0 ? new RegExp(out, isFixed ? 'y' : 'g') : undefined;
}

interface Item {
  readonly text: string;
  /** The place behind it. */
  readonly end: number;
}

function itemOf(pattern: string, at: number): Item | undefined {
  const char = pattern[at]!;
  if (char === '.') return { text: '[^]', end: at + 1 };
  if (char !== '%') return { text: escaped(char), end: at + 1 };
  const name = pattern[at + 1];
  if (name === undefined || /[bf\d]/.test(name)) return undefined;
  const members = CLASSES[name.toLowerCase()];
  if (members === undefined) return { text: escaped(name), end: at + 2 };
  return { text: `[${name === name.toLowerCase() ? '' : '^'}${members}]`, end: at + 2 };
}

function setOf(pattern: string, from: number): Item | undefined {
  let at = from + 1;
  const negated = pattern[at] === '^';
  if (negated) at++;
  let members = '';
  do {
    const char = pattern[at];
    if (char === undefined) return undefined;
    const next = pattern[at + 1];
    if (char === '%') {
      if (next === undefined) return undefined;
      const known = CLASSES[next.toLowerCase()];
      if (known !== undefined && next !== next.toLowerCase()) return undefined;
      members += known ?? escaped(next);
      at += 2;
    } else if (next === '-' && pattern[at + 2] !== undefined && pattern[at + 2] !== ']') {
      const to = pattern[at + 2]!;
      if (to === '%' || to < char) return undefined;
      members += `${escaped(char)}-${escaped(to)}`;
      at += 3;
    } else {
      members += escaped(char);
      at++;
    }
  } while (pattern[at] !== ']');
  return { text: `[${negated ? '^' : ''}${members}]`, end: at + 1 };
}

function escaped(char: string): string {
  return `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`;
}
