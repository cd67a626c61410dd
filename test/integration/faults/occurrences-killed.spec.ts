import { describe, expect, it } from '@jest/globals';
import type { ScheduleSnapshot } from '../../../lib/index.js';
import { parseOccurrenceId } from '../../../lib/job/job-id.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';

const here = inAWorld();
const end = endingWithEachTest();
const LEASE_MS = 30_000;
/** The end of a call of lib/lua/recurring/begin-occurrence.lua: the claim, how it asks, and a time. */
const ASKS_TO_BEGIN = /\r\n\d{16}\r\n\$1\r\n[msw]\r\n\$13\r\n\d{13}\r\n$/;

/**
 * An occurrence whose worker was killed when it had claimed it, and had not asked yet whether it may begin.
 *
 * @param every without it, it was triggered
 */
async function claimedByTheDead(queue: string, overlap: 'skip' | 'queue', every?: string) {
  const { producer, inspector } = await here.start({ options: { consume: false } });
  await producer.schedule(queue, 's', every === undefined ? { cron: '0 0 1 1 *' } : { every }, {}, { overlap });
  if (every === undefined) await producer.triggerSchedule(queue, 's');
  const handler = { lease: LEASE_MS };
  // While it starts more may come due, of which it is to claim one.
  const alone = { ...handler, concurrency: 1, prefetch: false };
  const dead = end(WorkerProcess.launch(here.world, { queue, handler: alone, dieBefore: ASKS_TO_BEGIN }));
  expect(await dead.exited).toMatchObject({ signal: 'SIGKILL' });
  expect(dead.of('start')).toEqual([]);
  const [id, ...others] = Object.keys((await here.world.read(queue)).running);
  expect([typeof id, others]).toEqual(['string', []]);
  const heir = async () => {
    const leases = here.world.key(queue, 'leases');
    const [claim, deadline] = await here.world.redis.zrange(leases, '0', '0', 'WITHSCORES');
    // The mark of a claim that was alone in its process stays.
    await here.world.redis.zadd(leases, (await here.world.now()) - 1 + (Number(deadline) % 1), claim!);
    return end(await WorkerProcess.start(here.world, { queue, handler }));
  };
  const counts = async () => ((await producer.listSchedules(queue)).schedules as [ScheduleSnapshot])[0].counts;
  return { producer, inspector, id: id!, heir, counts };
}

describe('An occurrence whose worker is killed before its handler begins', () => {
  it.each(['skip', 'queue'] as const)('does not begin after a pause: overlap %s', async (overlap) => {
    const queue = `paused-${overlap}`;
    const { producer, inspector, id, heir, counts } = await claimedByTheDead(queue, overlap);
    await producer.pauseSchedule(queue, 's');
    const worker = await heir();
    await eventually(async () => expect(await producer.get(queue, id)).toBeUndefined());
    expect(worker.of('start')).toEqual([]);
    expect(await counts()).toMatchObject({ missed: 1, overlapped: 0 });
    expect(await inspector.totals(queue)).toMatchObject({ skipped: 1, completed: 0 });
    expect(await here.world.problems(queue)).toEqual([]);
  });

  it('stays missed when the next one is due', async () => {
    const queue = 'missed';
    const { producer, id, heir } = await claimedByTheDead(queue, 'skip', '1s');
    const next = parseOccurrenceId(id)!.at + 1_000;
    await eventually(async () => expect(await here.world.now()).toBeGreaterThanOrEqual(next));
    const worker = await heir();
    await eventually(async () => expect(await producer.get(queue, id)).toBeUndefined());
    await producer.unschedule(queue, 's');
    expect(worker.of('start').map((start) => start.id)).not.toContain(id);
  });

  it('begins in another one without a pause', async () => {
    const queue = 'unpaused';
    const { id, heir, counts } = await claimedByTheDead(queue, 'queue');
    const worker = await heir();
    await worker.saw('end', { id });
    expect(await counts()).toMatchObject({ missed: 0, overlapped: 0 });
  });
});
