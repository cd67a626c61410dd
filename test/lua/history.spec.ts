import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Settlement } from '../../lib/worker/settlement.js';
import type { Ask, Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let shard: Shard;
let peer: Peer;
beforeEach(() => {
  shard = here.fresh();
  peer = shard.peer();
});

const COMPLETE: Settlement = { verb: 'complete' };
const keepCompleted = { count: 100, ageMs: HOUR };
const end = (claim: number, ids: readonly string[], ask: Ask = {}) =>
  peer.step({ settle: ids.map((id) => [claim, id, COMPLETE] as const), keepCompleted, ...ask });
const kept = async () => Object.keys((await shard.read()).completed).sort();

describe('completed jobs that are kept', () => {
  it('are kept by the step that settles them, and once when it is sent again', async () => {
    await shard.fill('A', 'B');
    const { claim } = await peer.claim(2);
    await end(claim, ['A', 'B']);
    const before = await shard.stored();
    expect((await peer.again()).lost).toEqual([]);
    expect(await shard.stored()).toEqual(before);
    expect(await kept()).toEqual(['A', 'B']);
    expect((await shard.read()).history['A']).toMatch(/^\n1-[,-z]{14}\n"A"$/);
  });

  it('are not those whose lease was lost to another run', async () => {
    await shard.fill('A');
    const claim = await peer.take('A');
    await shard.expire(claim);
    await peer.step({ sweep: true });
    await shard.peer().step({ quarantineLimit: 1 });
    expect((await end(claim, ['A'])).lost).toEqual(['A']);
    expect(await kept()).toEqual([]);
  });

  it('are also those that ended late, while nobody had started them again', async () => {
    await shard.fill('A');
    const claim = await peer.take('A');
    await shard.expire(claim);
    await peer.step({ sweep: true });
    expect((await end(claim, ['A'])).lost).toEqual([]);
    expect(await kept()).toEqual(['A']);
    expect(await shard.producer.get(shard.queue, 'A')).toMatchObject({ state: 'completed', payload: 'A' });
  });

  it('are not those that a followup follows', async () => {
    await shard.fill('A', 'B');
    const { claim } = await peer.claim(2);
    await shard.producer.enqueue(shard.queue, 'new', { id: 'A', onDuplicate: 'replace' });
    await shard.producer.cancel(shard.queue, 'B', { running: true });
    await end(claim, ['A', 'B']);
    expect(await kept()).toEqual([]);
    expect(await shard.see('A')).toMatchObject({ state: 'due', payload: 'new' });
    expect(await shard.see('B')).toEqual({ state: 'none' });
  });

  it('give way to a job made anew under their id, in one call twice as well', async () => {
    await shard.fill('A');
    await end(await peer.take('A'), ['A']);
    const items = [{ payload: 1, id: 'A' }, { payload: 2 }, { payload: 3, id: 'A' }];
    const results = await shard.producer.enqueueMany(shard.queue, items);
    expect(results.map(({ outcome }) => outcome)).toEqual(['created', 'created', 'kept']);
    expect(await kept()).toEqual([]);
    expect((await shard.read()).history).toEqual({});
  });

  it('stay when the job made anew is refused', async () => {
    await shard.fill('A', 'B');
    await end(await peer.take('A'), ['A']);
    await peer.session.call('enqueue', [0, 'kd0 - - - 1', 'A', '\n1']);
    expect(await kept()).toEqual(['A']);
  });

  it.each([
    ['count', { count: 5, ageMs: HOUR }],
    ['age', { count: 1_000_000, ageMs: 1_000 }],
  ])('are trimmed by %s in bounded steps, faster than they come', async (_, rules) => {
    const now = await shard.now();
    const old = Array.from({ length: 1_000 }, (_unused, n) => `old${String(n).padStart(4, '0')}`);
    await here.world.redis.zadd(shard.key('completed'), ...old.flatMap((id) => [now - 5_000, id]));
    await here.world.redis.hset(shard.key('history'), ...old.flatMap((id) => [id, '\n1']));
    await peer.step({ sweep: true, keepCompleted: rules });
    expect(await kept()).toHaveLength(950);
    const ids = Array.from({ length: 200 }, (_unused, n) => `j${n}`);
    await shard.fill(...ids);
    await end((await peer.claim(200)).claim, ids, { keepCompleted: rules });
    expect(await kept()).toHaveLength(950 + 200 - 400);
    expect((await kept()).filter((id) => id.startsWith('j'))).toHaveLength(200);
  });

  it('are left alone by steps of workers that keep none', async () => {
    await shard.fill('A', 'B');
    await end(await peer.take('A'), ['A']);
    await here.world.redis.zadd(shard.key('completed'), 1, 'A');
    await end(await peer.take('B'), ['B'], { keepCompleted: undefined, sweep: true });
    expect(await kept()).toEqual(['A']);
  });
});
