import { describe, expect, it } from '@jest/globals';
import type { DelayQueueProducer, UnavailableError } from '../../../lib/index.js';
import { parseOccurrenceId } from '../../../lib/job/job-id.js';
import { SCRIPT_NAMES } from '../../../lib/lua/scripts.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld();
const end = endingWithEachTest();

const FROM = Date.UTC(2026, 0, 1);
const local = { local: '2087-07-01T09:00', timeZone: 'Europe/Berlin' };
const LOCALLY = { id: 'one', at: local };
type Act = (producer: DelayQueueProducer, queue: string) => Promise<unknown>;
const CALLS: readonly (readonly [name: string, act: Act])[] = [
  ['schedule', (producer, queue) => producer.schedule(queue, 'other', { cron: '0 0 1 1 *' }, null)],
  ['pauseSchedule', (producer, queue) => producer.pauseSchedule(queue, 's')],
  ['resumeSchedule', (producer, queue) => producer.resumeSchedule(queue, 's')],
  ['triggerSchedule', (producer, queue) => producer.triggerSchedule(queue, 's')],
  [
    'backfillSchedule',
    (producer, queue) => producer.backfillSchedule(queue, 's', { from: FROM, to: FROM + 86_400_000 }),
  ],
  ['unschedule', (producer, queue) => producer.unschedule(queue, 's')],
  [
    'reschedule',
    (producer, queue) => producer.reschedule(queue, 'job', { at: { ...local, local: '2088-01-01T09:00' } }),
  ],
  ['enqueue', (producer, queue) => producer.enqueue(queue, null, LOCALLY)],
  ['enqueueMany', (producer, queue) => producer.enqueueMany(queue, [{ payload: null, ...LOCALLY }])],
];

/** Without it a repeated call would have nothing to write. */
const BEFORE: Readonly<Partial<Record<string, Act>>> = {
  schedule: (producer, queue) => producer.unschedule(queue, 'other'),
  pauseSchedule: (producer, queue) => producer.resumeSchedule(queue, 's'),
  resumeSchedule: (producer, queue) => producer.pauseSchedule(queue, 's'),
  unschedule: (producer, queue) => producer.schedule(queue, 's', { cron: '0 * * * *' }, null),
};

async function farAway(queue: string, commandTimeout: number) {
  const proxy = end(await Proxy.before(here.world.url));
  const { producer } = await here.start({ options: { consume: false, connection: proxy.url, commandTimeout } });
  await eventually(() => producer.schedule(queue, 's', { cron: '0 * * * *' }, null));
  await eventually(() => producer.enqueue(queue, null, { id: 'job', at: local }));
  return { proxy, producer };
}

describe('A call that reads before it writes', () => {
  it.each(CALLS)('rides out a connection that breaks at any of its commands: %s', async (name, act) => {
    const { proxy, producer } = await farAway(`breaks-${name}`, 10_000);
    let most = 0;
    for (let cuts = 1; cuts === 1;) {
      cuts = 0;
      const at = most + 1;
      let requests = 0;
      await BEFORE[name]?.(producer, `breaks-${name}`);
      // Those of the wake-ups and of reconnecting are not counted.
      proxy.judge = (direction, chunk) => {
        if (direction !== 'request' || !chunk.toString('latin1').includes(`{breaks-${name}}`)) return 'pass';
        return ++requests === at && ++cuts === 1 ? 'cut' : 'pass';
      };
      await act(producer, `breaks-${name}`);
      proxy.judge = () => 'pass';
      most += cuts;
    }
    expect(most).toBeGreaterThan(1);
  });

  it.each(CALLS)('is named as it was called when Redis falls silent at any of its commands: %s', async (name, act) => {
    const { proxy, producer } = await farAway(`silent-${name}`, 200);
    const words = name === 'enqueueMany' ? 'enqueue' : name;
    const failed = (error: UnavailableError & { results?: { error: UnavailableError }[] }) =>
      error.results?.[0]!.error ?? error;
    const errors: UnavailableError[] = [];
    for (let error: UnavailableError | undefined, at = 1; at === 1 || error; at++) {
      let requests = 0;
      await eventually(async () => BEFORE[name]?.(producer, `silent-${name}`));
      proxy.judge = (direction, chunk) => {
        if (direction === 'request' && chunk.toString('latin1').includes(`{silent-${name}}`)) requests++;
        return requests >= at ? 'swallow' : 'pass';
      };
      error = (await act(producer, `silent-${name}`).then(() => undefined, failed)) as typeof error;
      if (error) errors.push(error);
      proxy.judge = () => 'pass';
      await eventually(() => producer.get(`silent-${name}`, 'job'));
    }
    expect(errors.length).toBeGreaterThan(1);
    expect(errors[0]).toMatchObject({ maybeAccepted: false });
    const others = SCRIPT_NAMES.filter((one) => !CALLS.some(([call]) => call === one));
    for (const { code, message, maybeAccepted } of errors) {
      expect(code).toBe('ERR_DQ_UNAVAILABLE');
      const consequence = maybeAccepted ? 'may have taken effect' : 'was not sent';
      expect(message).toMatch(new RegExp(`did not answer for 200 ms .*: ${words} of "\\w+" ${consequence}`));
      expect(message).not.toMatch(new RegExp(`\\b(?:${others.join('|')})\\b`));
    }
  });
});

describe('A backfill that fails half-way', () => {
  it('says what is stored, and its repeat goes on behind that: what has run meanwhile does not run again', async () => {
    const queue = 'half-way';
    const { proxy, producer } = await farAway(queue, 500);
    const stretch = { from: FROM, to: FROM + 249 * 3_600_000 };
    let error: UnavailableError | undefined;
    let stored: string[] = [];
    // The third command reads the record for the second part. On a busy machine an earlier one may fail: nothing is stored then.
    while (stored.length === 0) {
      let requests = 0;
      proxy.judge = (direction, chunk) => {
        if (direction === 'request' && chunk.toString('latin1').includes(`{${queue}}`)) requests++;
        return requests >= 3 ? 'swallow' : 'pass';
      };
      error = (await producer.backfillSchedule(queue, 's', stretch).catch((reason: unknown) => reason)) as typeof error;
      proxy.judge = () => 'pass';
      const { jobs } = await here.world.read(queue);
      stored = Object.keys(jobs).filter((id) => (parseOccurrenceId(id)?.at ?? Infinity) <= stretch.to);
    }
    expect(stored).toHaveLength(100);
    expect(error).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', maybeAccepted: true, retryable: true });
    expect(error!.message).toMatch(/100 occurrences were stored before that: repeat it with the same `from` and `to`/);
    const near = await here.start({ options: { consume: false } });
    for (const id of stored) await near.producer.cancel(queue, id);
    // Neither another backfill of several parts nor a change of the schedule makes it forget that.
    const others = { from: stretch.to + 3_600_000, to: stretch.to + 150 * 3_600_000 };
    expect(await near.producer.backfillSchedule(queue, 's', others)).toBe(150);
    await near.producer.schedule(queue, 's', { cron: '0 * * * *' }, 'changed');
    expect(await near.producer.backfillSchedule(queue, 's', stretch)).toBe(250);
    const after = Object.keys((await here.world.read(queue)).jobs);
    expect(after.filter((id) => stored.includes(id))).toEqual([]);
    expect(after.filter((id) => (parseOccurrenceId(id)?.at ?? Infinity) <= stretch.to)).toHaveLength(150);
    // It is complete now: the same stretch again is a new backfill.
    expect(await near.producer.backfillSchedule(queue, 's', stretch)).toBe(250);
    expect(Object.keys((await here.world.read(queue)).jobs)).toEqual(expect.arrayContaining(stored));
  });
});

describe('Changes of one schedule at once', () => {
  it('by one process are all made, 200 of them', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.schedule('crowd', 's', { cron: '0 0 1 1 *' }, null);
    const ids = await Promise.all(Array.from({ length: 200 }, () => producer.triggerSchedule('crowd', 's')));
    expect(new Set(ids).size).toBe(200);
    const { jobs } = await here.world.read('crowd');
    expect(ids.filter((id) => !(id! in jobs))).toEqual([]);
  });

  it('by three processes are all made, 100 of each', async () => {
    const apps = [];
    for (let n = 0; n < 3; n++) apps.push(await here.start({ options: { consume: false } }));
    await apps[0]!.producer.schedule('crowds', 's', { cron: '0 0 1 1 *' }, null);
    const calls = apps.flatMap(({ producer }) =>
      Array.from({ length: 100 }, () => producer.triggerSchedule('crowds', 's')),
    );
    const ids = await Promise.all(calls);
    expect(new Set(ids).size).toBe(300);
    const { jobs } = await here.world.read('crowds');
    expect(ids.filter((id) => !(id! in jobs))).toEqual([]);
    await apps[0]!.producer.unschedule('crowds', 's');
  });

  it('of the local time of one job are all made as well', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue('crowded', null, { id: 'job', at: local });
    const moves = Array.from({ length: 100 }, (_, n) =>
      producer.reschedule('crowded', 'job', {
        at: { ...local, local: `2088-01-01T09:00:${String(n % 60).padStart(2, '0')}` },
      }),
    );
    expect(new Set((await Promise.all(moves)).map(({ outcome }) => outcome))).toEqual(new Set(['rescheduled']));
  });
});
