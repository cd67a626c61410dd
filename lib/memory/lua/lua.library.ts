import { anyArg, argumentError, functionArg, intArg, numberArg, optional, tableArg, textArg } from './lua.arguments.js';
import type { Globals } from './lua.frame.js';
import { parseInBase } from './lua.numbers.js';
import { STRING, written } from './lua.strings.js';
import { asNumber, asText, isTrue, LuaError, LuaTable, typeOf } from './lua.values.js';
import type { LuaFunction, Value } from './lua.values.js';

/** More results than this do not fit on Lua's stack in Redis. */
const MOST_RESULTS = 7_990;

const BASE: Record<string, LuaFunction> = {
  assert: (args) => {
    if (isTrue(anyArg(args, 0, 'assert'))) return args;
    throw new LuaError(optional(args, 1, textArg, 'assert') ?? 'assertion failed!');
  },
  error: ([value, level]) => {
    const error = new LuaError(value);
    if (level === 0) error.line = -1;
    throw error;
  },
  ipairs: (args) => {
    const table = tableArg(args, 0, 'ipairs');
    const step: LuaFunction = ([, last]) => {
      const at = (last as number) + 1;
      const value = table.get(at);
      return value === undefined ? [undefined] : [at, value];
    };
    return [step, table, 0];
  },
  next: (args) => {
    const table = tableArg(args, 0, 'next');
    const keys = table.keys();
    const at = args[1] === undefined ? 0 : keys.indexOf(args[1]) + 1;
    return at < keys.length ? [keys[at], table.get(keys[at])] : [undefined];
  },
  pairs: (args) => {
    const table = tableArg(args, 0, 'pairs');
    const keys = table.keys();
    let at = 0;
    const step: LuaFunction = () => {
      while (at < keys.length && table.get(keys[at]) === undefined) at++; // Taken out by the loop itself.
      return at < keys.length ? [keys[at], table.get(keys[at++])] : [undefined];
    };
    return [step, table, undefined];
  },
  pcall: (args) => {
    const call = functionOrError(args);
    try {
      return [true, ...call()];
    } catch (error) {
      if (!(error instanceof LuaError)) throw error;
      return [false, textOfError(error.value)];
    }
  },
  rawequal: (args) => [anyArg(args, 0, 'rawequal') === anyArg(args, 1, 'rawequal')],
  rawget: (args) => [tableArg(args, 0, 'rawget').get(args[1])],
  rawset: (args) => {
    tableArg(args, 0, 'rawset').set(args[1], args[2]);
    return [args[0]];
  },
  select: (args) => {
    if (args[0] === '#') return [args.length - 1];
    const from = intArg(args, 0, 'select');
    if (from === 0 || from < 1 - args.length) throw argumentError(1, 'select', 'index out of range');
    return args.slice(from);
  },
  tonumber: (args) => {
    const base = optional(args, 1, intArg, 'tonumber') ?? 10;
    if (base === 10) return [asNumber(anyArg(args, 0, 'tonumber'))];
    if (base < 2 || base > 36) throw argumentError(2, 'tonumber', 'base out of range');
    return [parseInBase(textArg(args, 0, 'tonumber'), base)];
  },
  tostring: (args) => [written(anyArg(args, 0, 'tostring'))],
  type: (args) => [typeOf(anyArg(args, 0, 'type'))],
  unpack: (args) => {
    const { list } = tableArg(args, 0, 'unpack');
    const from = optional(args, 1, intArg, 'unpack') ?? 1;
    const to = optional(args, 2, intArg, 'unpack') ?? list.length;
    if (to - from >= MOST_RESULTS) throw new LuaError('too many results to unpack');
    if (from >= 1 && to <= list.length) return list.slice(from - 1, Math.max(from - 1, to));
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => (args[0] as LuaTable).get(from + n));
  },
};

/** Redis' own pcall() hands on the words of a failed command and not its table. */
function textOfError(value: Value): Value {
  const err = value instanceof LuaTable ? value.get('err') : undefined;
  return typeof err === 'string' ? err : value;
}

function functionOrError(args: Value[]): () => Value[] {
  const [callee, ...rest] = args;
  if (typeof callee === 'function') return () => callee(rest);
  return () => {
    throw new LuaError(`attempt to call a ${typeOf(callee)} value`, -1);
  };
}

const MATH: Record<string, LuaFunction | number> = {
  huge: Infinity,
  pi: Math.PI,
  abs: (args) => [Math.abs(numberArg(args, 0, 'abs'))],
  ceil: (args) => [Math.ceil(numberArg(args, 0, 'ceil'))],
  exp: (args) => [Math.exp(numberArg(args, 0, 'exp'))],
  floor: (args) => [Math.floor(numberArg(args, 0, 'floor'))],
  fmod: (args) => [numberArg(args, 0, 'fmod') % numberArg(args, 1, 'fmod')],
  log: (args) => [Math.log(numberArg(args, 0, 'log'))],
  log10: (args) => [Math.log10(numberArg(args, 0, 'log10'))],
  // The first one stays unless another is really beyond it, which tells what becomes of NaN.
  max: (args) => [each(args, 'max', (best, value) => (value > best ? value : best))],
  min: (args) => [each(args, 'min', (best, value) => (value < best ? value : best))],
  modf: (args) => {
    const value = numberArg(args, 0, 'modf');
    return [Math.trunc(value), Number.isFinite(value) ? value - Math.trunc(value) : 0];
  },
  pow: (args) => [numberArg(args, 0, 'pow') ** numberArg(args, 1, 'pow')],
  sqrt: (args) => [Math.sqrt(numberArg(args, 0, 'sqrt'))],
};

function each(args: Value[], name: string, choose: (best: number, value: number) => number): number {
  let best = numberArg(args, 0, name);
  for (let i = 1; i < args.length; i++) best = choose(best, numberArg(args, i, name));
  return best;
}

const TABLE: Record<string, LuaFunction> = {
  concat: (args) => {
    const table = tableArg(args, 0, 'concat');
    const separator = optional(args, 1, textArg, 'concat') ?? '';
    const from = optional(args, 2, intArg, 'concat') ?? 1;
    const to = optional(args, 3, intArg, 'concat') ?? table.length;
    const parts: string[] = [];
    for (let i = from; i <= to; i++) {
      const text = asText(table.get(i));
      if (text === undefined) {
        throw new LuaError(`invalid value (${typeOf(table.get(i))}) at index ${i} in table for 'concat'`);
      }
      parts.push(text);
    }
    return [parts.join(separator)];
  },
  insert: (args) => {
    const { list } = tableArg(args, 0, 'insert');
    if (args.length === 2) (args[0] as LuaTable).set(list.length + 1, args[1]);
    else if (args.length === 3) list.splice(Math.max(0, intArg(args, 1, 'insert') - 1), 0, args[2]);
    else throw new LuaError("wrong number of arguments to 'insert'");
    return [];
  },
  maxn: (args) => [
    Math.max(
      0,
      ...tableArg(args, 0, 'maxn')
        .keys()
        .filter((key) => typeof key === 'number'),
    ),
  ],
  remove: (args) => {
    const { list } = tableArg(args, 0, 'remove');
    const at = optional(args, 1, intArg, 'remove') ?? list.length;
    return at >= 1 && at <= list.length ? list.splice(at - 1, 1) : [];
  },
  sort: (args) => {
    const { list } = tableArg(args, 0, 'sort');
    const less = optional(args, 1, functionArg, 'sort') ?? (([a, b]) => [isLess(a, b)]);
    list.sort((a, b) => (isTrue(less([a, b])[0]) ? -1 : isTrue(less([b, a])[0]) ? 1 : 0));
    return [];
  },
};

function isLess(a: Value, b: Value): boolean {
  if (typeof a === 'number' && typeof b === 'number') return a < b;
  if (typeof a === 'string' && typeof b === 'string') return a < b;
  throw new LuaError(`attempt to compare ${typeOf(a)} with ${typeOf(b)}`);
}

function library(entries: Record<string, Value>): LuaTable {
  const table = new LuaTable();
  for (const [name, value] of Object.entries(entries)) table.set(name, value);
  return table;
}

/** What every script finds. Of Redis' extra libraries (cjson, cmsgpack, bit, struct) there are none: no script uses them. */
export const STANDARD: Globals = Object.freeze({
  ...BASE,
  math: library(MATH),
  string: library(STRING),
  table: library(TABLE),
});
