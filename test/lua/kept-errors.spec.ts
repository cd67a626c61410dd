import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Settlement } from '../../lib/worker/settlement.js';
import type { Peer } from './peer.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let shard: Shard;
let peer: Peer;
beforeEach(() => {
  shard = here.fresh();
  peer = shard.peer();
});

/** As a worker writes them: the whole record, and of an attempt the short one in a line of its own. */
const failure = (n: number): Settlement => ({
  verb: 'retry',
  delayMs: 0,
  error: `{"message":"whole ${n}"}\n{"message":"${n}"}`,
});
const kept = async (id: string) => {
  const job = (await shard.producer.get(shard.queue, id))!;
  return { last: job.lastError?.message, errors: job.errors?.map(({ message }) => message) };
};

async function fail(id: string, from: number, to: number): Promise<void> {
  for (let n = from; n <= to; n++) await peer.settle(await peer.take(id), id, failure(n));
}

describe('The errors of a job', () => {
  beforeEach(() => shard.fill('A'));

  it('are those of its last five attempts, the newest last', async () => {
    await fail('A', 1, 3);
    expect(await kept('A')).toEqual({ last: 'whole 3', errors: ['1', '2', '3'] });
    await fail('A', 4, 8);
    expect(await kept('A')).toEqual({ last: 'whole 8', errors: ['4', '5', '6', '7', '8'] });
    const { error } = failure(9) as { error: string };
    await peer.settle(await peer.take('A'), 'A', { verb: 'dead', reason: 'exhausted', error, charge: true });
    expect(await kept('A')).toEqual({ last: 'whole 9', errors: ['5', '6', '7', '8', '9'] });
    expect((await shard.inspector.list(shard.queue, 'dead')).jobs[0]).toMatchObject({
      deadReason: 'exhausted',
      errors: [{}, {}, {}, {}, { message: '9' }],
    });
  });

  it('stay when it dies of something else', async () => {
    await fail('A', 1, 5);
    const error = '{"message":"All attempts were used."}';
    await peer.settle(await peer.take('A'), 'A', { verb: 'dead', reason: 'leaseLost', error, charge: false });
    expect(await kept('A')).toEqual({ last: 'All attempts were used.', errors: ['1', '2', '3', '4', '5'] });
  });

  it('stay when a dead letter is requeued, and go with it', async () => {
    await fail('A', 1, 2);
    const { error } = failure(3) as { error: string };
    await peer.settle(await peer.take('A'), 'A', { verb: 'dead', reason: 'exhausted', error, charge: true });
    expect(await shard.inspector.requeueDead(shard.queue, 'all', { reason: 'exhausted' })).toMatchObject({
      requeued: 1,
    });
    await fail('A', 4, 4);
    expect(await kept('A')).toEqual({ last: 'whole 4', errors: ['1', '2', '3', '4'] });
    await shard.producer.cancel(shard.queue, 'A');
    expect((await shard.read()).errors).toEqual({});
  });

  it('are bounded in bytes, whatever is stored', async () => {
    await fail('A', 1, 1);
    await here.world.redis.hset(shard.key('errors'), 'A', `retry\n{}\n${'x'.repeat(70_000)}`);
    await fail('A', 2, 2);
    expect(await kept('A')).toEqual({ last: 'whole 2', errors: ['2'] });
    expect((await shard.read()).errors['A']!.length).toBeLessThan(100);
    await here.world.redis.hset(shard.key('errors'), 'A', 'no line');
    await fail('A', 3, 3);
    expect(await kept('A')).toEqual({ last: 'whole 3', errors: ['3'] });
  });

  it('of a job that was stored by something else do not end a step', async () => {
    await here.world.redis.hset(shard.key('errors'), 'A', '\n\n\n\n\n\n\n\n\n');
    await fail('A', 1, 1);
    expect(await kept('A')).toEqual({ last: 'whole 1', errors: ['1'] });
  });
});
