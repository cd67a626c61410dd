import type { Command } from './command.js';
import { OK, ReplyError } from '../memory.replies.js';
import { integerOf } from './read-number.js';

/** @returns how many fields are new */
const set: Command['run'] = ({ keys }, [key, ...pairs]) => {
  if (pairs.length % 2 !== 0) throw new ReplyError("ERR wrong number of arguments for 'hset' command");
  return keys.write(key!, 'hash', (hash) => {
    const before = hash.size;
    for (let i = 0; i < pairs.length; i += 2) hash.set(pairs[i]!, pairs[i + 1]!);
    return hash.size - before;
  });
};

export const HASH_COMMANDS: Record<string, Command> = {
  HSET: { least: 3, run: set },
  HMSET: { least: 3, run: (context, args) => (set(context, args), OK) },
  HSETNX: {
    least: 3,
    most: 3,
    run: (context, args) => (context.keys.read(args[0]!, 'hash')?.has(args[1]!) ? 0 : set(context, args)),
  },
  HGET: { least: 2, most: 2, run: ({ keys }, [key, field]) => keys.read(key!, 'hash')?.get(field!) ?? null },
  HMGET: {
    least: 2,
    run: ({ keys }, [key, ...fields]) => {
      const hash = keys.read(key!, 'hash');
      return fields.map((field) => hash?.get(field) ?? null);
    },
  },
  HGETALL: { least: 1, most: 1, run: ({ keys }, [key]) => [...(keys.read(key!, 'hash') ?? [])].flat() },
  HKEYS: { least: 1, most: 1, run: ({ keys }, [key]) => [...(keys.read(key!, 'hash')?.keys() ?? [])] },
  HVALS: { least: 1, most: 1, run: ({ keys }, [key]) => [...(keys.read(key!, 'hash')?.values() ?? [])] },
  HLEN: { least: 1, most: 1, run: ({ keys }, [key]) => keys.read(key!, 'hash')?.size ?? 0 },
  HSTRLEN: { least: 2, most: 2, run: ({ keys }, [key, field]) => keys.read(key!, 'hash')?.get(field!)?.length ?? 0 },
  HEXISTS: { least: 2, most: 2, run: ({ keys }, [key, field]) => (keys.read(key!, 'hash')?.has(field!) ? 1 : 0) },
  HDEL: {
    least: 2,
    run: ({ keys }, [key, ...fields]) =>
      keys.write(key!, 'hash', (hash) => fields.filter((field) => hash.delete(field)).length),
  },
  HINCRBY: {
    least: 3,
    most: 3,
    run: ({ keys }, [key, field, by]) => {
      const step = integerOf(by!);
      return keys.write(key!, 'hash', (hash) => {
        const was = hash.get(field!) ?? '0';
        if (!/^(?:0|-?[1-9]\d{0,18})$/.test(was)) throw new ReplyError('ERR hash value is not an integer');
        hash.set(field!, String(Number(was) + step));
        return Number(was) + step;
      });
    },
  },
};
