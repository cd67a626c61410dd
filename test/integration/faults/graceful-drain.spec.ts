import { describe, expect, it } from '@jest/globals';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';

const here = inAWorld();
const end = endingWithEachTest();
const DRAIN_MS = 1_200;

async function workerOf(queue: string): Promise<WorkerProcess> {
  const options = { drainTimeout: DRAIN_MS };
  return end(await WorkerProcess.start(here.world, { queue, handler: { lease: '30s', attempts: 1 }, options }));
}

describe('A worker that gets SIGTERM', () => {
  it('lets handlers end, aborts the others at its deadline, and another one starts those at once, uncharged', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const [leaving, heir] = await Promise.all([workerOf('drain'), workerOf('drain')]);
    await heir.freeze(); // until the other one has all jobs
    const quick = await producer.enqueue('drain', { waitMs: 500 });
    const slow = await producer.enqueueMany('drain', [
      { payload: { untilAborted: true } },
      { payload: { waitMs: 3_000 } }, // deaf to its signal
    ]);
    await eventually(() => expect(leaving.of('start')).toHaveLength(3));
    const termedAt = performance.now();
    const exited = leaving.terminate();
    heir.signal('SIGCONT');
    await leaving.saw('end', { id: quick.id, attempt: 1 });
    await producer.enqueue('drain', {}, { id: 'new' });

    for (const { id } of slow)
      await heir.saw('start', { id, attempt: 1 }, DRAIN_MS + 2_000 - (performance.now() - termedAt));
    for (const { id } of slow) await leaving.saw('aborted', { id, reason: 'ERR_DQ_SHUTDOWN' });
    expect(await exited).toEqual({ code: null, signal: 'SIGTERM' });
    expect(leaving.of('start')).toHaveLength(3);
    await heir.saw('end', { id: 'new' });
    expect(heir.of('start').filter(({ id }) => id === quick.id)).toEqual([]);
    expect((await here.world.read('drain')).attempts).toEqual({});
    expect(await inspector.totals('drain')).toMatchObject({ completed: 2, failed: 0, retried: 0, dead: 0 });
    expect(leaving.of('log').filter(({ level }) => level === 'error')).toEqual([]);
  });
});
