import { describe, expect, it } from '@jest/globals';
import { fixed } from '../../../lib/index.js';
import { scheduling, START } from '../../helpers/scheduling.js';

const { start } = scheduling();
const BLOCK = { groups: { concurrency: 1, retries: 'block' } } as const;
const YEARLY = { cron: '0 0 1 1 *' };

/** The first run of each schedule fails. */
async function failing() {
  const failed = new Set<string>();
  const { producer, inspector, harness, runs } = await start(
    (_, { schedule }) => {
      if (schedule && !failed.has(schedule.id)) {
        failed.add(schedule.id);
        throw new Error('not yet');
      }
    },
    { backoff: fixed('10s') },
  );
  await inspector.setLimits('report', BLOCK);
  const schedule = (id: string, group: string) =>
    producer.schedule('report', id, YEARLY, id, { group, overlap: 'queue' });
  /** Seconds since the start, and what ran. */
  const ran = () => runs.map(({ at, payload }) => [(Date.parse(at) - START) / 1_000, payload]);
  return { producer, harness, schedule, ran };
}

describe('an occurrence that waits for the one before it, where retries block', () => {
  it('lets that one run in their group, also where it has no place of its own there, and others meanwhile', async () => {
    const { producer, harness, schedule, ran } = await failing();
    await schedule('s', 'acme');
    const first = (await producer.triggerSchedule('report', 's'))!;
    await harness.runDue();
    // Which ends the wait of the group for it.
    await producer.reschedule('report', first, { delay: '30s' });
    await producer.triggerSchedule('report', 's');
    await harness.advance('10s');
    await producer.enqueue('report', 'plain', { group: 'acme' });
    await harness.advance('25s');
    expect(ran().slice(0, 3)).toEqual([
      [0, 's'],
      [10, 'plain'],
      [30, 's'],
    ]);
    expect(ran().slice(3)).toEqual([[expect.any(Number), 's']]);
  });

  it('does so where two groups wait for each other', async () => {
    const { producer, harness, schedule, ran } = await failing();
    for (const [id, group, other] of [
      ['s', 'acme', 'other'],
      ['t', 'other', 'acme'],
    ] as const) {
      await schedule(id, group);
      const first = (await producer.triggerSchedule('report', id))!;
      await harness.runDue();
      await producer.reschedule('report', first, { delay: '30s' });
      await schedule(id, other);
    }
    // The second one of each schedule waits in the group of the first one of the other schedule.
    for (const id of ['s', 't']) await producer.triggerSchedule('report', id);
    await harness.advance('40s');
    const runsOf = (id: string) => ran().filter(([, payload]) => payload === id).length;
    expect([runsOf('s'), runsOf('t')]).toEqual([3, 3]);
  });
});
