import { describe, expect, it } from '@jest/globals';
import { eventually } from '../helpers/eventually.js';
import { shards } from './shards.js';

const here = shards();
const LEASE_MS = 200;
/** To Lua `nan`, `inf` and `1e300` are numbers. */
const JUNK = ['', 'x', 'nan', '-nan', 'inf', '-inf', '1e300', '-5', '0', '0.5', '9000000000000000', '9'.repeat(30), '{"a":', '\u0000\ufffd']; // prettier-ignore
const FIELDS = 'seenAt wokenAt graceUntil graceFrom lateAt longestLease claim leader isolator paused publishingPaused enqueued completed retried dead expired failed since'.split(' '); // prettier-ignore
/** One junk value after the other writes the same field; nothing else is shared. */
const each = (check: (junk: string) => Promise<void>) => Promise.all(JUNK.map(check));

const isToken = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;

describe('a damaged field of meta', () => {
  it.each(FIELDS)('%s: jobs are claimed, settled and extended by tokens that are numbers', async (field) => {
    await each(async (junk) => {
      const shard = here.fresh();
      const peer = shard.peer();
      const about = (value: unknown) => ({ field, junk, value });
      await shard.fill('A', 'B', 'C');
      await shard.meta({ [field]: junk });
      const first = await peer.take('A');
      expect(about(isToken(first))).toEqual(about(true));
      await shard.meta({ [field]: junk });
      const longer = Number(await peer.newSession().call('extend', [0, first, 'A', LEASE_MS]));
      expect(about(isToken(longer))).toEqual(about(true));
      await shard.meta({ [field]: junk });
      const { lost } = await peer.settle(longer, 'A', { verb: 'complete' });
      expect(about(lost)).toEqual(about([]));
      const { results } = await shard.inspector.move(shard.queue, ['B'], `${shard.queue}-2`);
      expect(about(results)).toEqual(about([{ id: 'B', outcome: 'moved' }]));
      const retried = await peer.take('C');
      await peer.settle(retried, 'C', { verb: 'retry', delayMs: 0, error: '{}' });
      await peer.settle(await peer.take('C'), 'C', { verb: 'dead', reason: 'exhausted', error: '{}', charge: true });
      expect(about(await shard.see('C'))).toEqual(about(expect.objectContaining({ state: 'dead', attempts: 2 })));
    });
  });

  it.each(FIELDS)('%s: what a dead worker ran comes back, and runs', async (field) => {
    await each(async (junk) => {
      const shard = here.fresh();
      const peer = shard.peer();
      const about = (value: unknown) => ({ field, junk, value });
      await shard.fill('A');
      const claim = await peer.take('A', { leaseMs: LEASE_MS });
      await shard.expire(claim);
      await shard.meta({ [field]: junk });
      // Where it looks like a jump of the clock, what runs is kept for one lease more.
      await eventually(async () => {
        await peer.step({ sweep: true, leaseMs: LEASE_MS });
        expect(about((await shard.see('A')).state)).toEqual(about('quarantined'));
      }, 10_000);
      await shard.meta({ [field]: junk });
      const { jobs, claim: again } = await peer.step({ quarantineLimit: 1, asksIsolation: true });
      expect(about(jobs.map(({ id }) => id))).toEqual(about(['A']));
      await peer.settle(again, 'A', { verb: 'complete' });
      expect(about(await shard.see('A'))).toEqual(about({ state: 'none' }));
    });
  });

  it.each(FIELDS)('%s: counts and totals are numbers, and the time since when is a time', async (field) => {
    await each(async (junk) => {
      const shard = here.fresh();
      const { producer, inspector, queue } = shard;
      await producer.enqueue(queue, 1, { id: 'A', delay: '1h' });
      await shard.meta({ [field]: junk });
      const { since, ...totals } = await inspector.totals(queue);
      const { lagMs, nextDueAt, paused, publishingPaused, ...counts } = await inspector.counts(queue);
      for (const value of [...Object.values(totals), ...Object.values(counts), lagMs]) {
        expect({ field, junk, value, usable: Number.isSafeInteger(value) && Number(value) >= 0 }).toMatchObject({ usable: true }); // prettier-ignore
      }
      for (const time of [since ?? new Date(), nextDueAt!]) expect(Number.isNaN(time.getTime())).toBe(false);
      expect({ field, junk, paused, publishingPaused }).toMatchObject({ paused: false, publishingPaused: false });
      await producer.enqueue(queue, 1, { id: 'B', delay: '1h' });
      expect(await inspector.counts(queue)).toMatchObject({ delayed: 2 });
    });
  });
});
