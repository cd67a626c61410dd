import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { SCRIPT_NAMES } from '../../lib/lua/scripts.js';
import { Busy } from './busy.js';
import { Ear } from './ear.js';
import { TestSession } from './peer.js';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let ear: Ear;
beforeAll(async () => {
  ear = await Ear.open(here.world);
});
afterAll(() => ear.close());

let shard: Shard;
/** The leader and three idle processes; `b` and `c` sleep longest. */
let peers: Record<'leader' | 'a' | 'b' | 'c' | 'busy', Peer>;
beforeEach(async () => {
  shard = here.fresh();
  peers = { leader: shard.peer(), a: shard.peer(), b: shard.peer(), c: shard.peer(), busy: shard.peer() };
  await sleepUntil({ leader: 9_000, a: 6_000, b: 8_000, c: 7_000 });
  await shard.meta({ leader: `${peers.leader.name} ${(await shard.now()) + 5_000}` });
});

async function sleepUntil(ms: Partial<Record<keyof typeof peers, number>>): Promise<void> {
  const now = await shard.now();
  const entries = Object.entries(ms).flatMap(([name, time]) => [now + time, peers[name as keyof typeof peers].name]);
  await here.world.redis.zadd(shard.key('idle'), ...entries);
}

const woken = () => ear.woken(shard, peers);
const leader = async () => {
  const [name] = (await shard.read()).meta['leader']!.split(' ');
  return Object.entries(peers).find(([, peer]) => peer.name === name)?.[0];
};
const enqueue = (id: string, delay: number) => shard.producer.enqueue(shard.queue, 1, { id, delay });

describe('a new head wakes the leader and two idle processes, never all', () => {
  /** Whatever makes something the head, on a queue whose head is an hour away. */
  const HEADS: Record<string, { before?: () => Promise<unknown>; act: () => Promise<unknown> }> = {
    'an enqueue': { act: () => enqueue('A', 1_000) },
    'an enqueue that is due at once': { act: () => enqueue('A', 0) },
    'a replacement': {
      before: () => enqueue('A', 2 * HOUR),
      act: () => shard.producer.enqueue(shard.queue, 1, { id: 'A', onDuplicate: 'replace' }),
    },
    'a replacement among jobs that are later': {
      before: () => enqueue('A', 2 * HOUR),
      act: () =>
        shard.producer.enqueueMany(shard.queue, [
          { payload: 1, id: 'B', delay: 2 * HOUR },
          { payload: 1, id: 'A', onDuplicate: 'replace' },
          { payload: 1, id: 'C', delay: 2 * HOUR },
        ]),
    },
    'a reschedule': {
      before: () => enqueue('A', 2 * HOUR),
      act: () => shard.producer.reschedule(shard.queue, 'A', { delay: 1_000 }),
    },
    'a signal': { before: () => enqueue('A', 2 * HOUR), act: () => shard.producer.signal(shard.queue, 'A', 1) },
    'a run now': { before: () => enqueue('A', 2 * HOUR), act: () => shard.producer.runNow(shard.queue, 'A') },
    'a reschedule of many': {
      before: () => enqueue('A', 2 * HOUR),
      act: () => shard.inspector.bulk.reschedule(shard.queue, { ids: ['A', 'none'] }, { delay: 1_000 }),
    },
    'many that run now': {
      before: () => enqueue('A', 2 * HOUR),
      act: async () => shard.inspector.bulk.runNow(shard.queue, { from: (await shard.now()) + 1.5 * HOUR }),
    },
    'a retry': {
      before: () => claimed('A'),
      act: () => peers.busy.settle(claim, 'A', { verb: 'retry', delayMs: 1_000, error: '{}' }),
    },
    'a snooze': {
      before: () => claimed('A'),
      act: () => peers.busy.settle(claim, 'A', { verb: 'snooze', delayMs: 1_000 }),
    },
    'a release': {
      before: () => claimed('A'),
      act: () => peers.busy.settle(claim, 'A', { verb: 'release', dueAt: 1_000 }),
    },
    'a followup': {
      before: async () => {
        await claimed('A');
        await shard.producer.enqueue(shard.queue, 2, { id: 'A', onDuplicate: 'replace' });
      },
      act: () => peers.busy.settle(claim, 'A', { verb: 'complete' }),
    },
    'a take-back with a followup': {
      before: async () => {
        await claimed('A');
        await shard.producer.enqueue(shard.queue, 2, { id: 'A', onDuplicate: 'replace' });
        await shard.expire(claim);
      },
      act: () => peers.busy.step({ sweep: true }),
    },
    'a recovery that fills the quarantine': {
      before: async () => {
        await claimed('A');
        await shard.expire(claim);
      },
      act: () => peers.busy.step({ sweep: true }),
    },
    'a dead letter that is requeued': {
      before: async () => {
        await claimed('A');
        await peers.busy.settle(claim, 'A', { verb: 'dead', reason: 'discarded', error: '{}', charge: true });
      },
      act: () => shard.inspector.requeueDead(shard.queue, 'all'),
    },
    'a resume': {
      before: () => shard.inspector.pause(shard.queue),
      act: () => shard.inspector.resume(shard.queue),
    },
  };
  let claim: number;
  async function claimed(id: string): Promise<void> {
    await enqueue(id, 0);
    claim = await peers.busy.take(id);
  }

  it.each(Object.keys(HEADS))('%s', async (name) => {
    const { before, act } = HEADS[name]!;
    await enqueue('later', HOUR);
    await before?.();
    await woken();
    await act();
    expect(await woken()).toEqual(['leader', 'b', 'c']);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['job', () => shard.producer.enqueue(shard.queue, 1, { group: 'g', delay: 1_000 })],
    ['schedule', () => shard.producer.schedule(shard.queue, 's', { every: '1s' }, 1, { group: 'g' })],
  ])('the first %s of a group, also right after they were woken for another one', async (_, act) => {
    await enqueue('later', HOUR);
    await shard.meta({ wokenAt: await shard.now() });
    await woken();
    await act();
    expect(await woken()).toEqual(['leader', 'b', 'c']);
  });

  it('the first job of a group in a shard that was told before that its queue has groups', async () => {
    await enqueue('later', HOUR);
    await shard.meta({ wokenAt: await shard.now() });
    const redis = here.world.redis;
    await redis.set(shard.key('changed'), '1');
    await shard.run('limit', shard.keys.session('none'), ['', 'w']);
    expect(await redis.get(shard.key('changed'))).not.toBe('1');
    await woken();
    await shard.producer.enqueue(shard.queue, 1, { group: 'g', delay: 1_000 });
    expect(await woken()).toEqual(['leader', 'b', 'c']);
  });

  it('of whom those that sleep longest come first, and those that have woken up are left out', async () => {
    await sleepUntil({ b: -1, c: -1 });
    await enqueue('A', 0);
    expect(await woken()).toEqual(['leader', 'a']);
  });

  it('and not to those whose sleep lies absurdly far ahead, because the clock went back', async () => {
    await sleepUntil({ b: HOUR, c: HOUR });
    await enqueue('A', 0);
    expect(await woken()).toEqual(['leader', 'a']);
  });

  it('and not to those that went to sleep before the clock went back by minutes: they may be dead', async () => {
    await shard.meta({ seenAt: (await shard.now()) + 120_000 });
    await sleepUntil({ a: 125_000, b: 126_000, c: 127_000 });
    const { busy } = peers;
    await busy.step({ limit: 1, hasFreeSlots: true, refreshIdle: true });
    await enqueue('A', 1_000);
    expect(await woken()).toEqual(['busy']);
  });

  it('and without a leader to two idle ones', async () => {
    const now = await shard.now();
    const name = peers.busy.name;
    for (const role of ['', `${name} ${now - 1}`, `${name} ${now + HOUR}`, 'nonsense']) {
      await shard.meta({ leader: role });
      await enqueue('A', 0);
      expect(await woken()).toEqual(['leader', 'b']);
      await shard.producer.cancel(shard.queue, 'A');
    }
  });
});

describe('nobody is woken', () => {
  it('when the head does not change', async () => {
    await enqueue('head', 1_000);
    await woken();
    await enqueue('A', 2_000);
    await shard.producer.reschedule(shard.queue, 'A', { delay: HOUR });
    await shard.producer.reschedule(shard.queue, 'head', { delay: 5_000 });
    await shard.producer.cancel(shard.queue, 'head');
    expect(await woken()).toEqual([]);
  });

  it('when the queue is paused, nor when it is resumed and empty', async () => {
    await shard.inspector.pause(shard.queue);
    await enqueue('A', 0);
    await shard.producer.reschedule(shard.queue, 'A', { at: 1_000 });
    await peers.busy.leave();
    await shard.producer.cancel(shard.queue, 'A');
    await shard.inspector.resume(shard.queue);
    await shard.inspector.resume(shard.queue);
    expect(await woken()).toEqual([]);
  });

  it('twice, when the answer to the call was lost', async () => {
    const session = new TestSession(shard);
    await session.call('enqueue', [0, 'nd0', 'A', '\n1']);
    await session.again();
    expect(await woken()).toEqual(['leader', 'b', 'c']);
  });

  it('by the leader itself, when it has free slots: its own answer tells it the head', async () => {
    await enqueue('A', 0);
    const claim = await peers.leader.take('A', { hasFreeSlots: true });
    await woken();
    await peers.leader.step({
      settle: [[claim, 'A', { verb: 'retry', delayMs: 1_000, error: '{}' }]],
      hasFreeSlots: true,
    });
    expect(await woken()).toEqual([]);
  });
});

describe('a head that is overdue by 50 ms', () => {
  it('wakes again at the next enqueue, but at most once in 50 ms', async () => {
    await shard.fill('overdue');
    await shard.meta({ wokenAt: 0 });
    await woken();
    // One burst of packets: far less than 50 ms for all of them.
    const session = new TestSession(shard);
    await Promise.all(['A', 'B', 'C'].map((id) => session.call('enqueue', [0, 'nd0', id, '\n1'])));
    expect(await woken()).toEqual(['leader', 'b', 'c']);
  });

  it('wakes again when the last time lies in the future, because the clock went back', async () => {
    await shard.fill('overdue');
    await shard.meta({ wokenAt: (await shard.now()) + HOUR });
    await woken();
    await enqueue('A', 0);
    expect(await woken()).toEqual(['leader', 'b', 'c']);
  });

  it.each(['nan', 'inf', 'x', ''])('wakes again when the last time is damaged: %j', async (junk) => {
    await shard.fill('overdue');
    await shard.meta({ wokenAt: junk });
    await woken();
    await enqueue('A', 0);
    expect(await woken()).toEqual(['leader', 'b', 'c']);
  });

  it('wakes again by a step that leaves it', async () => {
    await shard.fill('overdue');
    await shard.meta({ wokenAt: 0 });
    await woken();
    await peers.busy.step({});
    expect(await woken()).toEqual(['leader', 'b', 'c']);
  });

  it('wakes others by a step of the leader that takes some of many, at most once in 50 ms', async () => {
    for (const id of ['A', 'B', 'C']) await shard.fill(id);
    await shard.meta({ wokenAt: 0 });
    await woken();
    const step = { limit: 1, hasFreeSlots: true };
    await Promise.all([peers.leader.step(step), peers.leader.step(step)]);
    expect(await woken()).toEqual(['b', 'c']);
  });

  it('wakes nobody by a step of the leader that takes the last one', async () => {
    await shard.fill('overdue');
    await shard.meta({ wokenAt: 0 });
    await woken();
    await peers.leader.step({ limit: 1, hasFreeSlots: true });
    expect(await woken()).toEqual([]);
  });

  it('wakes nobody by a step of a queue that is paused', async () => {
    await shard.fill('overdue');
    await shard.meta({ wokenAt: 0, paused: 1 });
    await woken();
    await peers.busy.step({});
    expect(await woken()).toEqual([]);
  });
});

describe('the role of the leader', () => {
  it('goes to a process with free slots when nobody has it', async () => {
    await shard.meta({ leader: '' });
    const reply = await peers.a.step({ limit: 1 });
    expect([reply.isLeader, await leader()]).toEqual([true, 'a']);
    expect((await peers.b.step({ limit: 1 })).isLeader).toBe(false);
  });

  it('is kept by the steps of who has it', async () => {
    await shard.meta({ leader: `${peers.leader.name} ${(await shard.now()) + 1_000}` });
    expect((await peers.leader.step({ limit: 1 })).isLeader).toBe(true);
    expect(Number((await shard.read()).meta['leader']!.split(' ')[1])).toBeGreaterThan((await shard.now()) + 4_000);
  });

  it('goes to the process that claims a job more than 20 ms late and has slots left', async () => {
    await shard.fill('late');
    const reply = await peers.a.claim(2);
    expect([reply.jobs.length, reply.isLeader, await leader()]).toEqual([1, true, 'a']);
  });

  it('is handed to an idle process when its holder fills its last slot, and wakes that one', async () => {
    await shard.fill('A', 'B');
    await woken();
    const reply = await peers.leader.claim(1);
    expect([reply.jobs.length, reply.isLeader, await leader()]).toEqual([1, false, 'b']);
    expect(await woken()).toEqual(['b']);
    expect((await shard.read()).idle).not.toHaveProperty([peers.leader.name]);
  });

  it('is nobody’s when its holder is full and nobody is idle', async () => {
    await here.world.redis.del(shard.key('idle'));
    await shard.fill('A');
    await woken();
    expect((await peers.leader.claim(1)).isLeader).toBe(false);
    expect((await shard.read()).meta['leader']).toBe('');
    expect(await woken()).toEqual([]);
  });

  it.each([
    ['rested, so that it may have died minutes ago', 422_000, ''],
    ['looked every few seconds, so that it lives', 10_000, 'b'],
  ])('that one is handed it or nobody: its entry is nearly over, and it %s', async (_, idleForMs, successor) => {
    await here.world.redis.del(shard.key('idle'));
    await peers.b.step({ limit: 1, refreshIdle: true, idleForMs });
    await here.world.redis.zincrby(shard.key('idle'), 5_000 - idleForMs, peers.b.name);
    await shard.fill('A');
    await woken();
    await peers.leader.claim(1);
    expect((await shard.read()).meta['leader']!.split(' ')[0]).toBe(successor && peers.b.name);
    // Told in any case: if it lives, it has the role as soon as it looks.
    expect(await woken()).toEqual(['b']);
  });

  it.each([
    ['rests', 422_000, 4_000, 2_000],
    ['has slept, and should look 2 s before the end of its entry', 7_000, 4_000, 2_000],
    ['has just begun to rest', 422_000, 0, 6_000],
    ['has just begun to sleep', 12_000, 0, 6_000],
  ])(
    'is handed on for no longer than until 6 s after its next holder was heard, which %s',
    async (_, idleForMs, agoMs, leftMs) => {
      await here.world.redis.del(shard.key('idle'));
      await peers.b.step({ limit: 1, refreshIdle: true, idleForMs });
      await here.world.redis.zincrby(shard.key('idle'), -agoMs, peers.b.name);
      await shard.fill('A');
      await peers.leader.claim(1);
      const [name, till] = (await shard.read()).meta['leader']!.split(' ');
      expect(name).toBe(peers.b.name);
      expect(Number(till)).toBeLessThanOrEqual((await shard.now()) + leftMs);
      expect((await peers.b.step({ limit: 1 })).isLeader).toBe(true);
    },
  );

  it('stays where it is while its holder has more free slots', async () => {
    await shard.fill('A');
    expect((await peers.leader.claim(1, { hasFreeSlots: true })).isLeader).toBe(true);
  });

  it('stays where it is, as the entry in idle does, when its holder has just asked for all that it has free', async () => {
    await shard.fill('A');
    const claim = await peers.leader.take('A', { hasFreeSlots: true, refreshIdle: true });
    await woken();
    const inFlight = await peers.leader.step({ renew: [{ claim }], claimInFlight: true });
    expect([inFlight.isLeader, await leader()]).toEqual([true, 'leader']);
    expect((await shard.read()).idle).toHaveProperty([peers.leader.name]);
    const retry = { verb: 'retry', delayMs: 1_000, error: '{}' } as const;
    await peers.leader.step({ settle: [[claim, 'A', retry]], claimInFlight: true });
    expect([await leader(), await woken()]).toEqual(['leader', []]);
  });

  it('is neither taken nor kept by a caller that does not wait, which nobody wakes either', async () => {
    expect((await peers.leader.claim(1, { looksOnce: true })).isLeader).toBe(false);
    expect([await leader(), await woken()]).toEqual(['b', ['b']]);
    await shard.meta({ leader: '' });
    expect((await peers.a.claim(1, { looksOnce: true })).isLeader).toBe(false);
    expect(await leader()).toBe(undefined);
    expect(Object.keys((await shard.read()).idle).toSorted()).toEqual([peers.b.name, peers.c.name].toSorted());
  });

  it('is not taken by a step inFlight one that asks for all that is free', async () => {
    await shard.meta({ leader: '' });
    expect([(await peers.a.step({ claimInFlight: true })).isLeader, await leader()]).toEqual([false, undefined]);
  });
});

describe('leaving', () => {
  it('hands the role on to an idle process, and tells it', async () => {
    await peers.leader.leave();
    expect(await leader()).toBe('b');
    expect(await woken()).toEqual(['b']);
    expect((await shard.read()).idle).not.toHaveProperty([peers.leader.name]);
  });

  it('without the role wakes others for what is due, because this process may have been woken in vain', async () => {
    await enqueue('A', 0);
    await woken();
    await peers.b.leave();
    expect(await leader()).toBe('leader');
    expect(await woken()).toEqual(['leader', 'c', 'a']);
  });

  it('an empty queue tells nobody', async () => {
    await peers.a.leave();
    expect(await woken()).toEqual([]);
    expect(Object.keys((await shard.read()).idle)).toHaveLength(3);
  });

  it('hands the role on for no longer than until 6 s after its next holder was heard', async () => {
    await here.world.redis.del(shard.key('idle'));
    await peers.b.step({ limit: 1, refreshIdle: true, idleForMs: 422_000 });
    await here.world.redis.zincrby(shard.key('idle'), -4_000, peers.b.name);
    await peers.leader.leave();
    const [name, till] = (await shard.read()).meta['leader']!.split(' ');
    expect(name).toBe(peers.b.name);
    expect(Number(till)).toBeLessThanOrEqual((await shard.now()) + 2_000);
  });

  it('leaves the role nobody’s when nobody is idle', async () => {
    await here.world.redis.del(shard.key('idle'));
    await peers.leader.leave();
    expect((await shard.read()).meta['leader']).toBe('');
  });
});

describe('idle processes', () => {
  it('enter when they have free slots and say so, and leave with their last slot', async () => {
    const before = await shard.now();
    await peers.busy.step({ limit: 1, refreshIdle: true, idleForMs: 7_000 });
    expect((await shard.read()).idle[peers.busy.name]).toBeGreaterThanOrEqual(before + 7_000);
    await shard.fill('A');
    await peers.busy.claim(1);
    expect((await shard.read()).idle).not.toHaveProperty([peers.busy.name]);
  });

  it('are counted when a step asks, and those that died in their sleep are forgotten', async () => {
    await sleepUntil({ a: -7_000, b: -8_000 });
    expect((await peers.busy.step({ limit: 1, refreshIdle: true })).idle).toBe(4);
    expect((await peers.busy.step({ limit: 1, refreshIdle: true })).idle).toBe(3);
    expect((await peers.busy.step({ limit: 1 })).idle).toBeUndefined();
  });
});

describe('a server that forbids to publish', () => {
  const strict = shards({ server: {} });

  it.each(SCRIPT_NAMES)('fails no %s: sleepers find out by themselves', async (script) => {
    const { redis } = strict.world;
    const busy = await Busy.on(strict.fresh());
    await redis.acl('SETUSER', 'default', '-publish');
    await expect(busy.calls[script]()).resolves.toBeDefined();
    await redis.acl('SETUSER', 'default', '+publish');
  });
});

describe('workers that rest', () => {
  const looks = { limit: 1, sweep: true, refreshIdle: true, idleForMs: 422_000 };
  const quiet = async () => (await peers.a.step(looks)).quiet;
  const held = () => here.world.redis.get(shard.key('changed'));
  const due = (inMs: number) => shard.producer.enqueue(shard.queue, 1, { id: 'A', delay: inMs });
  beforeEach(async () => {
    shard = here.fresh();
    peers = { ...peers, a: shard.peer(), busy: shard.peer() };
  });

  it('may do so where nothing is stored, and are told what the key holds', async () => {
    expect(await quiet()).toMatchObject({ held: await held() });
    expect(await held()).toMatch(/^\d+$/);
  });

  it('may do so until the head is due, a dead letter is too old, or a completed job is', async () => {
    const { dueAt } = await due(HOUR);
    expect(await quiet()).toMatchObject({ until: dueAt.getTime() });
    const now = await shard.now();
    await shard.put('dead', 'B');
    await here.world.redis.zadd(shard.key('dead'), now, 'B');
    const ageMs = 60_000;
    const step = { ...looks, deadLetters: { max: 10, maxAgeMs: ageMs } };
    expect((await peers.a.step(step)).quiet).toMatchObject({ until: now + ageMs });
    await here.world.redis.zadd(shard.key('completed'), now, 'done');
    await here.world.redis.hset(shard.key('history'), 'done', '\n1-??????????????\n1');
    const keeping = { ...step, keepCompleted: { count: 10, ageMs: ageMs / 2 } };
    expect((await peers.a.step(keeping)).quiet).toMatchObject({ until: now + ageMs / 2 });
  });

  it.each<[string, () => Promise<unknown>]>([
    ['a job is due soon', () => due(9_000)],
    ['a job runs', async () => [await shard.fill('A'), await peers.busy.take('A')]],
    ['a job is in quarantine', () => shard.put('quarantined', 'A')],
  ])('may not while %s', async (_, before) => {
    await before();
    expect(await quiet()).toBeUndefined();
  });

  it('may not while nobody would tell them of a job: they have no entry in idle, or one that ends before their rest', async () => {
    const look = { limit: 1, sweep: true };
    expect((await peers.a.step(look)).quiet).toBeUndefined();
    expect((await peers.a.step({ ...look, refreshIdle: true })).quiet).toBeUndefined();
    expect(await quiet()).toBeDefined();
    expect((await peers.a.step(look)).quiet).toBeDefined();
  });

  it('raise layout 1 to 2 with the first step, so that no older build changes jobs unheard', async () => {
    await due(HOUR);
    await shard.meta({ layout: 1 });
    await peers.busy.step({});
    expect((await shard.read()).meta['layout']).toBe('2');
  });

  it('look again at once where a sweep has left something behind', async () => {
    const put = (key: 'dead' | 'unique', score: number) =>
      here.world.redis.zadd(shard.key(key), ...Array.from({ length: 60 }, (_, n) => [score, `${n}`]).flat());
    const now = await shard.now();
    await put('dead', now);
    const few = { ...looks, deadLetters: { max: 1, maxAgeMs: HOUR } };
    expect((await peers.a.step(few)).quiet).toMatchObject({ until: 0 });
    expect((await peers.a.step(few)).quiet).toMatchObject({ until: now + HOUR });
    await put('unique', now - 1);
    expect((await peers.a.step(few)).quiet).toMatchObject({ until: 0 });
    expect((await peers.a.step(few)).quiet).toMatchObject({ until: now + HOUR });
  });

  it.each<[string, () => Promise<unknown>, () => Promise<unknown>]>([
    ['a first job', async () => {}, () => due(HOUR)],
    ['a job before all others', () => due(2 * HOUR), () => shard.producer.enqueue(shard.queue, 1, { delay: HOUR })],
    [
      'the first job of a group, right after another one',
      () => due(2 * HOUR),
      async () => {
        await shard.meta({ wokenAt: await shard.now() });
        await shard.producer.enqueue(shard.queue, 1, { group: 'g', delay: HOUR });
      },
    ],
    [
      'a job that is put forward',
      () => due(2 * HOUR),
      () => shard.producer.reschedule(shard.queue, 'A', { delay: HOUR }),
    ],
    ['a signal', () => due(2 * HOUR), () => shard.producer.signal(shard.queue, 'A', 2)],
    ['a requeued dead letter', () => shard.put('dead', 'A'), () => shard.inspector.requeueDead(shard.queue, 'all')],
    ['a pause', async () => {}, () => shard.inspector.pause(shard.queue)],
    ['the end of a pause', () => shard.inspector.pause(shard.queue), () => shard.inspector.resume(shard.queue)],
    ['limits', async () => {}, () => shard.inspector.setLimits(shard.queue, { globalConcurrency: 2 })],
    ['a schedule', async () => {}, () => shard.producer.schedule(shard.queue, 's', { every: '1h' }, 1)],
  ])('%s changes the key, whether or not anybody is told', async (_, before, act) => {
    await before();
    await quiet();
    const was = await held();
    await act();
    expect(await held()).not.toBe(was);
  });

  it('enter again when the clock went back: a step that finds it empties idle, and changes the key', async () => {
    expect(await quiet()).toBeDefined();
    const was = await held();
    await shard.meta({ seenAt: (await shard.now()) + 1_100 });
    await peers.busy.step({ limit: 1 });
    expect((await shard.read()).idle).not.toHaveProperty([peers.a.name]);
    expect(await held()).not.toBe(was);
  });

  it('a retry of a job that was the only one changes the key, although the worker that settles it is the leader', async () => {
    await quiet();
    await shard.fill('A');
    const claim = await peers.a.take('A', { hasFreeSlots: true });
    const was = await held();
    await peers.a.step({
      settle: [[claim, 'A', { verb: 'retry', delayMs: HOUR, error: '{}' }]],
      limit: 1,
      hasFreeSlots: true,
    });
    expect(await held()).not.toBe(was);
  });

  it('reading, claiming and completing change nothing', async () => {
    await quiet();
    await shard.fill('A');
    const was = await held();
    const claim = await peers.busy.take('A');
    await shard.inspector.counts(shard.queue);
    await peers.busy.settle(claim, 'A', { verb: 'complete' });
    expect(await held()).toBe(was);
  });
});
