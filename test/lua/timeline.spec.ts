import { beforeEach, describe, expect, it } from '@jest/globals';
import { InvalidDelayError, InvalidOptionError } from '../../lib/index.js';
import type { TimelineOptions } from '../../lib/index.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

const here = shards();
const MINUTE = 60_000;
let shard: Shard;
let from: number;
beforeEach(async () => {
  shard = here.fresh();
  from = (await shard.now()) + HOUR;
});

const timeline = (options?: TimelineOptions) => shard.inspector.timeline(shard.queue, options);
const due = (...times: number[]) =>
  shard.producer.enqueueMany(
    shard.queue,
    times.map((at) => ({ payload: 1, at })),
  );

describe('timeline', () => {
  it('counts each job in the bucket of its due time, the first millisecond included and the last one not', async () => {
    await due(from, from + MINUTE - 1, from + MINUTE, from + 2 * MINUTE, from + 3 * MINUTE - 1, from + 3 * MINUTE);
    const found = await timeline({ from, to: from + 3 * MINUTE, buckets: 3 });
    expect(found).toMatchObject({ from: new Date(from), widthMs: MINUTE, counts: [2, 1, 2], before: 0, after: 1 });
    expect(found.to).toEqual(new Date(from + 3 * MINUTE));
  });

  it('accounts for every waiting job once: before, in a bucket, or after', async () => {
    await due(from - HOUR, from - 1, from, from + 1, from + 7, from + 99, from + 100, from + 2 * HOUR);
    const found = await timeline({ from, to: from + 100, buckets: 7 });
    expect(found).toMatchObject({ before: 2, after: 2 });
    expect(found.counts.reduce((all, one) => all + one)).toBe(4);
    expect([found.firstDueAt, found.lastDueAt]).toEqual([new Date(from - HOUR), new Date(from + 2 * HOUR)]);
  });

  it('has a narrower last bucket rather than jobs from behind its end', async () => {
    await due(from + 9, from + 10);
    // Four buckets of three milliseconds would end behind `to`.
    expect(await timeline({ from, to: from + 10, buckets: 4 })).toMatchObject({
      widthMs: 3,
      counts: [0, 0, 0, 1],
      after: 1,
    });
  });

  it('has no bucket of less than a millisecond', async () => {
    expect(await timeline({ from, to: from + 5, buckets: 120 })).toMatchObject({ widthMs: 1, counts: [0, 0, 0, 0, 0] });
  });

  it('begins now, by the clock of Redis, and goes over a day, unless told otherwise', async () => {
    const before = await shard.now();
    await due(before - 5_000, before + 23 * HOUR);
    const found = await timeline();
    const after = await shard.now();
    expect(found.from).toEqual(found.now);
    expect(found.now.getTime()).toBeGreaterThanOrEqual(before);
    expect(found.now.getTime()).toBeLessThanOrEqual(after);
    expect(found.to.getTime() - found.from.getTime()).toBe(24 * HOUR);
    expect(found.counts).toHaveLength(60);
    expect(found).toMatchObject({ overdue: 1, before: 1, after: 0 });
  });

  it('tells what is overdue also when it begins later; jobs in quarantine are overdue', async () => {
    await shard.put('quarantined', 'Q');
    await due(from - 2 * HOUR, from - 30 * MINUTE);
    expect(await timeline({ from, to: from + HOUR })).toMatchObject({ overdue: 2, before: 2 });
  });

  it('leaves out jobs that run, are dead or completed', async () => {
    for (const state of ['running', 'dead', 'completed'] as const) await shard.put(state, state);
    const found = await timeline({ from: 0, to: from });
    expect(found).toMatchObject({ overdue: 0, before: 0, after: 0, firstDueAt: undefined, lastDueAt: undefined });
    expect(found.counts.every((count) => count === 0)).toBe(true);
  });

  it.each<[TimelineOptions | Record<string, unknown>, new (...args: any[]) => Error, string]>([
    [{ buckets: 121 }, InvalidOptionError, 'timeline("QUEUE", { buckets }): 121 is not a whole number from 1 to 120.'],
    [{ buckets: 0 }, InvalidOptionError, 'buckets'],
    [{ from: 'tomorrow' }, InvalidDelayError, 'from'],
    [{ from: 5, to: 5 }, InvalidOptionError, 'is not behind `from`'],
    [{ to: 5 }, InvalidOptionError, 'is not behind `from`, which is now unless it is given.'],
    [{ until: 5 }, InvalidOptionError, 'unknown option "until"'],
  ])('refuses %j', async (options, type, message) => {
    const refused = timeline(options as TimelineOptions);
    await expect(refused).rejects.toThrow(type);
    await expect(refused).rejects.toThrow(message.replace('QUEUE', shard.queue));
  });
});
