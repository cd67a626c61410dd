import { describe, expect, it } from '@jest/globals';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';

const here = inAWorld();
const end = endingWithEachTest();
const ATTEMPTS = 2;
/** Each takes some seconds, so there are a few here, and as many as asked for. */
const ROUNDS = Number(process.env['ROUNDS'] ?? 3);

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

  it(
    'round after round, among fifty, is the only one that dies',
    async () => {
      const { producer, inspector } = await here.start({ options: { consume: false } });
      const workers = end(supervised('rounds'));
      const killers: string[] = [];
      for (let round = 1; round <= ROUNDS; round++) {
        const jobs = Array.from({ length: 50 }, (_, n) =>
          n === 25 ? { payload: { exit: 99 }, attempts: ATTEMPTS } : { payload: { waitMs: 50 }, attempts: 1 },
        );
        killers.push((await producer.enqueueMany('rounds', jobs))[25]!.id);
        await eventually(
          async () => expect(await inspector.totals('rounds')).toMatchObject({ completed: 49 * round, dead: round }),
          45_000,
        );
      }
      const { jobs } = await inspector.list('rounds', 'dead');
      expect(jobs.map(({ id }) => id).sort()).toEqual(killers.sort());
      for (const job of jobs) expect(job).toMatchObject({ deadReason: 'leaseLost', attempts: ATTEMPTS });
      expect((await here.world.read('rounds')).attempts).toEqual(
        Object.fromEntries(killers.map((id) => [id, expect.stringMatching(`^${ATTEMPTS} `)])),
      );
      expect(workers.deaths()).toBeLessThanOrEqual(ROUNDS * (2 + ATTEMPTS));
    },
    60_000 + ROUNDS * 30_000,
  );
});
