import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { SCRIPT_NAMES } from '../../lib/lua/scripts.js';
import { eventually } from '../helpers/eventually.js';
import { monitoring } from '../helpers/monitoring.js';
import { scheduleKeys } from '../../lib/redis/keys.js';
import { Busy } from './busy.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

const SOURCES = new URL('../../lib/lua/', import.meta.url);
const FILES = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.lua'));
const KEYS = ['shared/keys.lua', 'shared/schedule-keys.lua']
  .map((file) => readFileSync(new URL(file, SOURCES), 'utf8'))
  .join('\n')
  .split('\n')
  .flatMap((line) => /^(?:--#limits )?local ([A-Z, ]+) = KEYS/.exec(line)?.[1]!.split(', ') ?? []);

/** What scripts may do: all of it touches one element, some named ones, or a range with a limit. */
const READS = [
  'TIME',
  'GET',
  'HGET',
  'HMGET',
  'HLEN',
  'HEXISTS',
  'ZSCORE',
  'ZMSCORE',
  'ZCARD',
  'ZCOUNT',
  'ZRANK',
  'ZRANGE',
];
const WRITES = ['SET', 'HSET', 'HDEL', 'ZADD', 'ZREM', 'UNLINK', 'PUBLISH'];

describe('the sources of the scripts', () => {
  it.each(FILES)('%s touches declared keys only, by commands whose work is bounded', (file) => {
    const source = readFileSync(new URL(file, SOURCES), 'utf8').replace(/--.*$/gm, '');
    // Only what wakes others, and the mark that a late call leaves, may fail without failing the script.
    expect(
      source.match(
        /redis\.(?!call$|call\n|error_reply|pcall\('(?:PUBLISH'|\w+', (?:IDLE|CHANGED)\b|HSET', META, 'lateAt'))\w+/gm,
      ) ?? [],
    ).toEqual([]);
    for (const [call, command, key] of source.matchAll(/\bcall\('(\w+)'(?:, ([\w.]+))?[^\n]*/g)) {
      expect({ call, allowed: [...READS, ...WRITES].includes(command!) }).toEqual({ call, allowed: true });
      if (command === 'TIME' || command === 'PUBLISH') continue;
      // `index` is one of several declared keys, chosen just before.
      expect({ call, key, declared: KEYS.includes(key!) || key === 'index' }).toEqual({ call, key, declared: true });
      if (command !== 'ZRANGE') continue;
      const limited =
        call.includes("'LIMIT'") ||
        /'ZRANGE', \w+, (0|from|skip), ([01]|999|over - 1|before - 1|quarantineLimit - 1|many - 1|from \+ most - 1|skip \+ limit|from \+ (?:MOST|SWEEP) - 1)/.test(
          call,
        ) ||
        /'ZRANGE', (?:index|GROUPED|DEAD), (middle, middle\)|first, math\.min\(first \+ room, last\) - 1,|from, math\.min\(from \+ (?:limit, to - 1\)|most, past\) - 1)\))/.test(
          call,
        );
      expect({ call, limited }).toEqual({ call, limited: true });
    }
  });

  it('choose `index` among the declared keys', () => {
    const chosen = FILES.flatMap((file) => [
      ...readFileSync(new URL(file, SOURCES), 'utf8').matchAll(
        /\blocal index = ([^\n]+)|\b(?:take|sweep|tell|place_behind)\(([A-Z]+),/g,
      ),
    ]);
    const words = chosen.flatMap(([, expression, argument]) => (expression ?? argument!).match(/\b[A-Z]+\b/g) ?? []);
    expect(words.length).toBeGreaterThan(5);
    expect(words.filter((word) => !KEYS.includes(word))).toEqual([]);
  });
});

// A server of its own, because everything that it executes is read along.
const here = shards({ server: {} });

/** What scripts told Redis while `act` ran. */
async function scripted(act: () => Promise<unknown>): Promise<string[][]> {
  const said: string[][] = [];
  const monitor = await monitoring(here.world.redis);
  monitor.on('monitor', (_time: string, args: string[], source: string) => {
    if (source === 'lua' || args[0] === 'echo') said.push(args);
  });
  try {
    await act();
    await here.world.redis.echo('the end');
    await eventually(() => expect(said.at(-1)).toEqual(['echo', 'the end']));
    return said.slice(0, -1);
  } finally {
    monitor.disconnect();
  }
}

const keyOf = ([command, first]: string[]) => (command === 'TIME' || command === 'PUBLISH' ? undefined : first);

describe('what the scripts really do on a shard with something in every key', () => {
  it.each(SCRIPT_NAMES)('%s touches only keys that it was given', async (script) => {
    const shard = here.fresh();
    const busy = await Busy.on(shard);
    const done = await scripted(busy.calls[script]);
    expect(done.length).toBeGreaterThan(1);
    const given = [
      ...shard.keys.fixed,
      ...scheduleKeys(shard.keys.fixed),
      busy.session.key,
      busy.peer.session.key,
      undefined,
    ];
    expect(done.filter((args) => !given.includes(keyOf(args)))).toEqual([]);
    expect(done.filter(([command]) => ![...READS, ...WRITES].includes(command!))).toEqual([]);
  });

  it.each(SCRIPT_NAMES)('%s does no more on long keys than on short ones', async (script) => {
    const short = await workOn(script, 300);
    expect(await workOn(script, 1_500)).toEqual(short);
  });

  async function workOn(script: (typeof SCRIPT_NAMES)[number], length: number) {
    const shard = here.fresh();
    const busy = await Busy.on(shard);
    await lengthen(shard, length);
    // How long this took decides otherwise whether it is written: so it always is.
    await here.world.redis.hset(shard.key('meta'), 'seenAt', (await shard.now()) - 3_000);
    const done = await scripted(busy.calls[script]);
    await here.world.redis.unlink(...shard.keys.fixed, ...scheduleKeys(shard.keys.fixed));
    return { commands: done.length, words: done.flat().length };
  }
});

/** Adds that many entries to every key that a queue may have many in, in front of what is there where order counts. */
async function lengthen(shard: Shard, count: number): Promise<void> {
  const pipeline = here.world.redis.pipeline();
  const now = await shard.now();
  const ids = (name: string) => Array.from({ length: count }, (_, n) => `${name}-${String(n).padStart(5, '0')}`);
  const { jobs } = await shard.read();
  for (const name of ['due', 'quarantine', 'dead']) {
    const all = ids(name);
    pipeline.zadd(shard.key(name), ...all.flatMap((id) => [now - 60_000, id]));
    pipeline.hset(shard.key('jobs'), ...all.flatMap((id) => [id, jobs['plain']!]));
  }
  pipeline.zadd(shard.key('running'), ...ids('running').flatMap((id, n) => [n + 1, id]));
  pipeline.zadd(shard.key('leases'), ...ids('running').flatMap((_, n) => [n + 1, String(n + 1)]));
  pipeline.zadd(shard.key('unique'), ...ids('unique').flatMap((id) => [now - 1, id]));
  pipeline.zadd(shard.key('completed'), ...ids('kept').flatMap((id) => [now - 60_000, id]));
  pipeline.hset(shard.key('history'), ...ids('kept').flatMap((id) => [id, '\n1']));
  pipeline.zadd(shard.key('idle'), ...ids('idle').flatMap((id) => [now - 60_000, id]));
  pipeline.zadd(shard.key('idle'), ...ids('awake').flatMap((id) => [now + 60_000, id]));
  for (const name of ['followups', 'attempts', 'errors', 'debounce']) {
    pipeline.hset(shard.key(name), ...ids('stray').flatMap((id) => [id, '0 0 0 0']));
  }
  await pipeline.exec();
}

it('an idle step reads and writes nothing, or idle queues would fill the append-only file', async () => {
  const shard = here.fresh();
  const peer = shard.peer();
  let done: string[][];
  let since: number;
  do {
    since = await shard.now();
    await peer.step({ limit: 1, sweep: true });
    done = await scripted(() => peer.step({ limit: 1, sweep: true }));
  } while ((await shard.now()) - since >= 1_000); // After a second a step notes that it has looked.
  expect(done.filter(([command]) => WRITES.includes(command!))).toEqual([]);
});

it('claiming and completing a hundred jobs takes as many commands as two, and one takes fewer', async () => {
  const costOf = async (count: number) => {
    const shard = here.fresh();
    const peer = shard.peer();
    const ids = Array.from({ length: count }, (_, n) => `j${n}`);
    await shard.fill(...ids);
    const done = await scripted(async () => {
      const { claim } = await peer.claim(count);
      await peer.step({ settle: ids.map((id) => [claim, id, { verb: 'complete' }] as const) });
    });
    return done.length;
  };
  const two = await costOf(2);
  // Many: one more, which takes away again what makes a skiplist of `running`.
  expect([await costOf(15), await costOf(100)]).toEqual([two, two + 1]);
  expect(await costOf(1)).toBeLessThan(two);
});

it('the next page among thousands of jobs of one moment is found in a few commands, also when the last one of the page before has gone', async () => {
  const shard = here.fresh();
  const at = (await shard.now()) + 3_600_000;
  const ids = Array.from({ length: 20_000 }, (_, n) => `j${String(n).padStart(5, '0')}`);
  await here.world.redis.zadd(shard.key('due'), ...ids.flatMap((id) => [at, id]));
  await here.world.redis.zrem(shard.key('due'), ids[12_345]!);
  const page = async (n: number) => {
    let reply: unknown;
    const session = shard.keys.session('none');
    const done = await scripted(async () => {
      reply = await shard.run('list', session, ['l', '-', '-', at, ids[n]!, 2, 1_000_000]);
    });
    expect((reply as unknown[]).filter((_, i) => i % 5 === 1)).toEqual(ids.slice(n + 1, n + 3));
    expect(done.filter((args) => args.includes('LIMIT'))).toEqual([]);
    return done.length;
  };
  expect(await page(15_000)).toBeLessThan(20);
  expect(await page(12_345)).toBeLessThan(20 + Math.ceil(Math.log2(ids.length)));
  await here.world.redis.unlink(shard.key('due')); // ids alone are no jobs
});

it('completing jobs that nobody wants kept does not even look at what is kept', async () => {
  const shard = here.fresh();
  const peer = shard.peer();
  await shard.fill('A');
  const done = await scripted(async () => {
    await peer.step({ settle: [[await peer.take('A'), 'A', { verb: 'complete' }]], sweep: true, limit: 1 });
  });
  expect(done.filter((args) => [shard.key('completed'), shard.key('history')].includes(keyOf(args)!))).toEqual([]);
});
