import { beforeEach, describe, expect, it } from '@jest/globals';
import { SCRIPT_NAMES, scriptSource } from '../../lib/lua/scripts.js';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

// Servers before 7.0 know no flags. There a script may go on in full memory once it has written anything.
describe('the scripts for servers that know no flags', () => {
  const here = shards({ legacy: true });
  let shard: Shard;
  let peer: Peer;
  beforeEach(() => {
    shard = here.fresh();
    peer = shard.peer();
  });

  it.each(SCRIPT_NAMES)('%s differs from the other text only in its head', (script) => {
    const [flagged, legacy] = [scriptSource(script, true), scriptSource(script, false)];
    expect(flagged).toMatch(/^#!lua( flags=(allow-oom|no-writes))?\n/);
    const body = flagged.slice(flagged.indexOf('\n') + 1);
    expect(legacy.endsWith(body)).toBe(true);
    const head = legacy.slice(0, legacy.length - body.length);
    expect(head).toBe(flagged.includes('allow-oom') ? "redis.call('ZREM', KEYS[1], '')\n" : '');
  });

  it('run a job from its enqueue through a failure and a lost lease to its end', async () => {
    await shard.producer.enqueue(shard.queue, 'v1', { id: 'A', delay: HOUR });
    await shard.producer.runNow(shard.queue, 'A');
    await peer.settle(await peer.take('A'), 'A', { verb: 'retry', delayMs: 0, error: '{}' });
    const claim = await peer.take('A', { isSole: true });
    await shard.expire(claim);
    await peer.step({ sweep: true });
    expect(await shard.see('A')).toMatchObject({ state: 'quarantined', attempts: 2 });
    const last = await peer.step({ quarantineLimit: 1 });
    await shard.producer.enqueue(shard.queue, 'v2', { id: 'A', onDuplicate: 'replace' });
    await peer.settle(last.claim, 'A', { verb: 'complete' });
    expect(await shard.see('A')).toMatchObject({ state: 'due', payload: 'v2' });
    await peer.settle(await peer.take('A'), 'A', { verb: 'complete' });
    expect(await shard.see('A')).toEqual({ state: 'none' });
  });

  it('recognise what is sent again', async () => {
    await shard.fill('A', 'B');
    const first = await peer.claim(1);
    expect((await peer.again()).jobs).toEqual(first.jobs);
    await peer.settle(first.claim, 'A', { verb: 'complete' });
    expect((await peer.again()).lost).toEqual([]);
  });

  it('bury, requeue, cancel, pause and purge', async () => {
    const { producer, inspector, queue } = shard;
    await shard.put('dead', 'A');
    expect(await inspector.requeueDead(queue, 'all')).toEqual({ requeued: 1, remaining: 0 });
    expect(await producer.cancel(queue, 'A')).toMatchObject({ outcome: 'cancelled' });
    await shard.fill('B');
    await inspector.pause(queue);
    expect((await peer.claim(1)).jobs).toEqual([]);
    expect(await inspector.purge(queue)).toEqual({ removed: 1 });
    expect(await inspector.counts(queue)).toMatchObject({ due: 0, dead: 0, paused: true });
  });
});
