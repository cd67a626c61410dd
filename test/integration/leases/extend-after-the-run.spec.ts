import { describe, expect, it } from '@jest/globals';
import { fixed, LeaseLostError } from '../../../lib/index.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';

const here = inAWorld();

describe('the job of a run that is over', () => {
  it('extends no lease, not even that of the next run', async () => {
    let goOn!: () => void;
    const held = new Promise<void>((resolve) => (goOn = resolve));
    const { producer, queue, runs } = await oneHandler(
      here,
      async (_, job) => {
        if (job.attempt === 1) throw new Error('once more');
        await held;
      },
      { backoff: fixed(0) },
      [],
    );
    await producer.enqueue(queue, {}, { id: 'A' });
    await eventually(() => expect(runs).toHaveLength(2));
    const refusal = await runs[0]!.extend('1m').catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(LeaseLostError);
    expect((refusal as Error).message).toBe(
      `Job "A" of queue "${queue}" has no lease any more: its run had ended before. Await whatever needs the lease before the handler ends.`,
    );
    await expect(runs[1]!.extend('1m')).resolves.toBeUndefined();
    goOn();
    await eventually(async () => expect(await producer.get(queue, 'A')).toBeUndefined());
  });
});

describe('a handler that returned while its lease was being extended', () => {
  it('was settled under its old lease: the job ran again', async () => {
    const log: string[] = [];
    const { producer, queue, runs, inspector } = await oneHandler(
      here,
      (_, job) => void job.extend('1s'),
      { lease: '1s' },
      log,
    );
    await producer.enqueue(queue, {});
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 1 }));
    expect(await here.world.read(queue)).toMatchObject({ jobs: {}, running: {}, leases: {}, due: {}, quarantine: {} });
    expect(runs).toHaveLength(1);
    expect(log.join('\n')).not.toMatch(/lost its lease/);
  });

  it('was settled under its old lease, also among many', async () => {
    const log: string[] = [];
    const { producer, queue, runs, inspector } = await oneHandler(
      here,
      (_, job) => void job.extend('1s').catch(() => undefined),
      { lease: '1s', concurrency: 20 },
      log,
    );
    await producer.enqueueMany(
      queue,
      Array.from({ length: 40 }, (_, payload) => ({ payload })),
    );
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 40 }));
    expect(await here.world.read(queue)).toMatchObject({ jobs: {}, running: {}, leases: {}, due: {}, quarantine: {} });
    expect(runs).toHaveLength(40);
    expect(log.join('\n')).not.toMatch(/lost its lease/);
  });
});
