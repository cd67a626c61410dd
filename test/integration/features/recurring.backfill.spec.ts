import { describe, expect, it } from '@jest/globals';
import { HOUR, hoursOf, scheduling, START } from '../../helpers/scheduling.js';

const { start } = scheduling();
const LONG = { from: START - 100 * HOUR, to: START + 100 * HOUR };

describe('a backfill', () => {
  it.each([
    ['cron', { cron: '0 * * * *' }],
    ['every', { every: '1h' }],
  ] as const)('makes no occurrence outside of from and until of its schedule: %s', async (_, times) => {
    const { harness, producer, runs } = await start();
    const between = { from: START + HOUR, until: START + 3 * HOUR };
    await producer.schedule('report', 's', times, null, between);
    await harness.advance('10h');
    expect(hoursOf(runs)).toEqual([1, 2, 3]);
    expect(await producer.backfillSchedule('report', 's', LONG)).toBe(3);
    await harness.runDue();
    expect(hoursOf(runs.slice(3)).sort((a, b) => a - b)).toEqual([1, 2, 3]);
    expect(await producer.backfillSchedule('report', 's', { from: START + 4 * HOUR, to: START + 9 * HOUR })).toBe(0);
  });

  it('goes back before a cron was made, and does not count for its limit; `every` has a time as often as it has run', async () => {
    const { harness, producer, runs } = await start();
    await producer.schedule('report', 'cron', { cron: '0 * * * *' }, null, { limit: 2 });
    await producer.schedule('report', 'every', { every: '1h' }, null);
    expect(await producer.backfillSchedule('report', 'cron', { from: START - 3 * HOUR, to: START })).toBe(4);
    expect(await producer.backfillSchedule('report', 'every', { from: START - 3 * HOUR, to: START })).toBe(1);
    await producer.unschedule('report', 'every');
    await harness.advance('5h');
    expect(hoursOf(runs.filter(({ job }) => job.schedule!.id === 'cron')).sort((a, b) => a - b)).toEqual([
      -3, -2, -1, 0, 1, 2,
    ]);
  });
});
