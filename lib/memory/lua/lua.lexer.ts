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
  const tokens: Token[] = [];
  let at = 0;
  let line = 1;

  const match = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(source) ?? undefined;
  };
  const add = (kind: string, text: string) => tokens.push({ kind, text, line });
  const longText = (): string | undefined => {
    const open = match(LONG_BRACKET);
    if (!open) return undefined;
    const close = source.indexOf(`]${open[1]}]`, at);
    if (close < 0) throw new LuaError('unfinished long string', line);
    const text = source.slice(at + open[0].length, close).replace(/^\n/, '');
    line += source.slice(at, close).split('\n').length - 1;
    at = close + open[0].length;
    return text;
  };
  const quoted = (quote: string): string => {
    let text = '';
    for (at++; source[at] !== quote; at++) {
      const char = source[at];
      if (char === undefined || char === '\n') {
        throw new LuaError(`unfinished string near '${char ? quote + text : '<eof>'}'`, line);
      }
      if (char !== '\\') {
        text += char;
        continue;
      }
      const code = /^\d{1,3}/.exec(source.slice(at + 1, at + 4))?.[0];
      const next = source[at + 1]!;
      if (next === '\n') line++;
      text += code === undefined ? (ESCAPES[next] ?? next) : String.fromCharCode(Number(code));
      at += code?.length ?? 1;
    }
    at++;
    return text;
  };

  while (at < source.length) {
    const char = source[at]!;
    if (char === '\n') {
      line++;
      at++;
    } else if (/\s/.test(char)) {
      at++;
    } else if (source.startsWith('--', at)) {
      at += 2;
      if (longText() === undefined) while (at < source.length && source[at] !== '\n') at++;
    } else if (char === '"' || char === "'") {
      const from = line;
      tokens.push({ kind: 'string', text: quoted(char), line: from });
    } else if (/\d/.test(char) || (char === '.' && /\d/.test(source[at + 1] ?? ''))) {
      const [text] = match(NUMBER)!;
      at += text.length;
      add('number', text);
    } else if (/[A-Za-z_]/.test(char)) {
      const [text] = match(NAME)!;
      at += text.length;
      add(KEYWORDS.has(text) ? text : '<name>', text);
    } else {
      const text = longText();
      if (text !== undefined) {
        add('string', text);
        continue;
      }
      const symbol = match(SYMBOL)?.[0];
      if (symbol === undefined) throw new LuaError(`unexpected symbol near '${char}'`, line);
      at += symbol.length;
      add(symbol, symbol);
    }
  }
  add('<eof>', '<eof>');
  return tokens;
}
