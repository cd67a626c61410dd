import { LuaError } from './lua.values.js';

export interface Token {
  /** Of a symbol or keyword: itself. */
  kind: '<name>' | '<eof>' | 'number' | 'string' | (string & {});
  text: string;
  line: number;
}

const KEYWORDS = new Set(
  (
    'and break do else elseif end false for function if in local nil not or repeat return then true until ' + 'while'
  ).split(' '),
);
const SYMBOL = /\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}[\];:,.]/y;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const NUMBER = /0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y;
const LONG_BRACKET = /\[(=*)\[/y;
const ESCAPES: Record<string, string> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\n': '\n',
};

/** Cuts a script into tokens. Its text holds one byte per character. */
export function tokenize(source: string): Token[] {
  return new Lexer(source).tokens();
}

class Lexer {
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;

  constructor(private readonly source: string) {}

  tokens(): Token[] {
    while (this.#at < this.source.length) this.#next();
    this.#add('<eof>', '<eof>');
    return this.#tokens;
  }

  #next(): void {
    const { source } = this;
    const char = source[this.#at]!;
    if (char === '\n') {
      this.#line++;
      this.#at++;
    } else if (/\s/.test(char)) {
      this.#at++;
    } else if (source.startsWith('--', this.#at)) {
      this.#comment();
    } else if (char === '"' || char === "'") {
      const line = this.#line;
      this.#tokens.push({ kind: 'string', text: this.#quoted(char), line });
    } else if (/\d/.test(char) || (char === '.' && /\d/.test(source[this.#at + 1] ?? ''))) {
      this.#add('number', this.#taken(NUMBER)!);
    } else if (/[A-Za-z_]/.test(char)) {
      const text = this.#taken(NAME)!;
      this.#add(KEYWORDS.has(text) ? text : '<name>', text);
    } else {
      this.#longTextOrSymbol(char);
    }
  }

  #longTextOrSymbol(char: string): void {
    const text = this.#longText();
    if (text !== undefined) return this.#add('string', text);
    const symbol = this.#taken(SYMBOL);
    if (symbol === undefined) throw new LuaError(`unexpected symbol near '${char}'`, this.#line);
    this.#add(symbol, symbol);
  }

  #comment(): void {
    const { source } = this;
    this.#at += 2;
    if (this.#longText() !== undefined) return;
    while (this.#at < source.length && source[this.#at] !== '\n') this.#at++;
  }

  #longText(): string | undefined {
    const { source } = this;
    const open = this.#match(LONG_BRACKET);
    if (!open) return undefined;
    const close = source.indexOf(`]${open[1]}]`, this.#at);
    if (close < 0) throw new LuaError('unfinished long string', this.#line);
    const text = source.slice(this.#at + open[0].length, close).replace(/^\n/, '');
    this.#line += source.slice(this.#at, close).split('\n').length - 1;
    this.#at = close + open[0].length;
    return text;
  }

  #quoted(quote: string): string {
    const { source } = this;
    let text = '';
    for (this.#at++; source[this.#at] !== quote; this.#at++) {
      const char = source[this.#at];
      if (char === undefined || char === '\n') {
        throw new LuaError(`unfinished string near '${char ? quote + text : '<eof>'}'`, this.#line);
      }
      text += char === '\\' ? this.#escaped() : char;
    }
    this.#at++;
    return text;
  }

  /** What a backslash and the characters behind it stand for; ends at the last of them. */
  #escaped(): string {
    const { source } = this;
    const code = /^\d{1,3}/.exec(source.slice(this.#at + 1, this.#at + 4))?.[0];
    const next = source[this.#at + 1]!;
    if (next === '\n') this.#line++;
    this.#at += code?.length ?? 1;
    return code === undefined ? (ESCAPES[next] ?? next) : String.fromCharCode(Number(code));
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.source) ?? undefined;
  }

  #taken(pattern: RegExp): string | undefined {
    const text = this.#match(pattern)?.[0];
    this.#at += text?.length ?? 0;
    return text;
  }

  #add(kind: string, text: string): void {
    this.#tokens.push({ kind, text, line: this.#line });
  }
}
