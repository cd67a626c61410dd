import { describe, expect, it } from '@jest/globals';
import { SnoozeJob, fixed } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';

const here = inAWorld();
const end = endingWithEachTest();

describe('A job is never early', () => {
  it('when hundreds come due within a second and a half', async () => {
    const lateness: number[] = [];
    const handle = async (_: unknown, job: DelayedJob) => {
      lateness.push((await here.world.now()) - job.dueAt.getTime());
    };
    const { producer } = await here.start({ providers: [handlerClass('mail', handle, { concurrency: 50 })] });
    const items = Array.from({ length: 300 }, (_, n) => ({ payload: n, delay: n * 5 }));
    await producer.enqueueMany('mail', items);

    await eventually(() => expect(lateness).toHaveLength(300), 15_000);
    expect(Math.min(...lateness)).toBeGreaterThanOrEqual(0);
  });

  it('in its second run, after a failure or a snooze', async () => {
    const runs = new Map<string, number[]>();
    const handle = async (kind: string, job: DelayedJob) => {
      runs.set(kind, [...(runs.get(kind) ?? []), await here.world.now()]);
      if (job.attempt + job.snoozes > 1) return;
      if (kind === 'snooze') throw new SnoozeJob(400);
      throw new Error('try again');
    };
    const handlers = handlerClass('again', handle, { backoff: fixed(400) });
    const { producer } = await here.start({ providers: [handlers] });
    await Promise.all(['snooze', 'fail'].map((kind) => producer.enqueue('again', kind)));

    await eventually(() => expect([...runs.values()].map(({ length }) => length)).toEqual([2, 2]));
    for (const [first, second] of runs.values()) expect(second! - first!).toBeGreaterThanOrEqual(400);
  });

  it('nor much too late, when the clocks of workers and producers are off by hours and days', async () => {
    const HOUR = 3_600_000;
    const skews = {
      'an hour behind': -HOUR,
      'an hour ahead': HOUR,
      'a day behind': -24 * HOUR,
      'a day ahead': 24 * HOUR,
    };
    const lateness: Record<string, number> = {};
    const processes = await Promise.all(
      Object.entries(skews).map(async ([name, skewMs]) => {
        const worker = end(await WorkerProcess.start(here.world, { queue: name, skewMs }));
        worker.child.on('message', ({ kind, payload, dueAt }: { kind: string; payload: string; dueAt: number }) => {
          if (kind === 'start') void here.world.now().then((now) => (lateness[payload] = now - dueAt));
        });
        return { name, worker };
      }),
    );

    // Each process enqueues to each: whoever trusts its own clock on either side is found.
    for (const [n, { name: from, worker }] of processes.entries()) {
      const delay = 1_500 + n * 1_000; // at different times between two polls
      for (const { name: to } of processes) {
        const before = await here.world.now();
        const { dueAt } = await worker.enqueue(to, `from ${from} to ${to}`, { delay });
        expect(dueAt - before).toBeGreaterThanOrEqual(delay);
        expect(dueAt - (await here.world.now())).toBeLessThanOrEqual(delay);
      }
    }
    await eventually(() => expect(Object.keys(lateness)).toHaveLength(16));
    expect(Math.min(...Object.values(lateness))).toBeGreaterThanOrEqual(0);
    // A worker whose sleep is wrong polls every 5 s all the same. So the middle one of a queue's jobs counts, not one that a busy
    // machine held up.
    for (const { name: to } of processes) {
      const [, second] = processes.map(({ name: from }) => lateness[`from ${from} to ${to}`]!).sort((a, b) => a - b);
      expect({ to, late: second! >= 1_000 }).toEqual({ to, late: false });
    }
  });
});
