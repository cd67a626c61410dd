import { describe, expect, it } from '@jest/globals';
import { DelayQueueConsumer } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
let queues = 0;
const newQueue = () => `recurring-groups-${queues++}`;
const DAILY = { cron: '0 9 * * *' };
const DAY = 86_400_000;

async function started() {
  const [queue, { producer, inspector }] = [newQueue(), await here.start({ options: { consume: false } })];
  return {
    queue,
    producer,
    inspector,
    groups: async () => {
      expect(await here.world.problems(queue)).toEqual([]);
      const { groups } = await inspector.groups(queue);
      return groups.map(({ group, waiting }) => `${group ?? '-'} ${waiting}`).sort();
    },
  };
}

describe('a schedule', () => {
  it('gives its occurrences a group and a priority, and so makes a plain queue one with groups', async () => {
    const { queue, producer, groups } = await started();
    await producer.enqueue(queue, 1, { id: 'before', delay: '1h' });
    await producer.schedule(queue, 'day', DAILY, { to: 'a' }, { group: 'acme', priority: 3, expiresIn: '1h' });
    expect((await here.world.read(queue)).meta['needs']).toBe('limits');
    const [occurrence] = await occurrences(queue);
    expect(await producer.get(queue, occurrence!)).toMatchObject({ group: 'acme', priority: 3, payload: { to: 'a' } });
    expect(await producer.listSchedules(queue)).toMatchObject({ schedules: [{ group: 'acme', priority: 3 }] });
    await here.start({ providers: [handlerClass(queue, () => undefined)] });
    await eventually(async () => expect(await groups()).toEqual(['- 1', 'acme 1']));
  });

  it('that is changed, paused, triggered or removed leaves nothing in its old group', async () => {
    const { queue, producer, groups } = await started();
    const options = { group: 'acme' };
    expect(await producer.schedule(queue, 'day', DAILY, 1, options)).toMatchObject({ outcome: 'created' });
    expect(await producer.schedule(queue, 'day', DAILY, 1, options)).toMatchObject({ outcome: 'kept' });
    expect(await groups()).toEqual(['acme 1']);
    expect(await producer.schedule(queue, 'day', DAILY, 1, { ...options, priority: 1 })).toMatchObject({
      outcome: 'replaced',
    });
    expect(await producer.schedule(queue, 'day', DAILY, 1, { group: 'other' })).toMatchObject({ outcome: 'replaced' });
    expect(await groups()).toEqual(['other 1']);
    expect(await producer.schedule(queue, 'day', DAILY, 1)).toMatchObject({ outcome: 'replaced' });
    expect(await groups()).toEqual(['- 1']);
    await producer.schedule(queue, 'day', DAILY, 1, options);
    await producer.pauseSchedule(queue, 'day');
    expect(await groups()).toEqual([]);
    await producer.triggerSchedule(queue, 'day');
    expect(await groups()).toEqual(['acme 1']);
    await producer.resumeSchedule(queue, 'day');
    expect(await groups()).toEqual(['acme 2']);
    await producer.backfillSchedule(queue, 'day', { from: Date.now() - 3 * DAY, to: Date.now() });
    expect(await groups()).toEqual(['acme 5']);
    expect(await producer.unschedule(queue, 'day')).toMatchObject({ outcome: 'removed', occurrences: 5 });
    expect(await groups()).toEqual([]);
  });

  it('that is removed takes occurrences along that keep the place of their group', async () => {
    const { queue, producer, inspector, groups } = await started();
    const { app } = await here.start({ options: { consume: false } });
    await inspector.setLimits(queue, { groups: { concurrency: 1, retries: 'block' } });
    await producer.schedule(queue, 'day', DAILY, 1, { group: 'acme' });
    await producer.triggerSchedule(queue, 'day');
    const [run] = await app.get(DelayQueueConsumer).pull(queue);
    await run!.release();
    expect((await here.world.read(queue)).held).toEqual({ [run!.id]: expect.any(Number) });
    await producer.unschedule(queue, 'day');
    expect([await groups(), (await here.world.read(queue)).held]).toEqual([[], {}]);
  });

  it('of a queue with limits keeps them: occurrences of one group run one at a time', async () => {
    const { queue, producer } = await started();
    let [running, most, ended] = [0, 0, 0];
    const handle = async (_: unknown, job: DelayedJob) => {
      expect(job.group).toBe('acme');
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
      ended++;
    };
    for (const id of ['a', 'b', 'c']) {
      await producer.schedule(queue, id, DAILY, id, { group: 'acme', overlap: 'allow' });
      await producer.backfillSchedule(queue, id, { from: Date.now() - 3 * DAY, to: Date.now() });
    }
    const options = { concurrency: 10, groups: { concurrency: 1 } };
    await here.start({ providers: [handlerClass(queue, handle, options)] });
    await eventually(() => expect([ended >= 9, most]).toEqual([true, 1]));
  });
});

it('a job at a local time stays in its group when its local time changes, and when it is enqueued into one', async () => {
  const { queue, producer, groups, inspector } = await started();
  const local = { local: '2087-03-28T09:00', timeZone: 'Europe/Berlin' };
  await producer.enqueue(queue, 1, { id: 'A', group: 'acme', priority: 2, at: local });
  await producer.reschedule(queue, 'A', { at: { ...local, local: '2087-03-27T09:00' } });
  expect(await producer.get(queue, 'A')).toMatchObject({ group: 'acme', priority: 2 });
  expect(await groups()).toEqual(['acme 1']);
  expect((await inspector.list(queue, 'delayed', { group: 'acme' })).jobs).toMatchObject([
    { id: 'A', dueAt: new Date('2087-03-27T08:00:00Z') },
  ]);
});

async function occurrences(queue: string): Promise<string[]> {
  return (await here.world.redis.zrange(here.world.key(queue, 'due'), '0', '-1')).filter((id) => id.startsWith('{'));
}
