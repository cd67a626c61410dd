import { describe, expect, it, jest } from '@jest/globals';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';
import type { WorkerSettings } from '../../helpers/worker-process.js';

const here = inAWorld();
jest.setTimeout(180_000);
const end = endingWithEachTest();

/** Starts the worker again whenever it dies, as a supervisor does. */
function supervised(settings: WorkerSettings) {
  const workers: WorkerProcess[] = [];
  let stopped = false;
  const start = async (): Promise<void> => {
    if (stopped) return;
    const worker = WorkerProcess.launch(here.world, settings);
    workers.push(worker);
    await worker.exited;
    await start();
  };
  const over = start();
  return {
    attemptsOf: (id: string) =>
      new Set(
        workers.flatMap((worker) => worker.of('start').filter((seen) => seen.id === id)).map((seen) => seen.attempt),
      ),
    deaths: () => workers.filter(({ child }) => child.signalCode === 'SIGKILL').length,
    async stop() {
      stopped = true;
      await Promise.all(workers.map((worker) => worker.kill()));
      await over;
    },
  };
}

describe('A job that kills its process', () => {
  it('only when it is not alone any more is found all the same, and takes no attempt of its neighbours', async () => {
    const queue = 'slow-killer';
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const workers = end(supervised({ queue, handler: { lease: 1_000, concurrency: 10 } }));
    const killer = await producer.enqueue(queue, { exit: 99, afterMs: 4_000 }, { attempts: 1 });
    // There is always a neighbour, so that it is alone only for as long as claiming pauses for it.
    const neighbours: string[] = [];
    let found = false;
    const busy = (async () => {
      while (!found) {
        neighbours.push((await producer.enqueue(queue, { waitMs: 600 }, { attempts: 1 })).id);
        await new Promise((resolve) => setTimeout(resolve, 300));
      }
    })();
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ dead: 1 }), 150_000).finally(
      () => {
        found = true;
      },
    );
    await busy;

    expect((await inspector.list(queue, 'dead')).jobs).toMatchObject([{ id: killer.id, deadReason: 'leaseLost' }]);
    expect(workers.deaths()).toBeLessThanOrEqual(4);
    await eventually(
      async () => expect(await inspector.totals(queue)).toMatchObject({ completed: neighbours.length, dead: 1 }),
      20_000,
    );
    for (const id of neighbours) expect(workers.attemptsOf(id)).toEqual(new Set([1]));
    expect(await here.world.violations(queue)).toEqual([]);
  });

  it('has neighbours in another instance of the process, too, and they are not charged', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const neighbours = await producer.enqueueMany(
      'second',
      Array.from({ length: 3 }, () => ({ payload: { waitMs: 1_500 }, attempts: 1 })),
    );
    const killer = await producer.enqueue('first', { exit: 99, afterMs: 500 }, { attempts: 2 });
    const handler = { lease: 1_000, concurrency: 1 };
    const workers = end(supervised({ queue: 'first', handler, second: { queue: 'second', handler } }));
    await eventually(async () => {
      expect(await inspector.totals('first')).toMatchObject({ dead: 1 });
      expect(await inspector.totals('second')).toMatchObject({ completed: 3, dead: 0 });
    }, 60_000);
    expect((await inspector.list('first', 'dead')).jobs).toMatchObject([{ id: killer.id, deadReason: 'leaseLost' }]);
    for (const { id } of neighbours) expect(workers.attemptsOf(id)).toEqual(new Set([1]));
  });
});
