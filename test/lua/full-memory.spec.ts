import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { BulkEnqueueError, RedisFullError } from '../../lib/index.js';
import type { EnqueueOptions } from '../../lib/index.js';
import { SCRIPT_NAMES } from '../../lib/lua/scripts.js';
import { Busy } from './busy.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';
import { difference, StoredBytes } from './stored-bytes.js';

describe.each([
  ['a server that knows script flags', false],
  ['the scripts for servers that do not', true],
])('full memory, with %s', (_, legacy) => {
  const here = shards({ server: { config: { 'maxmemory-policy': 'noeviction' } }, legacy });
  let shard: Shard;
  let busy: Busy;
  let stored: StoredBytes;
  beforeEach(async () => {
    shard = here.fresh();
    busy = await Busy.on(shard);
    stored = new StoredBytes(shard, [busy.session.key, busy.peer.session.key]);
    await here.world.redis.config('SET', 'maxmemory', '1');
  });
  afterEach(() => here.world.redis.config('SET', 'maxmemory', '0'));

  it('refuses what any client would store', async () => {
    await expect(here.world.redis.set(`${here.world.prefix}:probe`, 1)).rejects.toThrow('OOM');
  });

  it.each<[string, EnqueueOptions]>([
    ['a new job', {}],
    ['a new job with a window and a burst', { id: 'new', uniqueFor: HOUR, maxWait: HOUR }],
    ['a replacement', { id: 'delayed', onDuplicate: 'replace' }],
    ['a replacement of a job in quarantine', { id: 'quarantined', onDuplicate: 'replace' }],
    ['a replacement of a dead letter', { id: 'dead', onDuplicate: 'replace', maxWait: HOUR }],
    ['a replacement of a running job', { id: 'running', onDuplicate: 'replace' }],
    ['a reschedule by enqueue', { id: 'dead', onDuplicate: 'reschedule' }],
  ])('refuses %s and stores nothing of it', async (_name, options) => {
    const before = await stored.read();
    const error = await shard.producer
      .enqueue(shard.queue, 'x'.repeat(1_000), options)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RedisFullError);
    expect(error).toMatchObject({ code: 'ERR_DQ_REDIS_FULL', message: expect.stringContaining(shard.queue) });
    expect(error).not.toMatchObject({ maybeAccepted: true });
    expect(difference(before, await stored.read())).toEqual([]);
  });

  it.each(['update', 'signal'] as const)(
    'refuses another payload of a job by %s and keeps the one that it has',
    async (call) => {
      const before = await stored.read();
      const error = await shard.producer[call](shard.queue, 'delayed', 'x'.repeat(1_000)).catch(
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(RedisFullError);
      expect(difference(before, await stored.read())).toEqual([]);
    },
  );

  it('refuses many at once, and says of each that it was', async () => {
    const before = await stored.read();
    const items = ['new', 'delayed', 'running'].map((id) => ({ payload: 1, id, onDuplicate: 'replace' as const }));
    const error = await shard.producer.enqueueMany(shard.queue, items).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(BulkEnqueueError);
    expect(error).toMatchObject({ results: items.map(({ id }) => ({ id, error: expect.any(RedisFullError) })) });
    expect(difference(before, await stored.read())).toEqual([]);
  });

  it.each(
    SCRIPT_NAMES.filter(
      (name) => !['enqueue', 'moveIn', 'rezone', 'schedulesIn', 'signal', 'tick', 'update', 'zone'].includes(name),
    ),
  )('%s goes on', async (script) => {
    await expect(busy.calls[script]()).resolves.toBeDefined();
  });

  it('jobs are drained, which makes room', async () => {
    const { jobs, claim } = await busy.peer.claim(9);
    expect(jobs.length).toBeGreaterThan(0);
    const [first] = jobs;
    await busy.peer.settle(claim, first!.id, { verb: 'retry', delayMs: 0, error: 'x'.repeat(1_000) });
    expect(await shard.see(first!.id)).toMatchObject({ state: 'due', attempts: 1 });
    const again = await busy.peer.claim(9);
    expect(again.jobs.map(({ id }) => id)).toEqual([first!.id]);
    await busy.peer.settle(again.claim, first!.id, { verb: 'complete' });
    expect(await shard.see(first!.id)).toEqual({ state: 'none' });
  });

  it('what was refused is accepted once there is room', async () => {
    await expect(shard.producer.enqueue(shard.queue, 1, { id: 'new' })).rejects.toThrow(RedisFullError);
    await here.world.redis.config('SET', 'maxmemory', '0');
    expect(await shard.producer.enqueue(shard.queue, 1, { id: 'new' })).toMatchObject({ outcome: 'created' });
  });
});
