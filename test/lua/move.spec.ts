import { beforeEach, describe, expect, it } from '@jest/globals';
import { TestSession } from './peer.js';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard, State } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let shard: Shard;
let peer: Peer;
let mover: TestSession;
beforeEach(() => {
  shard = here.fresh();
  peer = shard.peer();
  mover = new TestSession(shard);
});

const BYTES = 1024 * 1024;
const reserve = async (ids: string[], { bytes = BYTES, leaseMs = HOUR, session = mover } = {}) => {
  const [claim, ...words] = String(await session.call('reserve', [0, leaseMs, bytes, ...ids])).split(' ');
  return { claim: Number(claim), words };
};
const unreserve = (claim: number, leave: string[], stay: string[] = []) =>
  mover.call('unreserve', [0, claim, leave.length, ...leave, ...stay]);
/** All that is stored of jobs; counters, roles and the last claim number aside. */
const jobs = async () => {
  const { meta: _, idle: __, ...rest } = await shard.read();
  return rest;
};
const replace = (payload: unknown, delay = 0) =>
  shard.producer.enqueue(shard.queue, payload, { id: 'A', onDuplicate: 'replace', delay });

describe('holding jobs in order to move them', () => {
  it.each<[State, string]>([
    ['none', 'n'],
    ['running', 'r'],
    ['dead', 'x'],
    ['completed', 'n'],
    ['cancelled', 'n'],
    ['expired', 'n'],
  ])('a job that is %s is answered with %s and left alone', async (state, letter) => {
    await shard.put(state, 'A');
    const before = await jobs();
    expect(await reserve(['A'])).toEqual({ claim: 0, words: [letter] });
    expect(await jobs()).toEqual(before);
  });

  it.each<State>(['delayed', 'due', 'quarantined'])('a job that is %s is held: nobody can claim it', async (state) => {
    await shard.put(state, 'A');
    const { words } = await reserve(['A']);
    expect(words).toEqual([expect.stringMatching(/^h\d+$/)]);
    expect(await shard.see('A')).toEqual({ state: 'running', payload: 'old', attempts: 1, followup: 'held' });
    expect((await peer.step({ limit: 9, quarantineLimit: 9, sweep: true })).jobs).toEqual([]);
  });

  it.each<State>(['delayed', 'due'])('one that was %s is given back as it was', async (state) => {
    await shard.put(state, 'A');
    const before = await jobs();
    const { claim } = await reserve(['A']);
    expect(await unreserve(claim, [], ['A'])).toBe('b');
    expect(await jobs()).toEqual(before);
  });

  it.each<State>(['delayed', 'due'])(
    'one that was %s is as it was when the mover died, uncharged and not early, however it had been put off',
    async (state) => {
      await shard.put(state, 'A');
      const before = await jobs();
      const { claim } = await reserve(['A']);
      await shard.expire(claim);
      await peer.step({ sweep: true });
      expect(await jobs()).toEqual(before);
      expect((await peer.claim(9)).jobs.map(({ id }) => id)).toEqual(state === 'due' ? ['A'] : []);
    },
  );

  it('a job from the quarantine that is given back still runs alone', async () => {
    await shard.put('quarantined', 'A');
    const { claim } = await reserve(['A']);
    await unreserve(claim, [], ['A']);
    await shard.fill('B');
    expect((await peer.claim(9)).jobs.map(({ id }) => id)).toEqual(['B']);
    expect(await shard.see('A')).toMatchObject({ state: 'quarantined', attempts: 1 });
  });

  it('one that left leaves nothing behind', async () => {
    for (const state of ['delayed', 'quarantined', 'due'] as const) await shard.put(state, state);
    const ids = ['delayed', 'quarantined', 'due'];
    const { claim } = await reserve(ids);
    expect(await unreserve(claim, ids)).toBe('g g g');
    const { meta: _, idle: __, unique: ___, ...rest } = await shard.read();
    for (const [key, value] of Object.entries(rest)) expect([key, value]).toEqual([key, {}]);
    expect(await shard.inspector.totals(shard.queue)).toMatchObject({ completed: 0, expired: 0 });
  });

  it.each([
    ['left', true],
    ['is given back', false],
  ])('one replaced meanwhile is followed by its replacement, once, when it %s', async (_, leaves) => {
    await shard.put('delayed', 'A');
    const { claim } = await reserve(['A']);
    expect(await replace('new')).toMatchObject({ outcome: 'replaced', state: 'running' });
    expect(await (leaves ? unreserve(claim, ['A']) : unreserve(claim, [], ['A']))).toBe('f');
    expect(await shard.see('A')).toMatchObject({ state: 'due', payload: 'new' });
    expect((await peer.claim(9)).jobs).toHaveLength(1);
  });

  it('one replaced meanwhile is replaced also when the mover died', async () => {
    await shard.put('delayed', 'A');
    const { claim } = await reserve(['A']);
    await replace('new', HOUR);
    await shard.expire(claim);
    await peer.step({ sweep: true });
    expect(await shard.see('A')).toMatchObject({ state: 'delayed', payload: 'new' });
  });

  it.each([
    ['left, so that both queues have it', true],
    ['is given back', false],
  ])('one rescheduled meanwhile by enqueue keeps its payload when it %s', async (_, leaves) => {
    await shard.put('due', 'A');
    const { claim } = await reserve(['A']);
    const at = (await shard.now()) + 2 * HOUR;
    await shard.producer.enqueue(shard.queue, 'ignored', { id: 'A', onDuplicate: 'reschedule', at });
    expect(await (leaves ? unreserve(claim, ['A']) : unreserve(claim, [], ['A']))).toBe('f');
    expect(await shard.see('A')).toEqual({ state: 'delayed', payload: 'old', dueAt: at });
  });

  it.each([
    ['left', true],
    ['is given back', false],
  ])('one cancelled meanwhile is gone when it %s', async (_, leaves) => {
    await shard.put('delayed', 'A');
    const { claim } = await reserve(['A']);
    expect(await shard.producer.cancel(shard.queue, 'A')).toMatchObject({ outcome: 'running' });
    expect(await shard.producer.cancel(shard.queue, 'A', { running: true })).toMatchObject({ outcome: 'running' });
    expect(await (leaves ? unreserve(claim, ['A']) : unreserve(claim, [], ['A']))).toBe('c');
    expect(await shard.see('A')).toEqual({ state: 'none' });
  });

  it('a mover that lost its lease changes nothing any more', async () => {
    await shard.put('due', 'A');
    const { claim } = await reserve(['A']);
    await shard.expire(claim);
    const { claim: theirs } = await peer.step({ sweep: true }).then(() => peer.claim(1));
    const before = await jobs();
    expect(await unreserve(claim, ['A'])).toBe('l');
    expect(await jobs()).toEqual(before);
    expect((await peer.settle(theirs, 'A', { verb: 'complete' })).lost).toEqual([]);
  });

  it('what a dead mover held can be held again though no worker looks, and the dead one is fenced off', async () => {
    await shard.put('delayed', 'A');
    const before = await jobs();
    const first = await reserve(['A']);
    expect(await reserve(['A'])).toEqual({ claim: 0, words: ['r'] });
    await shard.expire(first.claim);
    const second = await reserve(['A'], { session: new TestSession(shard) });
    expect(second.words).toEqual(first.words);
    expect(await unreserve(first.claim, ['A'])).toBe('l');
    expect(await unreserve(second.claim, [], ['A'])).toBe('b');
    expect(await jobs()).toEqual(before);
  });

  it('what a worker runs cannot be held, also when its lease has ended', async () => {
    const claim = await shard.put('running', 'A');
    await shard.expire(claim);
    expect((await reserve(['A'])).words).toEqual(['r']);
    await replace('new');
    expect((await reserve(['A'])).words).toEqual(['r']);
  });

  it('sent again, both calls answer the same and change nothing', async () => {
    await shard.fill('A', 'B');
    const { claim, words } = await reserve(['A', 'B']);
    const held = await jobs();
    expect(await mover.again()).toBe([claim, ...words].join(' '));
    expect(await jobs()).toEqual(held);
    await unreserve(claim, ['A'], ['B']);
    const after = await jobs();
    expect(await mover.again()).toBe('g b');
    expect(await jobs()).toEqual(after);
  });

  it('as many as fit into the bytes, but at least one', async () => {
    const payload = 'x'.repeat(1_000);
    for (const id of ['A', 'B', 'C']) await shard.producer.enqueue(shard.queue, payload, { id });
    const first = await reserve(['none', 'A', 'B', 'C'], { bytes: 2_500 });
    expect(first.words.map(([letter]) => letter)).toEqual(['n', 'h', 'h']);
    expect((await reserve(['C'], { bytes: 10 })).words).toHaveLength(1);
  });

  it('while the queue is paused, and nobody is woken by what is given back then', async () => {
    await shard.fill('A');
    await shard.inspector.pause(shard.queue);
    const { claim, words } = await reserve(['A']);
    expect(words[0]![0]).toBe('h');
    await shard.meta({ wokenAt: 0 });
    await unreserve(claim, [], ['A']);
    expect((await shard.read()).meta['wokenAt']).toBe('0');
    await shard.inspector.resume(shard.queue);
    expect((await peer.claim(1)).jobs).toHaveLength(1);
  });

  it('the lease of the mover is not cut to that of workers', async () => {
    await shard.fill('A');
    const { claim } = await reserve(['A']);
    const deadline = (await shard.read()).leases[claim];
    await peer.step({ sweep: true, leaseMs: 1_000 });
    expect((await shard.read()).leases[claim]).toBe(deadline);
  });
});

describe('a job that is moved here', () => {
  const arrive = (id: string, spec: string, envelope: string) => peer.session.call('enqueue', [0, spec, id, envelope]);
  const ENVELOPE = '1x,,,,,,8,,,,,,Lzzzzzzz{"t":5}\n"moved"';

  it('is stored as it was, and due when it was', async () => {
    expect(await arrive('A', 'ma1500', ENVELOPE)).toMatch(/^\+\d+ c - 1500$/);
    const { due, jobs: stored } = await shard.read();
    expect([due, stored]).toEqual([{ A: 1_500 }, { A: ENVELOPE }]);
  });

  it.each<State>(['delayed', 'due', 'quarantined', 'running', 'dead'])(
    'leaves one alone that is %s under its id',
    async (state) => {
      await shard.put(state, 'A');
      const before = await jobs();
      expect(await arrive('A', 'ma1500', ENVELOPE)).toMatch(/^\d+ k /);
      expect(await jobs()).toEqual(before);
    },
  );

  it('is not let in by a uniqueness window, nor beyond the limit', async () => {
    await shard.producer.enqueue(shard.queue, 1, { id: 'A', uniqueFor: HOUR });
    await peer.settle(await peer.take('A'), 'A', { verb: 'complete' });
    expect(await arrive('A', 'ma1500', ENVELOPE)).toMatch(/^\d+ k c /);
    await shard.fill('B');
    expect(await arrive('C', 'ma1500 - - - 1', ENVELOPE)).toMatch(/^\d+ f - /);
    expect(await arrive('C', 'ma1500 - - - 2', ENVELOPE)).toMatch(/^\d+ c - 1500$/);
  });
});

it('jobs that changed their shard went in calls without a limit when it was their history or their errors that were long', async () => {
  await shard.fill('A', 'B', 'C');
  const long = 'x'.repeat(1_000);
  await here.world.redis.hset(shard.key('history'), { A: `\n${long}`, B: `\n${long}` });
  await here.world.redis.hset(shard.key('errors'), { C: `retry\n${long}` });
  const moved = async (...ids: string[]) =>
    ((await shard.run('moveOut', peer.session.key, ['', 1_500, ...ids])) as string[]).length / 11;
  expect(await moved('A', 'B')).toBe(1);
  expect(await moved('A', 'C')).toBe(1);
  await here.world.redis.del(shard.key('history'), shard.key('errors'));
  expect(await moved('A', 'B', 'C')).toBe(3);
});
