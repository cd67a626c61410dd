import { describe, expect, it } from '@jest/globals';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';

const here = inAWorld();
const end = endingWithEachTest();
const ATTEMPTS = 2;
const LEASE_MS = 1_000;

/** Starts the worker again whenever it dies, as a supervisor does. */
function supervised(queue: string) {
  const workers: WorkerProcess[] = [];
  let stopped = false;
  const start = async (): Promise<void> => {
    if (stopped) return;
    const handler = { lease: LEASE_MS, concurrency: 2, batch: { size: 10, wait: 50 } };
    const worker = WorkerProcess.launch(here.world, { queue, handler });
    workers.push(worker);
    await worker.exited;
    await start();
  };
  const over = start();
  return {
    batchesWith: (id: string) =>
      workers.flatMap((worker) => worker.of('batch').filter(({ ids }) => ids!.includes(id))).map(({ ids }) => ids!),
    attemptsOf: (id: string) =>
      workers
        .flatMap((worker) => worker.of('start'))
        .filter((message) => message.id === id)
        .map(({ attempt }) => attempt),
    async stop() {
      stopped = true;
      await Promise.all(workers.map((worker) => worker.kill()));
      await over;
    },
  };
}

describe('A job that kills the process of its batch', () => {
  it('is found in batches of one and becomes a dead letter; the others of its batch complete uncharged', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    await inspector.pause('batch-poison');
    const neighbours = await producer.enqueueMany(
      'batch-poison',
      Array.from({ length: 9 }, () => ({ payload: { waitMs: 100 }, attempts: 1 })),
    );
    const killer = await producer.enqueue('batch-poison', { exit: 99 }, { attempts: ATTEMPTS });
    await inspector.resume('batch-poison');
    const workers = end(supervised('batch-poison'));

    await eventually(
      async () => expect(await inspector.totals('batch-poison')).toMatchObject({ completed: 9, dead: 1 }),
      60_000,
    );
    const { jobs } = await inspector.list('batch-poison', 'dead');
    expect(jobs).toMatchObject([{ id: killer.id, deadReason: 'leaseLost', attempts: ATTEMPTS }]);
    const [first, ...alone] = workers.batchesWith(killer.id);
    expect(first).toHaveLength(10);
    // Charged once more when it was killed before its start could be told.
    expect(alone.length).toBeLessThanOrEqual(ATTEMPTS);
    expect(new Set(alone.map((ids) => ids.length))).toEqual(new Set([1]));
    for (const { id } of neighbours) expect(new Set(workers.attemptsOf(id))).toEqual(new Set([1]));
    expect(await here.world.violations('batch-poison')).toEqual([]);
  });
});

describe('A worker that is frozen while a job waits for others', () => {
  it('does not start it any more when another process took it over', async () => {
    const queue = 'batch-frozen';
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const frozen = end(
      await WorkerProcess.start(here.world, {
        queue,
        // Shorter than a heartbeat's interval: when it goes on, the end of the wait is the first thing it hears of.
        handler: { lease: '3s', batch: { size: 10, wait: 900 } },
      }),
    );
    const { id } = await producer.enqueue(queue, {});
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ running: 1 }));
    frozen.signal('SIGSTOP');
    const heir = end(
      await WorkerProcess.start(here.world, { queue, handler: { lease: LEASE_MS, batch: { size: 10 } } }),
    );
    await heir.saw('end', { id });
    await heir.terminate();
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 1 }));

    frozen.signal('SIGCONT');
    const next = await producer.enqueue(queue, {});
    await frozen.saw('end', { id: next.id });
    expect(frozen.of('start').map((message) => message.id)).toEqual([next.id]);
    // It tells of its end before Redis knows.
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 2, dead: 0 }));
  });
});
