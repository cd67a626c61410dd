import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';
import { waiting } from '../../helpers/waiting.js';

const here = inAWorld();
const end = endingWithEachTest();
const LEASE_MS = 1_500;

describe('When all workers were away for longer than half a lease', () => {
  it('jobs of the dead wait one lease more, in case their owner only was cut off, and no longer', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    const victim = end(await WorkerProcess.start(here.world, { queue: 'away', handler: { lease: LEASE_MS } }));
    const { id } = await producer.enqueue('away', { hang: true });
    await victim.saw('start', { id });
    await victim.kill();
    await sleep(LEASE_MS * 1.5);

    const runs: DelayedJob[] = [];
    const handle = (_: unknown, job: DelayedJob) => runs.push(job);
    const before = performance.now();
    await here.start({ providers: [handlerClass('away', handle, { lease: LEASE_MS })] });
    const waited = waiting();
    // Jobs that nobody ever took do not wait.
    const fresh = await producer.enqueue('away', {});
    await eventually(() => expect(runs.map((job) => job.id)).toEqual([fresh.id, id]));
    expect(performance.now() - before).toBeGreaterThan(LEASE_MS);
    expect(waited()).toBeLessThan(LEASE_MS + 2_500);
  });
});
