import { describe, expect, it } from '@jest/globals';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';
import { waiting } from '../../helpers/waiting.js';

const here = inAWorld();
const end = endingWithEachTest();
const LEASE_MS = 1_500;

async function workerOf(queue: string): Promise<WorkerProcess> {
  return end(await WorkerProcess.start(here.world, { queue, handler: { lease: LEASE_MS } }));
}

describe('A worker that is killed in a handler', () => {
  it('loses a job that it ran alone to another process, when the lease ends, and one attempt is charged', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const workers = await Promise.all([workerOf('alone'), workerOf('alone')]);
    const { id } = await producer.enqueue('alone', { waitMs: 600 });
    const victim = await eventually(() => {
      const found = workers.find((worker) => worker.of('start').length > 0);
      expect(found).toBeDefined();
      return found!;
    });
    await victim.kill();
    const killedAt = performance.now();
    const waited = waiting();

    const heir = workers.find((worker) => worker !== victim)!;
    await heir.saw('start', { id, attempt: 2 });
    // A heartbeat may have renewed the lease just before.
    expect(performance.now() - killedAt).toBeGreaterThan(LEASE_MS / 2 - 100);
    expect(waited()).toBeLessThan(LEASE_MS + 3_000);
    await heir.saw('end', { id });
    await eventually(async () => expect(await inspector.totals('alone')).toMatchObject({ completed: 1, dead: 0 }));
    expect(heir.of('start')).toHaveLength(1);
  });

  it('loses jobs that it ran together without any attempt being charged', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const victim = await workerOf('neighbours');
    const jobs = await producer.enqueueMany(
      'neighbours',
      Array.from({ length: 6 }, () => ({ payload: { waitMs: 600 }, attempts: 1 })),
    );
    await eventually(() => expect(victim.of('start')).toHaveLength(6));
    const heir = workerOf('neighbours');
    await victim.kill();

    for (const { id } of jobs) await (await heir).saw('start', { id, attempt: 1 });
    await eventually(
      async () => expect(await inspector.totals('neighbours')).toMatchObject({ completed: 6, dead: 0 }),
      15_000,
    );
    expect((await heir).of('start')).toHaveLength(6);
    expect(await here.world.violations('neighbours')).toEqual([]);
  });
});
