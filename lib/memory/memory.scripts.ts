import { textArg } from './lua/lua.arguments.js';
import { compile } from './lua/lua.compiler.js';
import type { Globals } from './lua/lua.frame.js';
import { STANDARD } from './lua/lua.library.js';
import { toGeneral } from './lua/lua.numbers.js';
import { parse } from './lua/lua.parser.js';
import { LuaError, LuaTable } from './lua/lua.values.js';
import type { LuaFunction, Value } from './lua/lua.values.js';
import { ReplyError, Status } from './memory.replies.js';
import type { Reply } from './memory.replies.js';

type RunCommand = (name: string, args: readonly string[]) => Reply;

/** By their text, for all stores of the process: each test has a store of its own, and they keep nothing between runs. */
const compiled = new Map<string, (globals: Globals) => Value[]>();

/** Runs scripts as Redis does: the same globals, and the same conversions between Lua and replies in both directions. */
export class ScriptEngine {
  readonly #redis: LuaTable;

  constructor(run: RunCommand) {
    this.#redis = redisLibrary(run);
  }

  /** @throws ReplyError */
  run(source: string, keys: readonly string[], args: readonly string[]): Reply {
    try {
      const script = scriptOf(source);
      const [result] = script({
        ...STANDARD,
        redis: this.#redis,
        KEYS: new LuaTable([...keys]),
        ARGV: new LuaTable([...args]),
      });
      const reply = replyOf(result);
      if (reply instanceof ReplyError) throw reply;
      return reply;
    } catch (error) {
      throw error instanceof LuaError ? replyErrorOf(error) : error;
    }
  }
}

/** @throws ReplyError */
function scriptOf(source: string): (globals: Globals) => Value[] {
  let script = compiled.get(source);
  if (!script) {
    try {
      script = compile(parse(source.replace(/^#![^\n]*/, '')));
    } catch (error) {
      if (!(error instanceof LuaError)) throw error;
      throw new ReplyError(`ERR Error compiling script (new function): ${error.message}`);
    }
    compiled.set(source, script);
  }
  return script;
}

function redisLibrary(run: RunCommand): LuaTable {
  const call: LuaFunction = (values) => {
    try {
      const name = values[0];
      if (name === undefined) throw new ReplyError('ERR Please specify at least one argument for this redis lib call');
      const args: string[] = [];
      for (let i = 1; i < values.length; i++) args.push(argumentOf(values[i]));
      return [valueOf(run(argumentOf(name), args))];
    } catch (error) {
      if (error instanceof ReplyError) throw new LuaError(errorTable(error.message));
      throw error;
    }
  };
  const library = new LuaTable();
  library.set('call', call);
  library.set('pcall', (args) => {
    try {
      return call(args);
    } catch (error) {
      if (error instanceof LuaError) return [error.value];
      throw error;
    }
  });
  library.set('error_reply', (args) => {
    const message = textArg(args, 0, 'error_reply').replace(/^-/, '');
    return [errorTable(message.includes(' ') ? message : `ERR ${message}`)];
  });
  library.set('status_reply', (args) => [single('ok', textArg(args, 0, 'status_reply'))]);
  library.set('log', () => []);
  for (const [level, name] of ['LOG_DEBUG', 'LOG_VERBOSE', 'LOG_NOTICE', 'LOG_WARNING'].entries()) {
    library.set(name, level);
  }
  return library;
}

function argumentOf(value: Value): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return toGeneral(value, 17); // More digits than tostring() has.
  throw new ReplyError('ERR Lua redis lib command arguments must be strings or integers');
}

function valueOf(reply: Reply): Value {
  if (reply instanceof ReplyError) return errorTable(reply.message);
  if (reply === null) return false;
  if (reply instanceof Status) return single('ok', reply.text);
  return Array.isArray(reply) ? new LuaTable(reply.map(valueOf)) : reply;
}

/** Numbers lose their fraction, false becomes null, and a list ends before its first nil. */
function replyOf(value: Value): Reply {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Math.trunc(value) + 0;
  if (value === true) return 1;
  if (!(value instanceof LuaTable)) return null;
  const [err, ok] = [value.get('err'), value.get('ok')];
  if (typeof err === 'string') return new ReplyError(err);
  if (typeof ok === 'string') return new Status(ok);
  const end = value.list.indexOf(undefined);
  return (end < 0 ? value.list : value.list.slice(0, end)).map(replyOf);
}

/** Redis 7 says behind each error where in the script it came from. */
function replyErrorOf({ value, line }: LuaError): ReplyError {
  const place = line === undefined || line < 0 ? '' : ` script: memory, on @user_script:${line}.`;
  const err = value instanceof LuaTable ? value.get('err') : undefined;
  if (typeof err === 'string') return new ReplyError(err + place);
  return new ReplyError(`ERR ${typeof value === 'string' ? value : 'unknown error'}${place}`);
}

function errorTable(message: string): LuaTable {
  return single('err', message);
}

function single(key: string, value: string): LuaTable {
  const table = new LuaTable();
  table.set(key, value);
  return table;
}
