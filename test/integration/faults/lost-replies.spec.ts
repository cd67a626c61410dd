import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayQueueError, fixed, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { SCRIPT_NAMES, scriptSource } from '../../../lib/lua/scripts.js';
import { SCHEDULE_KEY_NAMES } from '../../../lib/redis/keys.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';
import { callsOf } from '../../helpers/script-calls.js';

const here = inAWorld();

interface Point {
  /** A script, or another command: of the handshake, of wake-ups, of the list of queues. */
  readonly name: string;
  /** Which of its calls, from 1. */
  readonly call: number;
  readonly when: 'before' | 'after';
}

/** By its hash, or by its text: the first time on each connection. */
const CALLS_OF = SCRIPT_NAMES.map((script) => {
  const isCalled = callsOf(script);
  const texts = [true, false].map((flags) => scriptSource(script, flags));
  return [script, (chunk: Buffer) => isCalled(chunk) || texts.some((text) => chunk.includes(text))] as const;
});
/** Where one begins in what is sent. */
const COMMANDS = /\*\d+\r\n\$\d+\r\n([a-z]+)\r\n/gi;
const AT_A_TIME = 4;
/** Some 170 stories, on a busy machine. */
const WITHIN_MS = 400_000;
/** Workers call it all the time; the first ones hold every kind of claim and settle of the story. */
const MOST_CALLS = 8;
/** What is called once for each schedule is the same call again. */
const MOST_OF_SCHEDULES = 2;
/** Nothing depends on how often the other commands were sent. */
const MOST_COMMANDS = 1;
const isScript = (name: string) => (SCRIPT_NAMES as readonly string[]).includes(name);
const mostOf = (name: string) =>
  !isScript(name) ? MOST_COMMANDS : /^(tick|schedules|zoned)/.test(name) ? MOST_OF_SCHEDULES : MOST_CALLS;
let stories = 0;
const YEARLY = { cron: '0 0 1 1 *' };
const NEVER = new Date('2087-01-01T00:00:00Z');
const ids = ['many-1', 'many-2'];
const FAR = { local: '2087-07-01T09:00', timeZone: 'Europe/Berlin' };

/** Of a hash or a sorted set. */
async function namesIn(key: string): Promise<string[]> {
  const { redis } = here.world;
  const isHash = (await redis.type(key)) === 'hash';
  return (isHash ? await redis.hkeys(key) : await redis.zrange(key, '0', '-1')).sort();
}

/** Counts the calls of each script, and cuts the connection at one of them: before Redis sees it, or after it ran. */
function cutAt(proxy: Proxy, point?: Point) {
  const calls: Record<string, number> = {};
  let hit = false;
  let replyIsLost = false;
  proxy.judge = (direction, chunk) => {
    if (direction === 'reply') {
      const lost = replyIsLost;
      replyIsLost = false;
      return lost ? 'cut' : 'pass';
    }
    const scripts: string[] = CALLS_OF.filter(([, isCalled]) => isCalled(chunk)).map(([script]) => script);
    const commands = [...chunk.toString('latin1').matchAll(COMMANDS)].map(([, name]) => name!.toLowerCase());
    for (const name of [...scripts, ...new Set(commands.filter((command) => !command.startsWith('eval')))]) {
      const call = (calls[name] = (calls[name] ?? 0) + 1);
      if (name !== point?.name || call !== point.call) continue;
      hit = true;
      if (point.when === 'before') return 'cut';
      replyIsLost = true;
    }
    return 'pass';
  };
  return { calls, hit: () => hit };
}

/** What an application does whose call failed for a while: the same again. */
async function insist<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof DelayQueueError && error.retryable)) throw error;
      await sleep(10);
    }
  }
}

/** Calls every script: jobs complete, fail, snooze, extend their leases and move. @returns how it all ended */
async function story(point?: Point) {
  const queue = `story-${stories++}`;
  const target = `${queue}-target`;
  const purged = `${queue}-purged`;
  const proxy = await Proxy.before(here.world.url);
  const { calls, hit } = cutAt(proxy, point);
  const runs: Record<string, number> = {};
  const handle = async (does: string, job: DelayedJob) => {
    const name = job.schedule?.id ?? job.id;
    runs[name] = (runs[name] ?? 0) + 1;
    if (does === 'fail') throw new Error('asked to');
    if (does === 'snooze' && job.snoozes === 0) throw new SnoozeJob(0);
    if (does === 'extend') await job.extend('1m');
  };
  const handler = handlerClass(queue, handle, {
    attempts: 2,
    backoff: fixed(0),
    concurrency: 2,
    repeat: { ...YEARLY, payload: 'ok' },
  });
  const app = await createApp(here.world, { providers: [handler], options: { connection: proxy.url } });
  const { producer, inspector } = app;
  const counted = (expected: object) =>
    eventually(async () => expect((await here.world.read(queue)).meta).toMatchObject(expected), 10_000);
  try {
    await insist(() => inspector.pause(queue));
    await insist(() => producer.enqueue(queue, 'ok', { id: 'plain' }));
    for (const id of ['dies', 'returns']) await insist(() => producer.enqueue(queue, 'fail', { id }));
    for (const does of ['old', 'snooze'])
      await insist(() => producer.enqueue(queue, does, { id: 'replaced', onDuplicate: 'replace', delay: '1h' }));
    await insist(() => producer.signal(queue, 'replaced', 'snooze'));
    await insist(() => producer.reschedule(queue, 'replaced', { delay: 0 }));
    await insist(() => producer.enqueue(queue, 'extend', { id: 'soon', delay: '1h' }));
    await insist(() => producer.runNow(queue, 'soon'));
    await insist(() => producer.enqueue(queue, 'ok', { id: 'cancelled', delay: '1h' }));
    await insist(() => producer.update(queue, 'cancelled', 'ok again'));
    await insist(() => producer.cancel(queue, 'cancelled'));
    const many = ['a', 'b', 'waits'].map((id) => ({ payload: 'ok', id, delay: id === 'waits' ? '1h' : 0 }));
    await insist(() => producer.enqueueMany(queue, many));
    expect(await insist(() => inspector.counts(queue))).toMatchObject({ paused: true, due: 7 });
    expect((await insist(() => inspector.list(queue, 'delayed'))).jobs[0]).toMatchObject({ id: 'waits' });
    expect(await insist(() => producer.get(queue, 'plain'))).toMatchObject({ state: 'due' });
    await insist(() => inspector.timeline(queue));
    await insist(() => producer.enqueueMany(queue, ids.map((id) => ({ payload: 'ok', id, delay: '2h' })))); // prettier-ignore
    await insist(() => inspector.bulk.reschedule(queue, { ids }, { at: NEVER, spread: '1h' }));
    await insist(() => inspector.bulk.cancel(queue, { from: NEVER }));
    await insist(() => producer.schedule(queue, 'yearly', YEARLY, 'ok'));
    await insist(() => producer.triggerSchedule(queue, 'yearly'));
    await insist(() => inspector.resume(queue));
    await counted({ completed: '6', dead: '2', retried: '2', failed: '4' });
    await insist(() => inspector.requeueDead(queue, ['returns'], { delay: '1h' }));
    await insist(() => inspector.removeDead(queue, ['dies']));
    await insist(() => inspector.pausePublishing(target));
    await insist(() => inspector.resumePublishing(target));
    await insist(() => producer.unschedule(queue, 'yearly', { running: true }));
    await eventually(async () => {
      const { schedules } = await insist(() => producer.listSchedules(queue));
      expect(schedules).toMatchObject([{ id: '@code' }]);
    });
    await insist(() => producer.reschedule(queue, 'waits', { at: FAR }));
    await insist(() => inspector.move(queue, ['waits'], target));
    await insist(() => producer.schedule(target, 'moves', YEARLY, 'ok'));
    await insist(() => inspector.reshard(target, { to: 2 }));
    await insist(() => producer.schedule(purged, 'stays', YEARLY, 'ok'));
    await insist(() => producer.enqueue(purged, 'ok', { id: 'goes', delay: '1h' }));
    await insist(() => inspector.purge(purged));
  } finally {
    await app.close();
    await proxy.close();
  }
  expect(await here.world.violations(queue)).toEqual([]);
  const { due, running, leases, quarantine, dead, jobs, followups, attempts, errors, unique, debounce, meta } =
    await here.world.read(queue);
  const { enqueued, completed, retried, failed, expired, paused } = meta;
  const moved = await Promise.all([0, 1].map((shard) => here.world.read(`${target}:${shard}`)));
  const schedules = await Promise.all(
    [0, 1].flatMap((shard) => SCHEDULE_KEY_NAMES.map((name) => namesIn(here.world.key(`${target}:${shard}`, name)))),
  );
  const end = {
    runs,
    due: Object.keys(due).sort(),
    jobs: Object.fromEntries(Object.entries(jobs).map(([id, text]) => [id, text.slice(16)])),
    nothing: { running, leases, quarantine, dead, followups, attempts, unique, debounce },
    errors: Object.keys(errors),
    moved: moved.map((shard) => [Object.keys(shard.due).sort(), Object.keys(shard.jobs).sort()]),
    schedules,
    purged: await namesIn(here.world.key(purged, 'due')),
    counters: { enqueued, completed, retried, failed, expired, dead: meta['dead'], paused },
  };
  return { end, calls, hit: hit() };
}

describe('A connection that breaks at any call of any script, or at any other command', () => {
  it(
    'before or after it ran, changes nothing about how everything ends',
    async () => {
      const calm = await story();
      // Notes of gone jobs are swept each quarter of an hour: `wall-clock.spec.ts` calls that by hand.
      const expected = SCRIPT_NAMES.filter((name) => name !== 'unzone').sort();
      expect(Object.keys(calm.calls).filter(isScript).sort()).toEqual(expected);
      expect(Object.keys(calm.calls)).toEqual(expect.arrayContaining(['info', 'subscribe', 'sadd', 'zscan', 'hmget', 'unlink'])); // prettier-ignore
      expect(calm.end.purged).toEqual([expect.stringMatching(/^\{stays\}/)]);
      expect(calm.end.runs).toEqual({ plain: 1, dies: 2, returns: 2, replaced: 2, soon: 1, a: 1, b: 1, yearly: 1 });
      const points = Object.entries(calm.calls).flatMap(([name, calls]) =>
        Array.from({ length: Math.min(calls, mostOf(name)) }, (_, n) => n + 1).flatMap((call) =>
          (['before', 'after'] as const).map((when): Point => ({ name, call, when })),
        ),
      );
      let hits = 0;
      const waiting = [...points];
      const work = async () => {
        for (let point = waiting.shift(); point; point = waiting.shift()) {
          const { end, hit } = await story(point);
          if (hit) hits++;
          expect({ point, end }).toEqual({ point, end: calm.end });
        }
      };
      await Promise.all(Array.from({ length: AT_A_TIME }, work));
      expect(points.length).toBeGreaterThan(50);
      // How many steps a worker needs varies a little.
      expect(hits).toBeGreaterThan(points.length * 0.9);
    },
    WITHIN_MS,
  );
});
