import { describe, expect, it, jest } from '@jest/globals';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';

jest.setTimeout(90_000);
const here = inAWorld();
const end = endingWithEachTest();
const ATTEMPTS = 2;

/** Starts the worker again whenever it dies, as a supervisor does. */
function supervised(queue: string) {
  const workers: WorkerProcess[] = [];
  let stopped = false;
  const start = async (): Promise<void> => {
    if (stopped) return;
    const worker = WorkerProcess.launch(here.world, { queue, handler: { lease: 1_000, concurrency: 10 } });
    workers.push(worker);
    await worker.exited;
    await start();
  };
  const over = start();
  return {
    starts: (id: string) => workers.flatMap((worker) => worker.of('start')).filter((message) => message.id === id),
    deaths: () => workers.filter(({ child }) => child.signalCode === 'SIGKILL').length,
    async stop() {
      stopped = true;
      await Promise.all(workers.map((worker) => worker.kill()));
      await over;
    },
  };
}

describe('A job whose handler kills its process every time', () => {
  it('becomes a dead letter after its attempts, and its neighbours complete uncharged', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const neighbour = { payload: { waitMs: 200 }, attempts: 1 };
    const before = await producer.enqueueMany(
      'poison',
      Array.from({ length: 5 }, () => neighbour),
    );
    const killer = await producer.enqueue('poison', { exit: 99 }, { attempts: ATTEMPTS });
    const after = await producer.enqueueMany(
      'poison',
      Array.from({ length: 14 }, () => neighbour),
    );
    const workers = end(supervised('poison'));

    await eventually(
      async () => expect(await inspector.totals('poison')).toMatchObject({ completed: 19, dead: 1 }),
      60_000,
    );
    const { jobs } = await inspector.list('poison', 'dead');
    expect(jobs).toMatchObject([{ id: killer.id, deadReason: 'leaseLost', attempts: ATTEMPTS, payload: { exit: 99 } }]);
    expect(workers.deaths()).toBeGreaterThanOrEqual(ATTEMPTS);
    expect(workers.deaths()).toBeLessThanOrEqual(2 + ATTEMPTS);
    for (const { id } of [...before, ...after]) {
      expect(new Set(workers.starts(id).map(({ attempt }) => attempt))).toEqual(new Set([1]));
    }
    expect(await here.world.violations('poison')).toEqual([]);
  });
});
