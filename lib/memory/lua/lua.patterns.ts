import { LuaError } from './lua.values.js';

/** A capture: a piece of the text, or the position that `()` stands for. */
export type Capture = string | number;

export interface Match {
  /** From 0; `end` is the place behind it. */
  start: number;
  end: number;
  captures: Capture[];
}

const CLASSES: Record<string, RegExp> = {
  a: /[A-Za-z]/,
  // oxlint-disable-next-line no-control-regex -- they are what is meant
  c: /[\0-\x1f\x7f]/,
  d: /\d/,
  l: /[a-z]/,
  p: /[!-/:-@[-`{-~]/,
  s: /[ \t-\r]/,
  u: /[A-Z]/,
  w: /[A-Za-z0-9]/,
  x: /[A-Fa-f0-9]/,
  z: /\0/,
};
/** What a match must begin with. */
const LITERAL_FIRST = /^[^$^()%.[\]*+?-](?![*+?-])/;
const OPEN = -1;
const POSITION = -2;

/** The first match at or behind `from`; a pattern that begins with `^` is tried at `from` only. */
export function findPattern(text: string, pattern: string, from: number, anchored = true): Match | undefined {
  const fixed = anchored && pattern.startsWith('^');
  const first = fixed ? undefined : LITERAL_FIRST.exec(pattern)?.[0];
  for (let start = from; start <= text.length; start++) {
    if (first !== undefined && (start = text.indexOf(first, start)) < 0) return undefined;
    const matcher = new Matcher(text, pattern);
    const end = matcher.match(start, fixed ? 1 : 0);
    if (end !== undefined) return { start, end, captures: matcher.captures() };
    if (fixed) return undefined;
  }
  return undefined;
}

/** Patterns of Lua are no regular expressions: they have no alternatives, but balanced pairs (`%b()`) and frontiers (`%f[]`). */
class Matcher {
  readonly #open: { start: number; length: number }[] = [];

  constructor(
    private readonly text: string,
    private readonly pattern: string,
  ) {}

  captures(): Capture[] {
    return this.#open.map(({ start, length }) => {
      if (length === OPEN) throw new LuaError('unfinished capture');
      return length === POSITION ? start + 1 : this.text.slice(start, start + length);
    });
  }

  /** @returns the place behind the match of the rest of the pattern, at this place of the text */
  match(at: number, p: number): number | undefined {
    for (;;) {
      if (p === this.pattern.length) return at;
      const char = this.pattern[p]!;
      const next = this.pattern[p + 1];
      if (char === '(') return next === ')' ? this.#group(at, p + 2, POSITION) : this.#group(at, p + 1, OPEN);
      if (char === ')') return this.#close(at, p + 1);
      if (char === '$' && p + 1 === this.pattern.length) return at === this.text.length ? at : undefined;
      if (char === '%' && next === 'b') {
        const end = this.#balanced(at, p + 2);
        if (end === undefined) return undefined;
        [at, p] = [end, p + 4];
        continue;
      }
      if (char === '%' && next === 'f') {
        const end = this.#itemEnd(p + 2);
        const [before, here] = [this.text[at - 1] ?? '\0', this.text[at] ?? '\0'];
        if (this.#isOneOf(before, p + 2, end) || !this.#isOneOf(here, p + 2, end)) return undefined;
        p = end;
        continue;
      }
      if (char === '%' && next !== undefined && /\d/.test(next)) {
        const captured = this.#captured(Number(next));
        if (!this.text.startsWith(captured, at)) return undefined;
        [at, p] = [at + captured.length, p + 2];
        continue;
      }
      const end = this.#itemEnd(p);
      const suffix = this.pattern[end];
      if (suffix === '?') {
        const taken = this.#fits(at, p, end) ? this.match(at + 1, end + 1) : undefined;
        if (taken !== undefined) return taken;
        p = end + 1;
      } else if (suffix === '*' || suffix === '+') {
        return this.#most(at, p, end, suffix === '+' ? 1 : 0);
      } else if (suffix === '-') {
        return this.#fewest(at, p, end);
      } else {
        if (!this.#fits(at, p, end)) return undefined;
        [at, p] = [at + 1, end];
      }
    }
  }

  #group(at: number, p: number, length: number): number | undefined {
    this.#open.push({ start: at, length });
    const end = this.match(at, p);
    if (end === undefined) this.#open.pop();
    return end;
  }

  #close(at: number, p: number): number | undefined {
    const group = this.#open.findLast(({ length }) => length === OPEN);
    if (!group) throw new LuaError('invalid pattern capture');
    group.length = at - group.start;
    const end = this.match(at, p);
    if (end === undefined) group.length = OPEN;
    return end;
  }

  #captured(number: number): string {
    const group = this.#open[number - 1];
    if (!group || group.length === OPEN) throw new LuaError('invalid capture index');
    return this.text.slice(group.start, group.start + group.length);
  }

  #most(at: number, p: number, end: number, least: number): number | undefined {
    let count = 0;
    while (this.#fits(at + count, p, end)) count++;
    for (; count >= least; count--) {
      const found = this.match(at + count, end + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #fewest(at: number, p: number, end: number): number | undefined {
    for (;;) {
      const found = this.match(at, end + 1);
      if (found !== undefined) return found;
      if (!this.#fits(at, p, end)) return undefined;
      at++;
    }
  }

  #balanced(at: number, p: number): number | undefined {
    const [open, close] = [this.pattern[p], this.pattern[p + 1]];
    if (open === undefined || close === undefined) throw new LuaError('unbalanced pattern');
    if (this.text[at] !== open) return undefined;
    for (let depth = 1, i = at + 1; i < this.text.length; i++) {
      if (this.text[i] === close && --depth === 0) return i + 1;
      else if (this.text[i] === open) depth++;
    }
    return undefined;
  }

  /** Behind one item: a character, a class or a set. */
  #itemEnd(p: number): number {
    const char = this.pattern[p];
    if (char === '%') {
      if (p + 1 >= this.pattern.length) throw new LuaError("malformed pattern (ends with '%')");
      return p + 2;
    }
    if (char !== '[') return p + 1;
    let end = p + 1;
    if (this.pattern[end] === '^') end++;
    do {
      if (end >= this.pattern.length) throw new LuaError("malformed pattern (missing ']')");
      end += this.pattern[end] === '%' ? 2 : 1;
    } while (this.pattern[end] !== ']');
    return end + 1;
  }

  #fits(at: number, p: number, end: number): boolean {
    return at < this.text.length && this.#isOneOf(this.text[at]!, p, end);
  }

  #isOneOf(char: string, p: number, end: number): boolean {
    const item = this.pattern[p]!;
    if (item === '.') return true;
    if (item === '%') return isOfClass(char, this.pattern[p + 1]!);
    if (item !== '[') return item === char;
    let at = p + 1;
    const negated = this.pattern[at] === '^';
    if (negated) at++;
    for (; at < end - 1; at++) {
      const one = this.pattern[at]!;
      if (one === '%') {
        if (isOfClass(char, this.pattern[++at]!)) return !negated;
      } else if (this.pattern[at + 1] === '-' && at + 2 < end - 1) {
        if (one <= char && char <= this.pattern[at + 2]!) return !negated;
        at += 2;
      } else if (one === char) {
        return !negated;
      }
    }
    return negated;
  }
}

function isOfClass(char: string, name: string): boolean {
  const members = CLASSES[name.toLowerCase()];
  if (!members) return char === name;
  return members.test(char) === (name === name.toLowerCase());
}
