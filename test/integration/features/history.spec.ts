import { hostname } from 'node:os';
import { pid } from 'node:process';
import { describe, expect, it } from '@jest/globals';
import { DiscardJob, InvalidOptionError, UnknownInstanceError } from '../../../lib/index.js';
import { channels } from '../../../lib/delay-queue.channels.js';
import { shardsToken } from '../../../lib/delay-queue.tokens.js';
import { DelayQueueHistory, DelayQueueHistoryModule } from '../../../lib/history/index.js';
import { HistoryKeeper } from '../../../lib/history/history-keeper.js';
import { minuteKey, processesKey } from '../../../lib/history/history.keys.js';
import { DelayQueueInstances } from '../../../lib/instance/delay-queue.instances.js';
import type { InstanceContext } from '../../../lib/instance/instance-context.js';
import { inBuckets, Tally } from '../../../lib/tally/tally.js';
import { handlerClass } from '../../helpers/app.js';
import type { TestApp, TestAppSettings } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;
const MINUTE = 60_000;
let queues = 0;
const fresh = () => `past-${queues++}`;

/** With history, unless told otherwise. */
const start = (settings: TestAppSettings = {}) =>
  here.start({ imports: [DelayQueueHistoryModule], ...settings, options: { ...settings.options } });
const historyOf = ({ app }: TestApp) => app.get(DelayQueueHistory);

/** What another process would do at times of its own: here the test says when. */
function keeperOf({ app }: TestApp): HistoryKeeper {
  const context = app.get<InstanceContext>(shardsToken('default'));
  return new HistoryKeeper(context, new Tally(inBuckets), () => app.get(DelayQueueInstances).runner('default'));
}

function handle(payload: unknown): void {
  if (payload === 'fails') throw new Error('asked to fail');
  if (payload === 'discards') throw new DiscardJob('pointless');
}

/** Runs jobs in an application of its own, which writes what it counted when it closes. */
async function ran(queue: string, payloads: readonly unknown[], at?: number): Promise<void> {
  const app = await start({ providers: [handlerClass(queue, handle, { attempts: 1 })] });
  await app.producer.enqueueMany(
    queue,
    payloads.map((payload) => ({ payload, ...(at !== undefined && { at }) })),
  );
  await eventually(async () => {
    const { completed, dead } = await app.inspector.totals(queue);
    expect(completed + dead).toBeGreaterThanOrEqual(payloads.length);
  });
  await app.close();
}

describe('the history', () => {
  it('tells what processes that are gone did with the jobs of a queue, and how late these started', async () => {
    const queue = fresh();
    const late = (await here.world.now()) - 20_000;
    await ran(queue, ['ok', 'ok', 'fails'], late);
    const app = await start({ options: { consume: false } });
    const { minutes, total } = await historyOf(app).minutes(queue);
    expect(total).toMatchObject({ enqueued: 3, claimed: 3, completed: 2, failed: 1, deadLettered: 1, retried: 0 });
    expect(total.lateness!.buckets.reduce((sum, count) => sum + count)).toBe(3);
    expect(total.lateness!.p50Ms).toBeGreaterThan(5_000);
    expect(total.lateness!.meanMs).toBeGreaterThanOrEqual(20_000);
    expect(total.meanDurationMs).toBeGreaterThanOrEqual(0);
    expect(minutes.length).toBeGreaterThan(0);
    expect(minutes.every(({ at }) => at.getTime() % MINUTE === 0)).toBe(true);
  });

  it('adds up what several processes counted', async () => {
    const queue = fresh();
    await ran(queue, ['ok', 'ok']);
    await here.world.redis.hset(here.world.key(queue, 'meta'), { completed: 0, dead: 0 });
    await ran(queue, ['discards', 'ok', 'ok']);
    const app = await start({ options: { consume: false } });
    const { total } = await historyOf(app).minutes(queue);
    expect(total).toMatchObject({ claimed: 5, completed: 4, deadLettered: 1 });
  });

  it('is cut off where it is asked to be, keeps each minute for a day, and forgets it then', async () => {
    const queue = fresh();
    const app = await start({ options: { consume: false } });
    const now = await here.world.now();
    const minute = Math.floor(now / MINUTE);
    const key = (ago: number) => minuteKey(here.world.prefix, queue, minute - ago);
    for (const ago of [2, 10, 100]) await here.world.redis.hset(key(ago), 'claimed', ago);
    const claimed = async (from: number, to?: number) =>
      (await historyOf(app).minutes(queue, { from: now - from * MINUTE, ...(to && { to: now - to * MINUTE }) })).total
        .claimed;
    expect([await claimed(5), await claimed(60), await claimed(200), await claimed(200, 60)]).toEqual([
      2, 12, 112, 100,
    ]);
    await ran(queue, ['ok']);
    const left = await Promise.all([0, 1].map((ago) => here.world.redis.pttl(key(ago - 1))));
    const kept = Math.max(...left);
    expect(kept).toBeGreaterThan(23 * HOUR);
    expect(kept).toBeLessThanOrEqual(24 * HOUR);
  });

  it('costs nothing where it is not imported', async () => {
    const queue = fresh();
    const { producer, inspector } = await here.start({ providers: [handlerClass(queue, handle)] });
    await producer.enqueue(queue, 'ok');
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 1 }));
    expect(Object.values(channels).filter(({ hasSubscribers }) => hasSubscribers)).toEqual([]);
    expect((await here.world.keys(queue)).filter((name) => name.startsWith('minute'))).toEqual([]);
  });

  it('does not time round trips: it listens to what it counts', async () => {
    await start({ options: { consume: false } });
    expect(channels.claimed.hasSubscribers).toBe(true);
    expect(channels.step.hasSubscribers).toBe(false);
  });

  it('refuses ranges that are none, and instances that are not there', async () => {
    const history = historyOf(await start({ options: { consume: false } }));
    await expect(history.minutes('q', { from: 5, to: 5 })).rejects.toThrow(InvalidOptionError);
    await expect(history.forecast('q', { rate: 0 })).rejects.toThrow('forecast("q", { rate }): must be a number');
    await expect(history.processes({ instance: 'eu' })).rejects.toThrow(UnknownInstanceError);
  });
});

describe('the list of processes', () => {
  it('tells host, pid, version, queues, busy slots and the last claim', async () => {
    const queue = fresh();
    const released: (() => void)[] = [];
    const hold = () => new Promise<void>((resolve) => released.push(resolve));
    const app = await start({ providers: [handlerClass(queue, hold, { concurrency: 3 })] });
    await app.producer.enqueueMany(queue, [{ payload: 1 }, { payload: 2 }]);
    await eventually(() => expect(released).toHaveLength(2));
    await keeperOf(app).show();
    const processes = await historyOf(app).processes();
    const { version } = JSON.parse((await import('node:fs')).readFileSync('package.json', 'utf8')) as {
      version: string;
    };
    expect(processes).toMatchObject([{ host: hostname(), pid, version, node: process.version, draining: false }]);
    const [{ queues: worked, seenAt, startedAt }] = processes as [(typeof processes)[0]];
    expect(worked).toMatchObject([{ queue, busy: 2, slots: 3, paused: false, zombies: 0 }]);
    expect(worked[0]!.lastClaimMs).toBeLessThan(60_000);
    expect(Math.abs(seenAt.getTime() - (await here.world.now()))).toBeLessThan(MINUTE);
    expect(startedAt.getTime()).toBeLessThan(seenAt.getTime());
    for (const release of released) release();
  });

  it('has each process by itself, shows one without handlers, and forgets one that closes', async () => {
    const one = await start({ providers: [handlerClass(fresh(), handle)] });
    const two = await start({ options: { consume: false } });
    await eventually(async () => expect(await historyOf(two).processes()).toHaveLength(2));
    const worked = (await historyOf(two).processes()).map((process) => process.queues.length);
    expect(worked.toSorted((a, b) => a - b)).toEqual([0, 1]);
    await one.close();
    expect(await historyOf(two).processes()).toMatchObject([{ queues: [] }]);
  });

  it('forgets a process that has died, 45 seconds after it showed itself last, and not one that is back', async () => {
    const app = await start({ options: { consume: false } });
    await eventually(async () => expect(await historyOf(app).processes()).toHaveLength(1));
    const key = processesKey(here.world.prefix);
    const [name] = (await here.world.redis.zrange(key, '0', '-1')) as [string];
    await here.world.redis.zadd(key, (await here.world.now()) - 46_000, name);
    expect(await historyOf(app).processes()).toEqual([]);
    // The next one that shows itself clears up.
    await here.world.redis.zadd(key, 1, 'died long ago');
    await keeperOf(app).show();
    expect(await here.world.redis.zrange(key, '0', '-1')).toEqual([name]);
  });
});

describe('the forecast', () => {
  /** As many jobs at one moment, half an hour from now, and whatever is known of the rate. */
  async function burst(queue: string, jobs: number) {
    const app = await start({ options: { consume: false } });
    const at = (await here.world.now()) + HOUR / 2;
    await app.producer.enqueueMany(queue, Array.from({ length: jobs }, () => ({ payload: 1, at }))); // prettier-ignore
    return { app, at, history: historyOf(app) };
  }
  const known = async (queue: string, counts: Record<string, number>, ago = 1) => {
    const minute = Math.floor((await here.world.now()) / MINUTE) - ago;
    await here.world.redis.hset(minuteKey(here.world.prefix, queue, minute), counts);
  };

  it('says when a burst will be over and how late its latest job will be', async () => {
    const queue = fresh();
    const { at, history } = await burst(queue, 2_000);
    const { peaks, basis, due, clearAt } = await history.forecast(queue, { rate: 100 });
    expect({ basis, due, clearAt }).toEqual({ basis: 'given', due: 0, clearAt: undefined });
    expect(peaks).toHaveLength(1);
    const [peak] = peaks as [(typeof peaks)[0]];
    expect(peak.jobs).toBe(2_000);
    expect(peak.latestMs / 20_000).toBeCloseTo(1, 1);
    expect((peak.until.getTime() - at) / 20_000).toBeCloseTo(1, 1);
    expect(Math.abs(peak.from.getTime() - at)).toBeLessThan(400);
  });

  it('is no faster than the limits of the queue, and says which one decides', async () => {
    const queue = fresh();
    const { app, history } = await burst(queue, 2_000);
    await app.inspector.setLimits(queue, { rateLimit: { max: 100, per: '1m' }, globalConcurrency: 50 });
    const limited = await history.forecast(queue, { rate: 100 });
    expect(limited).toMatchObject({ rate: 100 / 60, limit: 'rateLimit', basis: 'given' });
    expect(limited.peaks[0]!.latestMs / (19 * MINUTE)).toBeCloseTo(1, 1);
    await known(queue, { ran: 100, ranMs: 50_000_000 });
    expect(await history.forecast(queue, { rate: 100 })).toMatchObject({ rate: 0.1, limit: 'globalConcurrency' });
    const slow = await history.forecast(queue, { rate: 0.05 });
    expect([slow.rate, slow.limit]).toEqual([0.05, undefined]);
  });

  it('says when what is due now will be gone', async () => {
    const queue = fresh();
    const app = await start({ options: { consume: false } });
    const at = (await here.world.now()) - 10_000;
    await app.producer.enqueueMany(queue, Array.from({ length: 500 }, () => ({ payload: 1, at }))); // prettier-ignore
    const { at: made, due, clearAt, peaks } = await historyOf(app).forecast(queue, { rate: 100 });
    expect(due).toBe(500);
    expect((clearAt!.getTime() - made.getTime()) / 5_000).toBeCloseTo(1, 1);
    // They wait since ten seconds, and the last one for five more.
    expect(peaks[0]!.latestMs).toBeGreaterThan(14_500);
  });

  it('takes the rate that was measured last while there was more to do than could be started, for all live processes', async () => {
    const queue = fresh();
    const worker = await start({ providers: [handlerClass(queue, handle)] });
    await start({ providers: [handlerClass(queue, handle)] });
    await start({ options: { consume: false } });
    await eventually(async () => expect(await historyOf(worker).processes()).toHaveLength(3));
    // Minutes with enough to do hide those before them; others say nothing.
    await known(queue, { busyMs: 30_000, busyClaimed: 3_000 }, 2);
    await known(queue, { busyMs: 30_000, busyClaimed: 300 }, 9);
    await known(queue, { claimed: 5, edgeMs: 30_000, edgeClaimed: 30 }, 1);
    expect(await historyOf(worker).forecast(queue)).toMatchObject({ rate: 200, basis: 'measured', processes: 2 });
  });

  it('without such a time takes slots and the duration of runs, and without runs says that it knows no rate', async () => {
    const queue = fresh();
    const worker = await start({ providers: [handlerClass(queue, handle, { concurrency: 10 })] });
    await eventually(async () => expect(await historyOf(worker).processes()).toHaveLength(1));
    expect(await historyOf(worker).forecast(queue)).toMatchObject({ rate: undefined, basis: undefined, peaks: [] });
    await known(queue, { ran: 100, ranMs: 50_000 });
    expect(await historyOf(worker).forecast(queue)).toMatchObject({ rate: 20, basis: 'slots', processes: 1 });
    await known(queue, { edgeMs: 2_000, edgeClaimed: 16 });
    expect(await historyOf(worker).forecast(queue)).toMatchObject({ rate: 8, basis: 'measured', processes: 1 });
  });
});
