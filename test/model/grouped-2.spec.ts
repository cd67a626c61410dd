import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { fixed, SnoozeJob } from '../../lib/index.js';
import type { QueueLimits } from '../../lib/index.js';
import { DAY, scheduling } from '../helpers/scheduling.js';

// Occurrences that wait for the one before them, in groups that wait for a job: whatever they wait for, it never waits for them.

const { start } = scheduling();
const RUNS = Number(process.env['MODEL_RUNS'] ?? 25);
const seed = Number(process.env['MODEL_SEED'] ?? Date.now() % 1_000_000_000);
const SHRINK_MS = Number(process.env['MODEL_SHRINK_MS'] ?? 30_000);
const QUEUE = 'report';
const GROUPS = ['x', 'y'] as const;
const SCHEDULES = ['s', 't'] as const;
const YEARLY = { cron: '0 0 1 1 *' };
/** Longer than all that a sequence can make a job wait. */
const ALL_IS_OVER = '3m';
const LIMITS: readonly (QueueLimits | undefined)[] = [
  { groups: { concurrency: 1, retries: 'block' } },
  { groups: { concurrency: 1, retries: 'block', rateLimit: { max: 3, per: '10s' } } },
  { groups: { concurrency: 1 } },
  undefined,
];

const group = fc.constantFrom(...GROUPS);
const schedule = fc.constantFrom(...SCHEDULES);
const seconds = fc.nat(8);
const which = fc.nat(5);
const command = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('trigger' as const), schedule }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('enqueue' as const), group, priority: fc.constantFrom(0, 9) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('reschedule' as const), which, seconds }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('regroup' as const), schedule, group }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('anew' as const), schedule, group }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('limit' as const), n: fc.constantFrom(0, 0, 0, 1, 1, 2, 3) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('advance' as const), seconds }) },
);
const sequence = fc.record({
  commands: fc.noBias(fc.array(command, { minLength: 5, maxLength: 40, size: 'max' })),
  ends: fc.array(fc.constantFrom('fails' as const, 'fails' as const, 'snoozes' as const, 'completes' as const), {
    minLength: 30,
  }),
});

it(`all that waits comes to run, whatever it waits for (MODEL_SEED=${seed})`, async () => {
  let ends: string[] = [];
  const handle = () => {
    const end = ends.shift();
    if (end === 'snoozes') throw new SnoozeJob('7s');
    if (end === 'fails') throw new Error('not yet');
  };
  const { harness, producer, inspector } = await start(handle, { backoff: fixed('5s'), attempts: 100 });
  const set = (id: string, of: string) => producer.schedule(QUEUE, id, YEARLY, id, { group: of, overlap: 'queue' });
  const waiting = async () => {
    const pages = [await inspector.list(QUEUE, 'due'), await inspector.list(QUEUE, 'delayed')];
    // Without what the schedules have made for the next year.
    const soon = harness.now.getTime() + DAY;
    return pages.flatMap(({ jobs }) => jobs.filter(({ dueAt }) => dueAt.getTime() < soon).map(({ id }) => id));
  };

  let failedAt: number | undefined;
  await fc.assert(
    fc.asyncProperty(sequence, async (drawn) => {
      if (failedAt !== undefined && performance.now() - failedAt > SHRINK_MS) return;
      ends = [...drawn.ends];
      await inspector.setLimits(QUEUE, LIMITS[0]!);
      for (const [n, id] of SCHEDULES.entries()) await set(id, GROUPS[n]!);
      for (const next of drawn.commands) {
        const ids = next.do === 'reschedule' || next.do === 'cancel' ? await waiting() : [];
        const id = ids.length > 0 && 'which' in next ? ids[next.which % ids.length]! : undefined;
        if (next.do === 'trigger') await producer.triggerSchedule(QUEUE, next.schedule);
        if (next.do === 'enqueue')
          await producer.enqueue(QUEUE, 'plain', { group: next.group, priority: next.priority });
        if (next.do === 'reschedule' && id !== undefined)
          await producer.reschedule(QUEUE, id, { delay: next.seconds * 1_000 });
        if (next.do === 'cancel' && id !== undefined) await producer.cancel(QUEUE, id);
        if (next.do === 'anew') await producer.unschedule(QUEUE, next.schedule);
        if (next.do === 'anew' || next.do === 'regroup') await set(next.schedule, next.group);
        if (next.do === 'limit') await inspector.setLimits(QUEUE, LIMITS[next.n]);
        if (next.do === 'advance') await harness.advance(next.seconds * 1_000);
      }
      ends = [];
      await harness.advance(ALL_IS_OVER);
      const left = await waiting();
      for (const id of SCHEDULES) await producer.unschedule(QUEUE, id);
      await inspector.purge(QUEUE);
      if (left.length > 0) failedAt ??= performance.now();
      expect(left).toEqual([]);
    }),
    { numRuns: RUNS, seed },
  );
}, 300_000);
