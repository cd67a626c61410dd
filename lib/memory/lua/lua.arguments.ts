import { asNumber, asText, LuaError, LuaTable, typeOf } from './lua.values.js';
import type { LuaFunction, Value } from './lua.values.js';

/** Places of arguments are counted from 0 here and from 1 in messages. */
type Read<T> = (args: Value[], at: number, name: string) => T;

export function argumentError(number: number, name: string, problem: string): LuaError {
  return new LuaError(`bad argument #${number} to '${name}' (${problem})`);
}

function expected(args: Value[], at: number, name: string, type: string): LuaError {
  const got = at < args.length ? typeOf(args[at]) : 'no value';
  return argumentError(at + 1, name, `${type} expected, got ${got}`);
}

export const textArg: Read<string> = (args, at, name) => {
  const text = asText(args[at]);
  if (text === undefined) throw expected(args, at, name, 'string');
  return text;
};

export const numberArg: Read<number> = (args, at, name) => {
  const number = asNumber(args[at]);
  if (number === undefined) throw expected(args, at, name, 'number');
  return number;
};

export const intArg: Read<number> = (args, at, name) => Math.trunc(numberArg(args, at, name));

export const tableArg: Read<LuaTable> = (args, at, name) => {
  const table = args[at];
  if (!(table instanceof LuaTable)) throw expected(args, at, name, 'table');
  return table;
};

export const functionArg: Read<LuaFunction> = (args, at, name) => {
  const value = args[at];
  if (typeof value !== 'function') throw expected(args, at, name, 'function');
  return value;
};

export function anyArg(args: Value[], at: number, name: string): Value {
  if (at >= args.length) throw argumentError(at + 1, name, 'value expected');
  return args[at];
}

export function optional<T>(args: Value[], at: number, read: Read<T>, name: string): T | undefined {
  return args[at] === undefined ? undefined : read(args, at, name);
}
