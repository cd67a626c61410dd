import type { Command } from './command.js';
import { OK, ReplyError, Status } from '../memory.replies.js';
import { integerOf } from './read-number.js';

const remove: Command = {
  least: 1,
  run: ({ keys }, names) => names.filter((name) => keys.delete(name)).length,
};

function expiring(unit: number): Command {
  return {
    least: 2,
    most: 2,
    run: ({ keys, now }, [key, amount]) => (keys.expire(key!, now + integerOf(amount!) * unit) ? 1 : 0),
  };
}

function lifetime(unit: number): Command {
  return {
    least: 1,
    most: 1,
    run: ({ keys, now }, [key]) => {
      if (keys.typeOf(key!) === 'none') return -2;
      const end = keys.expiryOf(key!);
      return end === undefined ? -1 : Math.round((end - now) / unit);
    },
  };
}

/** What start-up checks and health read: of the Redis that this store is held to, and without a limit or an eviction. */
const INFO = [
  '# Server',
  'redis_version:7.0.15',
  'redis_mode:standalone',
  'server_name:memory',
  '# Memory',
  'used_memory:0',
  'maxmemory:0',
  'maxmemory_policy:noeviction',
  '# Persistence',
  'aof_enabled:0',
  'rdb_saves:0',
  '# Replication',
  'role:master',
  'connected_slaves:0',
  '',
].join('\r\n');

export const KEY_COMMANDS: Record<string, Command> = {
  DEL: remove,
  UNLINK: remove,
  EXISTS: { least: 1, run: ({ keys }, names) => names.filter((name) => keys.typeOf(name) !== 'none').length },
  TYPE: { least: 1, most: 1, run: ({ keys }, [key]) => new Status(keys.typeOf(key!)) },
  EXPIRE: expiring(1_000),
  PEXPIRE: expiring(1),
  PERSIST: {
    least: 1,
    most: 1,
    run: ({ keys }, [key]) => (keys.expiryOf(key!) !== undefined && keys.expire(key!, undefined) ? 1 : 0),
  },
  TTL: lifetime(1_000),
  PTTL: lifetime(1),
  DUMP: { least: 1, most: 1, run: ({ keys }, [key]) => keys.dump(key!) ?? null },
  RESTORE: {
    least: 3,
    run: ({ keys, now }, [key, ttl, dump, ...options]) => {
      const replaces = options.some((option) => option.toUpperCase() === 'REPLACE');
      if (!replaces && keys.typeOf(key!) !== 'none') throw new ReplyError('BUSYKEY Target key name already exists.');
      keys.restore(key!, dump!, ttl === '0' ? undefined : now + integerOf(ttl!));
      return OK;
    },
  },
  // All at once, whatever COUNT says; MATCH knows `*` only.
  SCAN: {
    least: 1,
    run: ({ keys }, [, ...options]) => {
      const at = options.findIndex((option) => option.toUpperCase() === 'MATCH');
      const match = at < 0 ? /^/ : globOf(options[at + 1]!);
      return ['0', keys.names().filter((name) => match.test(name))];
    },
  },
  DBSIZE: { least: 0, most: 0, run: ({ keys }) => keys.names().length },
  FLUSHALL: { least: 0, run: ({ keys }) => (keys.clear(), OK) },
  TIME: {
    least: 0,
    most: 0,
    run: ({ now }) => [String(Math.floor(now / 1_000)), String(Math.floor((now % 1_000) * 1_000))],
  },
  PING: { least: 0, most: 1, run: (_, [text]) => text ?? new Status('PONG') },
  ECHO: { least: 1, most: 1, run: (_, [text]) => text! },
  INFO: { least: 0, run: () => INFO },
  PUBLISH: { least: 2, most: 2, run: (context, [channel, message]) => context.publish(channel!, message!) },
};

/** A pattern of channels or keys, of which `*` is the only sign that stands for something else. */
export function globOf(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}
