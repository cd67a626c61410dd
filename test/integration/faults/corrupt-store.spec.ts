import { describe, expect, it } from '@jest/globals';
import { StoredDataError } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { randomOf } from '../../chaos/random.mjs';
import type { Random } from '../../chaos/random.mjs';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const KEYS = 'due running leases jobs followups attempts quarantine dead errors unique debounce idle meta'.split(' ');
const ROUNDS = 12;
const GOOD = 20;
const BAD = 12;
const LEASE_MS = 1_000;

const JUNK = [
  '',
  '!',
  'x',
  '1',
  '-1',
  '1e999',
  'nan',
  '\u0000\ufffd',
  '{"a":',
  '9'.repeat(30),
  '1-zzzz',
  'é'.repeat(100),
];

interface Spot {
  readonly random: Random;
  readonly id: string;
  set(hash: string, field: string, value: string): Promise<unknown>;
  score(zset: string, score: number | string, member: string): Promise<unknown>;
  remove(key: string, member: string): Promise<unknown>;
  record(): Promise<string>;
}

/** What may have become of one job, or of what stands beside it. */
const CORRUPTIONS: Record<string, (spot: Spot) => Promise<unknown>> = {
  'record of other bytes': async (spot) => {
    const bytes = (await spot.record()).split('');
    for (let n = spot.random.between(1, 5); n > 0; n--)
      bytes[spot.random.below(bytes.length)] = String.fromCharCode(spot.random.below(256));
    return spot.set('jobs', spot.id, bytes.join(''));
  },
  'record cut off': async (spot) => {
    const record = await spot.record();
    return spot.set('jobs', spot.id, record.slice(0, spot.random.below(record.length)));
  },
  'record of junk': (spot) => spot.set('jobs', spot.id, spot.random.pick(JUNK)),
  'record gone': (spot) => spot.remove('jobs', spot.id),
  'index gone': (spot) => spot.remove('due', spot.id),
  'odd score': (spot) => spot.score('due', spot.random.pick(['-inf', -1, 0.5, -1e300, 12345.678]), spot.id),
  'attempts of junk': (spot) => spot.set('attempts', spot.id, spot.random.pick(JUNK)),
  'error of junk': (spot) => spot.set('errors', spot.id, spot.random.pick(JUNK)),
  'followup without a run': (spot) => spot.set('followups', spot.id, spot.random.pick(JUNK)),
  'burst of junk': (spot) => spot.set('debounce', spot.id, spot.random.pick(JUNK)),
  'runs under a token of nobody': async (spot) => {
    await spot.remove('due', spot.id);
    return spot.score('running', spot.random.pick([0, -5, 17, 17.5, 1e15, '-inf']), spot.id);
  },
  'ghost that runs': (spot) => spot.score('running', 42, `ghost-${spot.id}`),
  'ghost in quarantine': (spot) => spot.score('quarantine', spot.random.pick([0, -1, 1e15]), `ghost-${spot.id}`),
  'ghost that is due': (spot) => spot.score('due', 0, `ghost-${spot.id}`),
  'lease of junk': (spot) =>
    spot.score('leases', spot.random.pick([0, -1, '-inf', '+inf', 1e300]), spot.random.pick(JUNK)),
  'sleeper of junk': (spot) => spot.score('idle', spot.random.pick([0, 1e300, '+inf']), spot.random.pick(JUNK)),
  'role of junk': (spot) => spot.set('meta', spot.random.pick(['leader', 'isolator']), spot.random.pick(JUNK)),
  'clock of junk': (spot) =>
    spot.set('meta', spot.random.pick(['seenAt', 'wokenAt', 'graceUntil', 'graceFrom']), spot.random.pick(JUNK)),
  'counter of junk': (spot) =>
    spot.set('meta', spot.random.pick(['completed', 'dead', 'enqueued', 'claim', 'longestLease', 'since']), spot.random.pick(JUNK)), // prettier-ignore
};

function spotOf(queue: string, id: string, random: Random): Spot {
  const { redis } = here.world;
  const key = (name: string) => here.world.key(queue, name);
  return {
    random,
    id,
    set: (hash, field, value) => redis.hset(key(hash), field, Buffer.from(value, 'latin1')),
    score: (zset, score, member) => redis.zadd(key(zset), score, member),
    remove: (name, member) => (name === 'jobs' ? redis.hdel(key(name), member) : redis.zrem(key(name), member)),
    record: async () => (await redis.hget(key('jobs'), id))!,
  };
}

describe('A store in which jobs were damaged', () => {
  it('runs all the others once, and those become dead letters or run', async () => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 1e6));
    const starts = new Map<string, number>();
    const handle = (_: unknown, { id }: DelayedJob) => void starts.set(id, (starts.get(id) ?? 0) + 1);
    const play = async (round: number) => {
      const random = randomOf(seed * ROUNDS + round);
      const queue = `corrupt-${round}`;
      const handler = handlerClass(queue, handle, { lease: LEASE_MS, concurrency: 8, attempts: 3 });
      const app = await here.start({ providers: [handler] });
      await app.inspector.pause(queue);
      const ids = random.shuffle([
        ...Array.from({ length: GOOD }, (_, n) => `good-${round}-${n}`),
        ...Array.from({ length: BAD }, (_, n) => `bad-${round}-${n}`),
      ]);
      await app.producer.enqueueMany(
        queue,
        ids.map((id) => ({ id, payload: { id } })),
      );
      const done: string[] = [];
      for (const id of ids.filter((one) => one.startsWith('bad'))) {
        const name = random.pick(Object.keys(CORRUPTIONS));
        done.push(`${id}: ${name}`);
        await CORRUPTIONS[name]!(spotOf(queue, id, random));
      }
      await app.inspector.resume(queue);
      const context = { seed, queue, done };
      await eventually(async () => {
        const now = await here.world.now();
        const { due, running, quarantine, meta } = await here.world.read(queue);
        const good = ids.filter((id) => id.startsWith('good') && starts.get(id) === 1).length;
        // A record of a newer layout is put off: a newer process will run it.
        const overdue = Object.keys(due).filter((id) => due[id]! <= now);
        const waiting = { due: overdue, running: Object.keys(running), quarantined: Object.keys(quarantine) };
        expect({ ...context, good, waiting, meta }).toEqual({
          ...context,
          good: GOOD,
          waiting: { due: [], running: [], quarantined: [] },
          meta,
        });
      }, 25_000);
      const { dead, due, jobs } = await here.world.read(queue);
      const left = Object.keys(jobs).filter((id) => !(id in dead) && !(id in due));
      // A record without an index waits for the next enqueue of its id.
      const orphans = done.filter((line) => line.endsWith('index gone')).map((line) => line.split(':')[0]!);
      expect({ ...context, left: left.filter((id) => !orphans.includes(id)) }).toEqual({ ...context, left: [] });
      expect({ ...context, dead: Object.keys(dead).filter((id) => id.startsWith('good')) }).toEqual({
        ...context,
        dead: [],
      });
    };
    await Promise.all(Array.from({ length: ROUNDS }, (_, round) => play(round)));
  });

  it('whose key is of a wrong type stops, says so, and goes on once that is mended: nothing lost, nothing twice', async () => {
    const starts = new Map<string, number>();
    const log: string[] = [];
    const handle = (_: unknown, { id }: DelayedJob) => void starts.set(id, (starts.get(id) ?? 0) + 1);
    const queues = [...KEYS.map((name) => `type-${name}`), 'healthy'];
    const providers = queues.map((queue) => handlerClass(queue, handle));
    const { producer, inspector } = await here.start({ providers, log });
    const { redis } = here.world;

    const spoil = async (name: string) => {
      const queue = `type-${name}`;
      await inspector.pause(queue);
      const items = Array.from({ length: GOOD }, (_, n) => ({ id: `${name}-${n}`, payload: {} }));
      await producer.enqueueMany(queue, items);
      const key = here.world.key(queue, name);
      await redis.rename(key, `${key}:aside`).catch(() => undefined); // there may be none
      await redis.set(key, 'junk');
      // Resuming reads the head, and fails where that cannot be read.
      const meta = name === 'meta' ? `${key}:aside` : here.world.key(queue, 'meta');
      await inspector.resume(queue).catch(() => redis.hdel(meta, 'paused'));
      await eventually(() => expect(log.join('\n')).toMatch(new RegExp(`error .*queue "${queue}".*WRONGTYPE`)), 15_000);
      const during = await producer.enqueue(queue, {}, { id: `${name}-during`, onDuplicate: 'replace' }).then(
        () => 'taken',
        (error: unknown) => error,
      );
      expect(during === 'taken' || during instanceof StoredDataError).toBe(true);
      // Who sleeps is only for waking: jobs may run without it. What could not be settled must not run.
      const early = name === 'idle' ? [] : items.filter(({ id }) => starts.has(id));
      expect(early).toEqual([]);

      await redis.del(key);
      await redis.rename(`${key}:aside`, key).catch(() => undefined);
      await eventually(() => expect(items.filter(({ id }) => !starts.has(id))).toEqual([]), 15_000);
      await eventually(async () => expect((await here.world.read(queue)).jobs).toEqual({}));
      expect(starts.has(`${name}-during`)).toBe(during === 'taken');
      expect(await here.world.violations(queue)).toEqual([]);
    };
    const spoiling = Promise.all(KEYS.map(spoil));
    await producer.enqueue('healthy', {}, { id: 'healthy' });
    await eventually(() => expect(starts.get('healthy')).toBe(1));
    await spoiling;
    expect(new Set(starts.values())).toEqual(new Set([1]));
  });
});
