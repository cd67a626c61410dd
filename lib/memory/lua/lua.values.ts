import { parseNumber, toGeneral } from './lua.numbers.js';

/**
 * A value of Lua 5.1 as JavaScript holds it: nil is undefined, every number is a double as in Lua 5.1, and a text holds one
 * byte per character, so that `#text` and string.sub() count bytes as they do in Redis.
 */
export type Value = undefined | boolean | number | string | LuaTable | LuaFunction;
export type LuaFunction = (args: Value[]) => Value[];

/** Whatever a script throws: a text, or the table that redis.call() throws. */
export class LuaError extends Error {
  constructor(
    public value: Value,
    /** Line of the script, once it is known; a text begins with it. -1: it shall not. */
    public line?: number,
  ) {
    super(typeof value === 'string' ? value : 'error object');
    this.name = 'LuaError';
    if (line !== undefined && line >= 0) this.#locate(line);
  }

  /** The place in the script, unless the error has one. */
  at(line: number): this {
    if (this.line === undefined) this.#locate(line);
    return this;
  }

  #locate(line: number): void {
    this.line = line;
    if (typeof this.value !== 'string') return;
    this.message = this.value = `user_script:${line}: ${this.value}`;
  }
}

/** Keys 1..n in an array, all others in a map. */
export class LuaTable {
  /** The value of key 1 is at 0. Never ends with undefined. */
  readonly list: Value[];
  /** Most tables are lists, and making a map takes longer than all else about one. */
  #map: Map<Value, Value> | undefined;

  constructor(list: Value[] = []) {
    this.list = list;
    this.#trim();
  }

  get(key: Value): Value {
    if (typeof key === 'number' && key > 0 && key <= this.list.length && Number.isInteger(key)) {
      return this.list[key - 1];
    }
    return this.#map?.get(key);
  }

  set(key: Value, value: Value): void {
    if (typeof key === 'number' && Number.isInteger(key) && key > 0 && key <= this.list.length + 1) {
      this.list[key - 1] = value;
      if (value === undefined) this.#trim();
      else if (this.#map) this.#absorb(this.#map, key);
      return;
    }
    if (key === undefined) throw new LuaError('table index is nil');
    if (Number.isNaN(key)) throw new LuaError('table index is NaN');
    if (value === undefined) this.#map?.delete(key);
    else (this.#map ??= new Map()).set(key, value);
  }

  get length(): number {
    return this.list.length;
  }

  /** In the order in which next() walks over them. */
  keys(): Value[] {
    const keys: Value[] = [];
    for (const [at, value] of this.list.entries()) if (value !== undefined) keys.push(at + 1);
    return this.#map ? [...keys, ...this.#map.keys()] : keys;
  }

  #trim(): void {
    while (this.list.length > 0 && this.list[this.list.length - 1] === undefined) this.list.pop();
  }

  /** Keys that follow the list have waited in the map. */
  #absorb(map: Map<Value, Value>, last: number): void {
    map.delete(last);
    for (let key = this.list.length + 1; map.has(key); key++) {
      this.list.push(map.get(key));
      map.delete(key);
    }
  }
}

export function typeOf(value: Value): string {
  if (value === undefined) return 'nil';
  return value instanceof LuaTable ? 'table' : typeof value;
}

export function isTrue(value: Value): boolean {
  return value !== undefined && value !== false;
}

/** As arithmetic does it: numbers, and texts that are numbers. */
export function asNumber(value: Value): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' ? parseNumber(value) : undefined;
}

export function asText(value: Value): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? toGeneral(value, 14) : undefined;
}
