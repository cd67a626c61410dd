import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { COMMANDS } from '../../lib/memory/memory.commands.js';
import { clientOf, World } from '../helpers/world.js';
import { numbers } from '../lua/crowd.js';

type Random = () => number;
type Make = (random: Random) => (string | number)[];

// Few keys, members and scores, so that commands meet what others left behind, of the right type or a wrong one.
const pick =
  <T>(from: readonly T[]) =>
  (random: Random) =>
    from[Math.floor(random() * from.length)]!;
const some =
  <T>(make: (random: Random) => T, most: number) =>
  (random: Random) =>
    Array.from({ length: 1 + Math.floor(random() * most) }, () => make(random));
const maybe =
  <T>(make: (random: Random) => T[]) =>
  (random: Random) =>
    random() < 0.4 ? make(random) : [];

const MEMBERS = ['a', 'b', 'B', 'ä', '10', '9', '', 'a b', '日本', '\0'];
const member = pick(MEMBERS);
const SCORES = ['1', '2', '2.5', '-1', '0', '1e3', '1700000000000.5', 'inf', '-inf', '3', '+4', '0x10'];
const score = (random: Random) => (random() < 0.03 ? pick(['x', '', 'nan', '1 ', '(1'])(random) : pick(SCORES)(random));
const bound = (random: Random) => (random() < 0.3 ? `(${score(random)}` : score(random));
const integer = pick(['0', '1', '2', '-1', '-2', '5', '-100', '100', 'x', '1.5', '01', '']);
const small = pick(['0', '1', '2', '3', '-1']);
const limit = maybe((random) => ['LIMIT', small(random), small(random)]);
const flags = (names: readonly string[]) => (random: Random) => (random() < 0.4 ? some(pick(names), 2)(random) : []);
const scores = maybe(() => ['WITHSCORES']);

const STREAM_ENDS = ['-', '+', '1', '3-3', '(3-3', '(2', '9', '(9-9', 'x'];

const MAKE: Record<string, Make> = {
  ZADD: (r) => [
    ...flags(['XX', 'NX', 'CH', 'GT', 'LT', 'INCR', 'xx'])(r),
    ...some((q) => [score(q), member(q)], 3)(r).flat(),
  ],
  ZINCRBY: (r) => [score(r), member(r)],
  ZREM: some(member, 3),
  ZCARD: () => [],
  ZSCORE: (r) => [member(r)],
  ZMSCORE: some(member, 4),
  ZRANK: (r) => [member(r)],
  ZREVRANK: (r) => [member(r)],
  ZCOUNT: (r) => [bound(r), bound(r)],
  ZRANGE: (r) => {
    const byScore = r() < 0.6;
    const ends = byScore ? [bound(r), bound(r)] : [integer(r), integer(r)];
    const options = [...(byScore ? ['BYSCORE'] : []), ...(r() < 0.4 ? ['REV'] : []), ...limit(r), ...scores(r)];
    return [...ends, ...options, ...(r() < 0.03 ? ['BYSCORE'] : [])];
  },
  ZREVRANGE: (r) => [integer(r), integer(r), ...scores(r)],
  ZRANGEBYSCORE: (r) => [bound(r), bound(r), ...limit(r), ...scores(r)],
  ZREVRANGEBYSCORE: (r) => [bound(r), bound(r), ...limit(r), ...scores(r)],
  ZPOPMIN: maybe((r) => [small(r)]),
  ZPOPMAX: maybe((r) => [small(r)]),
  ZREMRANGEBYSCORE: (r) => [bound(r), bound(r)],
  ZREMRANGEBYRANK: (r) => [integer(r), integer(r)],
  HSET: (r) => [...some((q) => [member(q), integer(q)], 3)(r).flat(), ...(r() < 0.05 ? ['odd'] : [])],
  HMSET: (r) => [member(r), integer(r)],
  HSETNX: (r) => [member(r), integer(r)],
  HGET: (r) => [member(r)],
  HMGET: some(member, 4),
  HLEN: () => [],
  HSTRLEN: (r) => [member(r)],
  HEXISTS: (r) => [member(r)],
  HDEL: some(member, 3),
  HINCRBY: (r) => [member(r), integer(r)],
  HGETALL: () => [],
  HKEYS: () => [],
  HVALS: () => [],
  SADD: some(member, 3),
  SREM: some(member, 3),
  SMEMBERS: () => [],
  SCARD: () => [],
  SISMEMBER: (r) => [member(r)],
  LPUSH: some(member, 3),
  RPUSH: some(member, 3),
  LPOP: () => [],
  RPOP: () => [],
  LLEN: () => [],
  LRANGE: (r) => [integer(r), integer(r)],
  XADD: (r) => [
    ...maybe((q) => ['MAXLEN', '=', pick(['0', '1', '2', '-1', 'x'])(q)])(r),
    pick(['1-1', '2', '3-3', '5', '7-1', '9-9', '11', '0-0', 'x'])(r),
    member(r),
    member(r),
  ],
  XLEN: () => [],
  XRANGE: (r) => [pick(STREAM_ENDS)(r), pick(STREAM_ENDS)(r), ...maybe((q) => ['COUNT', small(q)])(r)],
  XREVRANGE: (r) => [pick(STREAM_ENDS)(r), pick(STREAM_ENDS)(r), ...maybe((q) => ['COUNT', small(q)])(r)],
  GET: () => [],
  SET: (r) => [
    integer(r),
    ...flags(['NX', 'XX', 'GET', 'KEEPTTL'])(r),
    ...maybe((q) => [pick(['EX', 'PX', 'px'])(q), pick(['100000', '0', '-5', 'x'])(q)])(r),
  ],
  MGET: () => [],
  STRLEN: () => [],
  INCR: () => [],
  DECR: () => [],
  INCRBY: (r) => [integer(r)],
  DECRBY: (r) => [integer(r)],
  DEL: () => [],
  UNLINK: () => [],
  EXISTS: () => [],
  TYPE: () => [],
  EXPIRE: () => ['1000'],
  PEXPIRE: () => ['1000000'],
  PERSIST: () => [],
  TTL: () => [],
};
/** Whose order Redis leaves open. */
const UNORDERED = new Set(['HGETALL', 'HKEYS', 'HVALS', 'SMEMBERS']);
/** Not of one key, or told by the clock; the specs of the scripts and of the module see to them. */
const ELSEWHERE = [
  'PTTL',
  'DUMP',
  'RESTORE',
  'SCAN',
  'SSCAN',
  'ZSCAN',
  'DBSIZE',
  'FLUSHALL',
  'TIME',
  'PING',
  'ECHO',
  'INFO',
  'PUBLISH',
];

describe('commands in memory', () => {
  let world: World;
  const memory = clientOf('memory://');
  beforeAll(async () => {
    world = await World.open();
    await memory.connect();
  });
  afterAll(async () => {
    memory.disconnect();
    await world.close();
  });

  async function outcome(client: typeof memory, [name, ...args]: readonly string[]): Promise<unknown> {
    try {
      const reply = await client.call(name!, ...args);
      if (UNORDERED.has(name!)) return (reply as string[]).toSorted();
      return [reply].flat(3); // Members and their scores come in pairs from some commands.
    } catch (error) {
      return (error as Error).message;
    }
  }

  it('are all compared with those of a server', () => {
    expect([...Object.keys(MAKE), ...ELSEWHERE].sort()).toEqual([...COMMANDS.keys()].sort());
  });

  it.each(Array.from({ length: 20 }, (_, n) => n + 1))(
    'answer as a server does, in any order (seed %i)',
    async (seed) => {
      const next = numbers(seed);
      const random = () => next(1_000_000) / 1_000_000;
      const key = pick([`${world.prefix}:${seed}:x`, `${world.prefix}:${seed}:y`]);
      const names = Object.keys(MAKE);
      // Mostly one type at a time, or all of it would be about wrong types.
      const commands = Array.from({ length: 500 }, (_, n) => {
        const family = 'ZHSLGX'[Math.floor(n / 50) % 6]!;
        const name =
          random() < 0.85 ? pick(names.filter((one) => one.startsWith(family)))(random) : pick(names)(random);
        return [name, key(random), ...MAKE[name]!(random).map(String)];
      });
      const [real, here] = await Promise.all(
        [world.redis, memory].map((client) => Promise.all(commands.map((command) => outcome(client, command)))),
      );
      const different = commands
        .map((command, n) => ({ command: command.join(' '), real: real![n], here: here![n] }))
        .filter((one) => JSON.stringify(one.real) !== JSON.stringify(one.here));
      expect(different.slice(0, 5)).toEqual([]);
    },
  );
});
