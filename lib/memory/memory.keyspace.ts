import { ReplyError } from './memory.replies.js';
import { SortedSet } from './sorted-set.js';
import { Stream } from './stream.js';
import type { StreamEntry } from './stream.js';

interface Types {
  hash: Map<string, string>;
  list: string[];
  set: Set<string>;
  stream: Stream;
  string: { text: string };
  zset: SortedSet;
}

export type TypeName = keyof Types;

type Entry = { [T in TypeName]: { type: T; value: Types[T]; expiresAt: number | undefined } }[TypeName];

const EMPTY: { [T in TypeName]: () => Types[T] } = {
  hash: () => new Map(),
  list: () => [],
  set: () => new Set(),
  stream: () => new Stream(),
  string: () => ({ text: '' }),
  zset: () => new SortedSet(),
};

/** The keys of a store and what they hold. A collection that becomes empty is gone, and so is a key whose time is over. */
export class Keyspace {
  readonly #entries = new Map<string, Entry>();

  constructor(private readonly now: () => number) {}

  /** @throws ReplyError WRONGTYPE */
  read<T extends TypeName>(key: string, type: T): Types[T] | undefined {
    const entry = this.#entry(key);
    if (!entry) return undefined;
    if (entry.type !== type) {
      throw new ReplyError('WRONGTYPE Operation against a key holding the wrong kind of value');
    }
    return entry.value as Types[T];
  }

  /** The same for writing: what is not there is made, and what is left empty is taken away again. */
  write<T extends TypeName, R>(key: string, type: T, change: (value: Types[T]) => R): R {
    const value = this.read(key, type) ?? EMPTY[type]();
    try {
      const result = change(value);
      if (!this.#entries.has(key)) this.#entries.set(key, { type, value, expiresAt: undefined } as Entry);
      return result;
    } finally {
      if (sizeOf(value) === 0) this.#entries.delete(key);
    }
  }

  /** A text in place of whatever is there. */
  setText(key: string, text: string, expiresAt: number | undefined): void {
    this.#entries.set(key, { type: 'string', value: { text }, expiresAt });
  }

  delete(key: string): boolean {
    return this.#entry(key) !== undefined && this.#entries.delete(key);
  }

  typeOf(key: string): TypeName | 'none' {
    return this.#entry(key)?.type ?? 'none';
  }

  /** In ms; undefined for a key without an end. */
  expiryOf(key: string): number | undefined {
    return this.#entry(key)?.expiresAt;
  }

  expire(key: string, at: number | undefined): boolean {
    const entry = this.#entry(key);
    if (entry) entry.expiresAt = at;
    return entry !== undefined;
  }

  /** All that a key holds but its end, in a form of our own. */
  dump(key: string): string | undefined {
    const entry = this.#entry(key);
    if (!entry) return undefined;
    const { type, value } = entry;
    // As texts: JSON has no infinite numbers.
    if (type === 'zset') {
      const entries = value.slice(0, value.size).map(({ member, score }) => [member, String(score)]);
      return JSON.stringify([type, entries]);
    }
    if (type === 'stream') return JSON.stringify([type, value.entries]);
    return JSON.stringify([type, type === 'string' ? value : [...value]]);
  }

  restore(key: string, dump: string, expiresAt: number | undefined): void {
    const [type, content] = JSON.parse(dump) as [TypeName, never];
    let value: Types[TypeName] = content;
    if (type === 'hash') value = new Map(content);
    if (type === 'set') value = new Set(content);
    if (type === 'stream') value = new Stream(content as StreamEntry[]);
    if (type === 'zset') {
      value = new SortedSet();
      for (const [member, score] of content as [string, string][]) value.set(member, Number(score));
    }
    this.#entries.set(key, { type, value, expiresAt } as Entry);
  }

  names(): string[] {
    return [...this.#entries.keys()].filter((key) => this.#entry(key));
  }

  clear(): void {
    this.#entries.clear();
  }

  #entry(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry?.expiresAt === undefined || entry.expiresAt > this.now()) return entry;
    this.#entries.delete(key);
    return undefined;
  }
}

function sizeOf(value: Types[TypeName]): number {
  if (Array.isArray(value)) return value.length;
  // A stream may be empty.
  return 'text' in value || value instanceof Stream ? Infinity : value.size;
}
