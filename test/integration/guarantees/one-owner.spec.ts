import { describe, expect, it } from '@jest/globals';
import { DiscardJob, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

/** A handler whose every run waits until the test ends it. */
function held() {
  const runs: { job: DelayedJob; end: (error?: Error) => void }[] = [];
  const handle = (_: unknown, job: DelayedJob) =>
    new Promise<void>((resolve, reject) => {
      runs.push({ job, end: (error) => (error ? reject(error) : resolve()) });
    });
  return { runs, handle };
}

/** Two owners of one job: the first thinks so, the second took it over because the lease had ended. */
async function takenOver(queue: string, lease: string) {
  const { runs, handle } = held();
  const log: string[] = [];
  const provider = handlerClass(queue, handle, { concurrency: 1, lease });
  const { producer, inspector } = await here.start({ providers: [provider] });
  const { id } = await producer.enqueue(queue, {});
  await eventually(() => expect(runs).toHaveLength(1));
  const claim = await here.world.redis.zscore(here.world.key(queue, 'running'), id);
  await here.world.redis.zadd(here.world.key(queue, 'leases'), 'XX', 1, claim!);
  await here.start({ providers: [provider], log });
  await eventually(() => expect(runs).toHaveLength(2));
  return { id, claim: claim!, former: runs[0]!, present: runs[1]!, inspector, log };
}

async function storedBut(queue: string, ...names: string[]) {
  return Object.fromEntries(Object.entries(await here.world.read(queue)).filter(([name]) => !names.includes(name)));
}

describe('A job has one owner', () => {
  it.each<[string, string, Error | undefined]>([
    ['completion', 'complete', undefined],
    ['failure', 'fail', new Error('too late')],
    ['snooze', 'snooze', new SnoozeJob('1h')],
    ['discard', 'discard', new DiscardJob('too late')],
  ])('so the %s that a former one reports changes nothing and is refused', async (_, queue, ending) => {
    const { id, former, present, inspector, log } = await takenOver(queue, '30s');
    const before = await storedBut(queue, 'meta', 'idle');

    former.end(ending);
    await eventually(() =>
      expect(log).toContainEqual(expect.stringMatching(`"${id}" of queue "${queue}".*lost its lease`)),
    );
    expect(await storedBut(queue, 'meta', 'idle')).toEqual(before);
    expect(await inspector.totals(queue)).toMatchObject({ completed: 0, failed: 0, retried: 0, dead: 0 });

    present.end();
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 1 }));
    expect((await here.world.read(queue)).jobs).toEqual({});
  });

  it('so a former one cannot extend its lease', async () => {
    const { former, present, inspector } = await takenOver('extend', '30s');
    const before = await storedBut('extend', 'meta', 'idle');

    await expect(former.job.extend('1h')).rejects.toMatchObject({ code: 'ERR_DQ_LEASE_LOST' });
    expect(await storedBut('extend', 'meta', 'idle')).toEqual(before);
    expect(former.job.signal.reason).toMatchObject({ code: 'ERR_DQ_LEASE_LOST' });
    expect(present.job.signal.aborted).toBe(false);
    former.end();
    present.end();
    await eventually(async () => expect(await inspector.totals('extend')).toMatchObject({ completed: 1 }));
  });

  it('so the heartbeat of a former one revives nothing, and its signal aborts', async () => {
    const { id, claim, former, present, log } = await takenOver('heartbeat', '6s');

    await eventually(() => expect(former.job.signal.reason).toMatchObject({ code: 'ERR_DQ_LEASE_LOST', id }), 10_000);
    expect(log).toContainEqual(
      expect.stringMatching(`^warn .*"${id}" of queue "heartbeat" \\(attempt 1\\).*lost its lease`),
    );
    const { leases, running } = await here.world.read('heartbeat');
    expect(Object.keys(leases)).toEqual([String(running[id])]);
    expect(leases).not.toHaveProperty(claim);
    expect(present.job.signal.aborted).toBe(false);
    former.end();
    present.end();
  });
});
