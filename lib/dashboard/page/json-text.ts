// A payload as it is stored. JSON.parse would turn 12345678901234567890 into 12345678901234567000: here numbers stay texts.

export type JsonNode =
  | { readonly kind: 'object'; readonly entries: readonly (readonly [string, JsonNode])[] }
  | { readonly kind: 'array'; readonly items: readonly JsonNode[] }
  /** `text` is what stands in the payload: strings with their quotes. */
  | { readonly kind: 'string' | 'number' | 'word'; readonly text: string };

const SPACE = /[ \t\n\r]*/y;
// oxlint-disable-next-line no-control-regex -- JSON forbids just these
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
/** A payload that is nested deeper is shown as text: the browser's stack is no place for it. */
const DEEPEST = 200;

class NoJson extends Error {}

/** @returns undefined for what is no JSON, or is nested too deep */
export function parseJson(text: string): JsonNode | undefined {
  const reader = new Reader(text);
  try {
    const node = reader.value(0);
    reader.end();
    return node;
  } catch (error) {
    if (error instanceof NoJson) return undefined;
    throw error;
  }
}

class Reader {
  #at = 0;

  constructor(private readonly text: string) {}

  value(depth: number): JsonNode {
    if (depth > DEEPEST) throw new NoJson();
    this.#take(SPACE);
    const start = this.text[this.#at];
    if (start === '{') return this.#object(depth);
    if (start === '[') return this.#array(depth);
    if (start === '"') return { kind: 'string', text: this.#must(STRING) };
    const word = this.#take(WORD);
    return word ? { kind: 'word', text: word } : { kind: 'number', text: this.#must(NUMBER) };
  }

  end(): void {
    this.#take(SPACE);
    if (this.#at < this.text.length) throw new NoJson();
  }

  #object(depth: number): JsonNode {
    const entries: [string, JsonNode][] = [];
    this.#list('}', () => {
      this.#take(SPACE);
      const name = this.#must(STRING);
      this.#take(SPACE);
      this.#sign(':');
      entries.push([name, this.value(depth + 1)]);
    });
    return { kind: 'object', entries };
  }

  #array(depth: number): JsonNode {
    const items: JsonNode[] = [];
    this.#list(']', () => void items.push(this.value(depth + 1)));
    return { kind: 'array', items };
  }

  #list(end: string, readOne: () => void): void {
    this.#at++;
    this.#take(SPACE);
    if (this.text[this.#at] === end) {
      this.#at++;
      return;
    }
    for (;;) {
      readOne();
      this.#take(SPACE);
      if (this.text[this.#at] === end) break;
      this.#sign(',');
    }
    this.#at++;
  }

  #sign(sign: string): void {
    if (this.text[this.#at] !== sign) throw new NoJson();
    this.#at++;
  }

  #must(pattern: RegExp): string {
    const found = this.#take(pattern);
    if (!found) throw new NoJson();
    return found;
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }
}

/** With a line for each member, as `JSON.stringify(value, null, 2)` writes it. */
export function indented(node: JsonNode, indent = ''): string {
  if (node.kind === 'object') {
    if (node.entries.length === 0) return '{}';
    const inner = `${indent}  `;
    const lines = node.entries.map(([name, value]) => `${inner}${name}: ${indented(value, inner)}`);
    return `{\n${lines.join(',\n')}\n${indent}}`;
  }
  if (node.kind === 'array') {
    if (node.items.length === 0) return '[]';
    const inner = `${indent}  `;
    return `[\n${node.items.map((item) => inner + indented(item, inner)).join(',\n')}\n${indent}]`;
  }
  return node.text;
}
