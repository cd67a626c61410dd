import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';

const here = inAWorld();
const end = endingWithEachTest();
const LEASE_MS = 1_000;

async function workerOf(queue: string): Promise<WorkerProcess> {
  return end(await WorkerProcess.start(here.world, { queue, handler: { lease: LEASE_MS } }));
}

/** A job whose worker is frozen in its handler, and a second worker. */
async function frozen(queue: string, payload: object) {
  const { producer, inspector } = await here.start({ options: { consume: false } });
  const [former, heir] = await Promise.all([workerOf(queue), workerOf(queue)]);
  await inspector.pause(queue);
  heir.signal('SIGSTOP'); // until the other one has the job
  const { id } = await producer.enqueue(queue, payload);
  await inspector.resume(queue);
  await former.saw('start', { id });
  former.signal('SIGSTOP');
  heir.signal('SIGCONT');
  return { id, former, heir, inspector };
}

const warningOf = (worker: WorkerProcess, id: string, queue: string) =>
  eventually(() => {
    const warnings = worker.of('log').filter(({ level }) => level === 'warn');
    expect(warnings).toContainEqual(
      expect.objectContaining({ message: expect.stringMatching(`"${id}" of queue "${queue}" \\(attempt 1\\).*lost`) }),
    );
  });

describe('A worker that is frozen past its lease', () => {
  it('finds its job taken over: its late settle is refused and counted nowhere', async () => {
    const { id, former, heir, inspector } = await frozen('settle', { waitMs: 700 });
    await heir.saw('start', { id, attempt: 2 });
    former.signal('SIGCONT');

    await former.saw('end', { id, attempt: 1 });
    await warningOf(former, id, 'settle');
    await heir.saw('end', { id, attempt: 2 });
    await eventually(async () => expect(await inspector.totals('settle')).toMatchObject({ completed: 1, failed: 0 }));
    expect(await here.world.violations('settle')).toEqual([]);
  });

  it('has the signal of its handler aborted after it goes on, and says so', async () => {
    const { id, former, heir, inspector } = await frozen('signal', { untilAborted: 1 });
    await heir.saw('end', { id, attempt: 2 });
    former.signal('SIGCONT');

    await former.saw('aborted', { id, attempt: 1, reason: 'ERR_DQ_LEASE_LOST' });
    await warningOf(former, id, 'signal');
    await eventually(async () => expect(await inspector.totals('signal')).toMatchObject({ completed: 1, failed: 0 }));
  });

  it('keeps its job when nobody took it: one start, and its settle counts', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const worker = await workerOf('kept');
    const jobs = await producer.enqueueMany('kept', [{ payload: { waitMs: 500 } }, { payload: { waitMs: 4_000 } }]);
    await eventually(() => expect(worker.of('start')).toHaveLength(2));
    worker.signal('SIGSTOP');
    await sleep(2.5 * LEASE_MS);
    worker.signal('SIGCONT');

    for (const { id } of jobs) await worker.saw('end', { id, attempt: 1 });
    await eventually(async () => expect(await inspector.totals('kept')).toMatchObject({ completed: 2, failed: 0 }));
    expect(worker.of('start')).toHaveLength(2);
    expect(worker.of('aborted')).toEqual([]);
    expect((await here.world.read('kept')).attempts).toEqual({});
  });
});

describe('A handler that blocks the event loop past its lease', () => {
  it('loses its job to another process, like a frozen one', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const workers = await Promise.all([workerOf('blocked'), workerOf('blocked')]);
    const { id } = await producer.enqueue('blocked', { blockMs: 3_500, blockTimes: 1 });

    const started = (attempt: number) =>
      eventually(() => {
        const worker = workers.find((one) => one.of('start').some((message) => message.attempt === attempt));
        expect(worker).toBeDefined();
        return worker!;
      }, 10_000);
    const former = await started(1);
    const heir = await started(2);
    expect(heir).not.toBe(former);
    await heir.saw('end', { id, attempt: 2 });
    await former.saw('end', { id, attempt: 1 });
    await warningOf(former, id, 'blocked');
    await eventually(async () =>
      expect(await inspector.totals('blocked')).toMatchObject({ completed: 1, failed: 0, dead: 0 }),
    );
  });

  it('keeps it when there is no other process', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const worker = await workerOf('lonely');
    const { id } = await producer.enqueue('lonely', { blockMs: 2_500, waitMs: 500 });
    await worker.saw('end', { id, attempt: 1 });
    await eventually(async () => expect(await inspector.totals('lonely')).toMatchObject({ completed: 1, failed: 0 }));
    expect(worker.of('start')).toHaveLength(1);
    expect(worker.of('aborted')).toEqual([]);
  });
});
