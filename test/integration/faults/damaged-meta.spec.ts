import { beforeEach, describe, expect, it } from '@jest/globals';
import { DelayQueueError, DelayQueueHealth, StoredDataError } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { monitoring } from '../../helpers/monitoring.js';
import { waiting } from '../../helpers/waiting.js';

// A server of its own, because script calls are counted.
const here = inAWorld({});
beforeEach(() => here.world.redis.flushall()); // Health tells of all queues that there are.

/** Two queues in one process: what is done to the first must not be felt in the second. */
async function start(queue: string) {
  const runs: string[] = [];
  const log: string[] = [];
  const handle = (_: unknown, { id, attempt }: DelayedJob) => void runs.push(`${id} ${attempt}`);
  const providers = [handlerClass(queue, handle, { lease: 2_000 }), handlerClass(`${queue} beside`, handle)];
  const { app, producer, inspector, close } = await here.start({ providers, log });
  const health = () => app.get(DelayQueueHealth).check();
  const meta = here.world.key(queue, 'meta');
  return { runs, log, producer, inspector, close, health, meta, beside: `${queue} beside` };
}

const errors = (log: string[]) => log.filter((line) => line.startsWith('error'));
const outcome = (call: Promise<unknown>) => call.then((value) => value as unknown, (error: unknown) => error); // prettier-ignore

describe('meta.layout that is no number', () => {
  it.each(['junk', '', 'nan', '-1', '1.5', '\u0000\ufffd'])(
    '%j: the queue is left alone with a word how to mend it, and goes on once it is mended',
    async (junk) => {
      // prettier-ignore
      const queue = `layout ${JSON.stringify(junk).replace(/\W/g, '')}.`;
      const { runs, log, producer, inspector, health, meta, beside } = await start(queue);
      await inspector.pause(queue);
      await producer.enqueue(queue, {}, { id: 'a' });
      await here.world.redis.hset(meta, { layout: junk, paused: '0' });

      await eventually(() => expect(errors(log)).toHaveLength(1), 10_000);
      const words = `field "layout" of ${meta} is no number`;
      expect(errors(log)[0]).toContain(`queue "${queue}"`);
      expect(errors(log)[0]).toContain(words);
      expect(errors(log)[0]).toContain(`HSET "${meta}" layout 2`);
      for (const call of [
        () => producer.enqueue(queue, {}, { id: 'b' }),
        () => producer.get(queue, 'a'),
        () => producer.cancel(queue, 'a'),
        () => inspector.counts(queue),
        () => inspector.pause(queue),
      ]) {
        const error = await outcome(call());
        expect(error).toBeInstanceOf(StoredDataError);
        expect((error as Error).message).toContain(words);
      }
      const found = await health();
      expect(found).toMatchObject({
        status: 'degraded',
        redis: { status: 'up' },
        queues: { [beside]: { status: 'up' } },
      });
      expect(found.reasons).toEqual([expect.stringContaining(words)]);
      await producer.enqueue(beside, {}, { id: 'beside' });
      await eventually(() => expect(runs).toEqual(['beside 1']));

      await here.world.redis.hset(meta, 'layout', '2');
      await eventually(() => expect(runs).toEqual(['beside 1', 'a 1']));
      expect(log.filter((line) => line.includes('is worked on again'))).toHaveLength(1);
      expect(errors(log)).toHaveLength(1);
      expect(await health()).toMatchObject({ status: 'up' });
      expect(await here.world.violations(queue)).toEqual([]);
    },
  );

  it('an application boots all the same, asks once a second and no more, and closes at once', async () => {
    const queue = 'boots';
    await here.world.redis.hset(here.world.key(queue, 'meta'), 'layout', 'junk');
    const { log, close } = await start(queue);
    await eventually(() => expect(errors(log)).toEqual([expect.stringContaining('field "layout"')]));
    const monitor = await monitoring(here.world.redis);
    let steps = 0;
    const ofSchedules = here.world.key(queue, 'schedules');
    monitor.on('monitor', (_time: string, args: string[], source: string) => {
      const isScript = source !== 'lua' && /^eval/i.test(args[0]!) && args.includes(here.world.key(queue, 'due'));
      // Whoever looks for schedules does so once in 5 s.
      if (isScript && !args.includes(ofSchedules)) steps++;
    });
    const since = performance.now();
    await eventually(() => expect(steps).toBeGreaterThanOrEqual(3));
    monitor.disconnect();
    // Three tries of a second each, of which the first had begun already.
    expect(performance.now() - since).toBeGreaterThan(1_500);
    const waited = waiting();
    await close();
    expect(waited()).toBeLessThan(4_000);
  });
});

describe('meta.needs that says nothing which this library knows', () => {
  it.each<[string, string, string]>([
    ['a word', 'junk', 'ERR_DQ_LAYOUT'],
    ['bytes', '\u0001\r\n\ufffd', 'ERR_DQ_LAYOUT'],
    ['a great many bytes', 'x'.repeat(10_000), 'ERR_DQ_LAYOUT'],
    ['shards of no kind', 'shards:zzz', 'ERR_DQ_STORED_DATA'],
    ['no shards', 'shards:=/0', 'ERR_DQ_STORED_DATA'],
    ['more shards than there can be', 'shards:=/99999999999', 'ERR_DQ_STORED_DATA'],
    ['a shard of none', 'shards:3/0', 'ERR_DQ_STORED_DATA'],
    ['another number of shards', 'shards:=/4', 'ERR_DQ_SHARD_COUNT'],
    ['a change of shards that nobody makes', 'shards:1~1.x', 'ERR_DQ_UNAVAILABLE'],
  ])('%s', async (what, needs, code) => {
    const queue = `needs ${what}`;
    const { runs, producer, inspector, health, meta, beside } = await start(queue);
    await inspector.pause(queue);
    await producer.enqueue(queue, {}, { id: 'a' });
    await here.world.redis.hset(meta, { needs, paused: '0' });
    for (const call of [producer.get(queue, 'a'), inspector.counts(queue), inspector.totals(queue)]) {
      const error = await outcome(call);
      expect(error).toBeInstanceOf(DelayQueueError);
      expect(error).toMatchObject({ code });
    }
    const found = await health();
    expect(found).toMatchObject({
      status: 'degraded',
      redis: { status: 'up' },
      queues: { [beside]: { status: 'up' } },
    });
    expect(found.reasons).toEqual([expect.stringContaining(`"${queue}"`)]);
    expect(found.reasons[0]!.length).toBeLessThan(600);
    const onlooker = await here.start({ options: { consume: false } });
    expect((await onlooker.app.get(DelayQueueHealth).check()).redis).toMatchObject({ status: 'up' });
    await producer.enqueue(beside, {}, { id: 'beside' });
    await eventually(() => expect(runs).toEqual(['beside 1']));

    await here.world.redis.hdel(meta, 'needs');
    await eventually(() => expect(runs).toEqual(['beside 1', 'a 1']), 10_000);
    await eventually(async () => expect(await health()).toMatchObject({ status: 'up' }));
  });

  it('a queue with shards refuses to boot, and says why', async () => {
    await here.world.redis.hset(here.world.key('split', 'meta'), { layout: '1', needs: 'shards:=/4000' });
    const boot = here.start({ options: { queues: { split: { shards: 4 } } } });
    await expect(boot).rejects.toThrow(/Queue "split": its shard state "=\/4000" cannot be read.*"needs"/);
    await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_STORED_DATA' });
  });

  it('a number of shards is changed in spite of damaged counters', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    await producer.enqueueMany(
      'resharded',
      Array.from({ length: 20 }, (_, n) => ({ payload: n, delay: '1h' })),
    );
    await here.world.redis.hset(here.world.key('resharded', 'meta'), { completed: 'junk', failed: 'nan', since: 'x', dead: '-7' }); // prettier-ignore
    expect(await inspector.reshard('resharded', { from: 1, to: 3 })).toMatchObject({ from: 1, to: 3 });
    const other = await here.start({ options: { consume: false, queues: { resharded: { shards: 3 } } } });
    expect(await other.inspector.counts('resharded')).toMatchObject({ delayed: 20 });
    expect(await other.inspector.totals('resharded')).toMatchObject({ enqueued: 20, completed: 0, failed: 0, dead: 0 });
  });
});

it('meta that is gone: what was paused is not, and everything runs', async () => {
  const { runs, producer, inspector, meta } = await start('gone');
  await inspector.pause('gone');
  await producer.enqueue('gone', {}, { id: 'a' });
  await here.world.redis.del(meta);
  await eventually(() => expect(runs).toEqual(['a 1']), 10_000);
  expect(await inspector.counts('gone')).toMatchObject({ due: 0, running: 0, paused: false });
});

it('a list of queue names of a wrong type is reported by health, which judges Redis and the own queues all the same', async () => {
  const { runs, producer, health } = await start('listed');
  await here.world.redis.rename(`${here.world.prefix}:queues`, `${here.world.prefix}:aside`);
  await here.world.redis.set(`${here.world.prefix}:queues`, 'junk');
  try {
    await producer.enqueue('listed', {}, { id: 'a' });
    await eventually(() => expect(runs).toEqual(['a 1']));
    const found = await health();
    expect(found).toMatchObject({ status: 'degraded', redis: { status: 'up' }, queues: { listed: { status: 'up' } } });
    expect(found.reasons).toEqual([expect.stringMatching(/names of the queues.*WRONGTYPE/)]);
  } finally {
    await here.world.redis.rename(`${here.world.prefix}:aside`, `${here.world.prefix}:queues`);
  }
});
