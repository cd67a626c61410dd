import { expect, it } from '@jest/globals';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';

const here = inAWorld();
const MAX = 40;
const PER_MS = 500;
const GROUPS = 8;
const JOBS = 400;

/** When each start was claimed, by the clock of the server, and which job of its group it was. */
interface Start {
  readonly at: number;
  readonly group: string;
  readonly nth: number;
}

/** The most starts within any window. */
function mostInAWindow(starts: readonly Start[]): number {
  return Math.max(...starts.map(({ at }) => starts.filter((other) => other.at >= at && other.at < at + PER_MS).length));
}

/** Jobs that started after a later one of their group. */
function outOfOrder(starts: readonly Start[]): string[] {
  const last = new Map<string, number>();
  return starts.flatMap(({ group, nth }) => {
    const before = last.get(group) ?? -1;
    last.set(group, Math.max(before, nth));
    return nth < before ? [`${group}${nth} after ${before}`] : [];
  });
}

it('four processes never start more than the rate within any window, and groups of one keep their order, also when one is killed', async () => {
  const queue = 'rated';
  const limits = { rateLimit: { max: MAX, per: PER_MS }, groups: { concurrency: 1 } };
  const { producer, inspector } = await here.start({ options: { consume: false } });
  await inspector.setLimits(queue, limits);
  const at = (await here.world.now()) - 10_000;
  await producer.enqueueMany(
    queue,
    Array.from({ length: JOBS }, (_, n) => {
      const [group, nth] = [`g${n % GROUPS}`, Math.floor(n / GROUPS)];
      return { payload: { waitMs: 5, group, nth }, group, at: at + n };
    }),
  );
  const settings = { queue, handler: { concurrency: 10, lease: 1_000, ...limits } };
  // All begin at once, however long a busy machine takes to start four processes.
  await inspector.pause(queue);
  const workers = await Promise.all([1, 2, 3, 4].map(() => WorkerProcess.start(here.world, settings)));
  await inspector.resume(queue);
  try {
    for (let killed = false; ;) {
      const { due, delayed, running } = await inspector.counts(queue);
      if (due + delayed + running === 0) break;
      if (!killed && due < JOBS / 2) {
        killed = true;
        await workers[0]!.kill();
      }
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()));
  }
  const starts = workers
    .flatMap((worker) => worker.of('start'))
    .map(({ dueAt, latenessMs, payload }) => ({ at: dueAt! + latenessMs!, ...payload }) as Start)
    .sort((a, b) => a.at - b.at);
  expect(starts.length).toBeGreaterThan(JOBS / 2);
  expect(mostInAWindow(starts)).toBeLessThanOrEqual(MAX);
  expect(outOfOrder(starts)).toEqual([]);
  expect(await inspector.totals(queue)).toMatchObject({ enqueued: JOBS, completed: JOBS });
  expect(await here.world.problems(queue)).toEqual([]);
});
