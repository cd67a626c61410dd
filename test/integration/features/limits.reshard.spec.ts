import { describe, expect, it } from '@jest/globals';
import { fixed } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { groupNumberIn } from '../../../lib/job/envelope.js';
import { shardOfJob } from '../../../lib/shards/shard-hash.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { killedAfter } from '../../helpers/killed-after.js';
import { fleetOf, idsByShard, nameOfShard, problemsOf } from '../../helpers/sharded-groups.js';

const here = inAWorld();
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
let queues = 0;
const newQueue = () => `moved-${queues++}`;
const GROUPS = ['acme', 'bolt', 'crux', 'dune', 'echo', 'flux'];

const looker = (queue: string, shards?: number) =>
  here.start({ options: { ...(shards !== undefined && { queues: { [queue]: { shards } } }), consume: false } });

const drainer = (
  queue: string,
  shards: number | undefined,
  handle: (payload: any, job: DelayedJob) => unknown,
  options = {},
) =>
  here.start({
    providers: [handlerClass(queue, handle, { attempts: 2, backoff: fixed('1h'), ...options })],
    options: { drainTimeout: 0, ...(shards !== undefined && { queues: { [queue]: { shards } } }) },
  });

/** The limits that each shard has. */
const limitsIn = (queue: string, shards: number) =>
  Promise.all(numbers(shards).map(async (n) => (await here.world.read(`${queue}:${n}`)).meta['limits']));

describe('reshard() of a queue with groups', () => {
  it('from 1 to 4 to 2 while jobs run keeps the limits, and the order of each group', async () => {
    const queue = newQueue();
    const options = { groups: { concurrency: 1 }, globalConcurrency: 8 };
    const admin = await looker(newQueue());
    const at = (await here.world.now()) - 1_000;
    const orders = new Map<string, string[]>();
    let fleet = await fleetOf(here, 2, queue, undefined, options);
    const jobs = numbers(20).flatMap((n) =>
      GROUPS.map((group) => ({ payload: n, group, id: `${group}/${n}`, at: at + n })),
    );
    await fleet.producer.enqueueMany(queue, jobs);
    const runRounds = async (rounds: number) => {
      for (let round = 1; round <= rounds; round++) {
        await eventually(() => expect(fleet.running.size).toBe(GROUPS.length));
        expect(new Set(Array.from(fleet.running.values(), ({ group }) => group))).toEqual(new Set(GROUPS));
        if (round < rounds) fleet.endAll();
      }
    };
    const note = () => {
      for (const id of fleet.started) {
        const [group] = id.split('/') as [string];
        orders.set(group, [...(orders.get(group) ?? []), id]);
      }
    };
    await runRounds(2);
    for (const to of [4, 2]) {
      let isOver = false;
      const changed = admin.inspector.reshard(queue, { to }).finally(() => (isOver = true));
      // What runs may end; once the queue is shut nothing starts.
      await eventually(() => {
        fleet.endAll();
        expect(isOver).toBe(true);
      });
      await changed;
      expect(await problemsOf(here.world, queue, to)).toEqual([]);
      note();
      await Promise.all(fleet.apps.map(({ close }) => close()));
      fleet = await fleetOf(here, 2, queue, to, options);
      expect((await fleet.inspector.limits(queue)).limits).toEqual(options);
      await runRounds(2);
    }
    await eventually(() => {
      fleet.endAll();
      expect([...orders.values()].flat().length + fleet.started.length).toBe(jobs.length);
    });
    note();
    for (const group of GROUPS) expect(orders.get(group)).toEqual(numbers(20).map((n) => `${group}/${n}`));
  });

  it.each([[{ globalConcurrency: 3 }], [undefined]])(
    'keeps what an operator has set, also that there are no limits: %j',
    async (limits) => {
      const queue = newQueue();
      const config = { globalConcurrency: 8 };
      const { producer, inspector, close } = await drainer(queue, undefined, () => {}, config);
      await eventually(async () => expect(await inspector.limits(queue)).toEqual({ limits: config, setBy: 'config' }));
      await producer.enqueue(queue, 1, { delay: '1h' });
      await inspector.setLimits(queue, limits);
      await close();
      await (await looker(newQueue())).inspector.reshard(queue, { to: 2 });
      const after = await looker(queue, 2);
      expect(await after.inspector.limits(queue)).toEqual({ limits, setBy: 'operator', config });
    },
  );

  it('takes the limits that were set last, where the call that set them has not reached all shards', async () => {
    const queue = newQueue();
    const { producer, inspector, close } = await looker(queue, 2);
    await producer.enqueue(queue, 1, { delay: '1h' });
    await inspector.setLimits(queue, { globalConcurrency: 4 });
    const meta = here.world.key(`${queue}:1`, 'meta');
    const former = await here.world.redis.hgetall(meta);
    await inspector.setLimits(queue, { globalConcurrency: 8 });
    for (const field of ['limits', 'limitsRevision']) await here.world.redis.hset(meta, field, former[field]!);
    await here.world.redis.hset(here.world.key(`${queue}:0`, 'meta'), 'limitsBy', 'c');
    await close();
    await (await looker(newQueue())).inspector.reshard(queue, { to: 3 });
    const after = await looker(queue, 3);
    expect(await after.inspector.limits(queue)).toMatchObject({ limits: { globalConcurrency: 8 } });
    // None is taken for newer than the next ones.
    await after.inspector.setLimits(queue, { globalConcurrency: 6 });
    expect(await limitsIn(queue, 3)).toEqual(Array(3).fill('count:6'));
  });

  /** One of everything that a queue with groups can hold. */
  async function furnish(queue: string, shards: number) {
    const app = await drainer(
      queue,
      shards,
      (payload: string) => {
        if (payload === 'fails') throw new Error('it failed');
      },
      {
        keepCompleted: {},
        groups: { concurrency: 1, retries: 'block', rateLimit: { max: 50, per: '1h' } },
        globalConcurrency: 9,
      },
    );
    const { producer, inspector } = app;
    const many = (payload: string, name: string, options: object) =>
      producer.enqueueMany(
        queue,
        [...GROUPS, undefined].map((group, n) => ({
          payload,
          id: `${name}${n}`,
          ...(group !== undefined && { group }),
          ...options,
        })),
      );
    await many('waits', 'w', { delay: '2h', priority: 3, expiresIn: '1d' });
    await many('fails', 'x', { attempts: 1 });
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ dead: 7 }));
    await many('ok', 'u', { uniqueFor: '1h' });
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 7 }));
    await inspector.purge(queue, { states: ['completed'] });
    await many('ok', 'k', {});
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 14 }));
    // These block their groups until their next attempt.
    await many('fails', 'f', {});
    await many('burst', 'b', { delay: '1h', maxWait: '2h', onDuplicate: 'replace' });
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ failed: 14 }));
    for (const group of GROUPS.slice(0, 3)) {
      await producer.schedule(queue, `s-${group}`, { cron: '0 0 1 1 *' }, 'ok', { group });
    }
    await producer.schedule(queue, 'plain', { cron: '0 0 1 1 *' }, 'ok');
    await app.close();
  }

  /** All that is stored about jobs, whatever shard it is in, and what is in a shard where it should not be. */
  async function everything(queue: string, shards: number) {
    const all: Record<string, Record<string, unknown>> = {};
    const wrong: string[] = [];
    for (const n of numbers(shards)) {
      const {
        meta,
        idle: _,
        leases,
        ring: __,
        rates: ___,
        jobs,
        history,
        ...keys
      } = await here.world.read(nameOfShard(queue, n, shards));
      expect([leases, meta['limits'], meta['limitsBy']]).toEqual([
        {},
        'count:9 groupCount:1 groupRate:50/3600000 block:1',
        'c',
      ]);
      const envelopes: Record<string, string> = { ...jobs };
      for (const [id, kept] of Object.entries(history)) envelopes[id] ??= kept.slice(kept.indexOf('\n') + 1);
      for (const [name, map] of Object.entries({ ...keys, jobs, history })) {
        for (const [member, value] of Object.entries(map)) {
          const found = (all[name] ??= {});
          const id = name === 'grouped' ? member.slice(7) : member;
          // What nobody knows the group of is kept in all shards.
          const stays = name === 'unique' && !(id in envelopes);
          const home = shardOfJob(id, groupNumberIn(envelopes[id] ?? ''), shards);
          if (!stays && (member in found || home !== n)) wrong.push(`${name} of ${member} in shard ${n}`);
          found[member] = value;
        }
      }
    }
    expect(wrong).toEqual([]);
    return all;
  }
  it.each([
    [1, 4],
    [4, 6],
    [3, 2],
    [4, 1],
  ])('from %i to %i keeps everything that is stored, each job in the shard of its group', async (from, to) => {
    const queue = newQueue();
    await furnish(queue, from);
    const before = await everything(queue, from);
    expect(Object.keys(before)).toEqual(
      expect.arrayContaining(['dead', 'debounce', 'due', 'grouped', 'held', 'unique']),
    );
    expect(Object.keys(before['held']!)).toHaveLength(6);
    const admin = await looker(newQueue());
    await admin.inspector.reshard(queue, { from, to });
    expect(await everything(queue, to)).toEqual(before);
    expect(await problemsOf(here.world, queue, to)).toEqual([]);
    expect(await admin.inspector.reshard(queue, { to })).toEqual({ from: to, to, moved: 0 });

    const { producer, inspector } = await looker(queue, to);
    for (const [n, group] of [...GROUPS, undefined].entries()) {
      const named = group === undefined ? {} : { group };
      for (const name of ['w', 'x', 'k', 'f', 'b'])
        expect(await producer.get(queue, `${name}${n}`, named)).toMatchObject(named);
      expect(await producer.enqueue(queue, 'again', { id: `u${n}`, ...named })).toMatchObject({
        outcome: 'kept',
        state: 'completed',
      });
    }
    for (const group of GROUPS.slice(0, 3)) {
      const done = await producer.schedule(queue, `s-${group}`, { cron: '0 0 1 1 *' }, 'ok', { group });
      expect(done).toMatchObject({ outcome: 'kept' });
    }
    expect(await producer.unschedule(queue, 's-acme')).toMatchObject({ outcome: 'removed', occurrences: 1 });
    const dead = await inspector.requeueDead(queue, ['x0', 'x6'], { delay: '1h' });
    expect(dead).toEqual({ requeued: 2, remaining: 5 });
    expect((await idsByShard(here.world, queue, to)).flat()).toContain('x0');
    expect(await problemsOf(here.world, queue, to)).toEqual([]);
  });

  it('goes on where it was killed, at any step', async () => {
    const original = newQueue();
    await furnish(original, 3);
    const before = await everything(original, 3);
    const { inspector } = await looker(newQueue());
    for (let calls = 0; ; calls += 5) {
      const queue = newQueue();
      await copyOf(original, queue, 3);
      const killed = killedAfter(inspector, calls, calls % 2 === 0);
      const error = await inspector.reshard(queue, { to: 2 }).then(
        () => undefined,
        (thrown: unknown) => thrown as Error,
      );
      killed.restore();
      expect(error?.message ?? 'killed').toContain('killed');
      await inspector.reshard(queue, { to: 2 });
      expect(await everything(queue, 2)).toEqual(before);
      if (!error) break;
    }
  });
});

/** The keys of all shards, and what the name of the queue says, under another name. */
async function copyOf(queue: string, copy: string, shards: number): Promise<void> {
  const pipeline = here.world.redis.pipeline();
  for (const name of ['', ...numbers(shards).map((n) => `:${n}`)]) {
    const copies = here.world.shardKeys(copy + name).all;
    for (const [n, key] of here.world.shardKeys(queue + name).all.entries()) pipeline.copy(key, copies[n]!);
  }
  await pipeline.exec();
}
