import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { channelName } from '../../../lib/delay-queue.channels.js';
import type { OccurrencesSkippedMessage } from '../../../lib/delay-queue.channels.js';
import type { ScheduleSnapshot } from '../../../lib/index.js';
import { HOUR, hoursOf, scheduling, START } from '../../helpers/scheduling.js';

const { start } = scheduling();
const told: OccurrencesSkippedMessage[] = [];
const listen = (message: unknown) => void told.push(message as OccurrencesSkippedMessage);
beforeEach(() => {
  told.length = 0;
  subscribe(channelName('occurrencesSkipped'), listen);
});
afterEach(() => void unsubscribe(channelName('occurrencesSkipped'), listen));

/** Nobody works: one occurrence is due since an hour, one waits for its jitter, one is triggered, and one is to come. */
async function waiting() {
  const started = await start(() => undefined);
  const { harness, inspector, producer } = started;
  await inspector.pause('report');
  await producer.schedule('report', 's', { every: '1h' }, 'x', { overlap: 'allow' });
  await harness.setNow(START + 1.5 * HOUR);
  await producer.schedule('report', 's', { every: '1h' }, 'x', { overlap: 'allow', jitter: '20m' });
  await harness.setNow(START + 2 * HOUR);
  const due = (await inspector.list('report', 'due')).jobs.map(({ id }) => id);
  const delayed = (await inspector.list('report', 'delayed')).jobs.map(({ id }) => id);
  expect([due.length, delayed.length]).toEqual([1, 1]);
  await producer.triggerSchedule('report', 's');
  // This makes the one to come.
  await producer.schedule('report', 's', { every: '1h' }, 'y', { overlap: 'allow', jitter: '20m' });
  const [{ counts }] = (await producer.listSchedules('report')).schedules as [ScheduleSnapshot];
  return { ...started, made: counts.made };
}
const MISSED = { schedule: 's', reason: 'missed', count: 3, first: START + HOUR };

describe('what is due and has not begun', () => {
  it('counts as missed when its schedule is paused, once, and nothing that is to come does', async () => {
    const { harness, inspector, producer, runs, made } = await waiting();
    expect(await producer.pauseSchedule('report', 's')).toMatchObject({ outcome: 'paused' });
    expect(told).toMatchObject([MISSED]);
    expect(await producer.pauseSchedule('report', 's')).toMatchObject({ outcome: 'kept' });
    const [{ counts }] = (await producer.listSchedules('report')).schedules as [ScheduleSnapshot];
    expect(counts).toEqual({ made: made - 1, missed: 3, overlapped: 0 });
    // What lies ahead comes again.
    await harness.setNow(START + 2.25 * HOUR);
    await producer.resumeSchedule('report', 's');
    await inspector.resume('report');
    await harness.advance('75m');
    expect(hoursOf(runs)).toEqual([3]);
    expect(told).toHaveLength(1);
    expect((await inspector.totals('report')).skipped).toBe(3);
  });

  it('counts in the totals and is told when its schedule is removed, also what nobody has made yet', async () => {
    const { harness, inspector, producer } = await waiting();
    await harness.setNow(START + 5.5 * HOUR);
    expect(await producer.unschedule('report', 's')).toMatchObject({ outcome: 'removed', occurrences: 4 });
    expect(told).toMatchObject([{ ...MISSED, count: 6, last: START + 5 * HOUR }]);
    expect((await inspector.totals('report')).skipped).toBe(6);
    expect((await producer.listSchedules('report')).schedules).toEqual([]);
  });
});
