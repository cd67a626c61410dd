import { types } from 'node:util';
import { afterEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DelayQueueProducer, DelayQueueInspector, DelayQueueModule, getDelayQueueToken } from '../../../lib/index.js';
import { parseDuration } from '../../../lib/job/duration.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import type { TestApp } from '../../helpers/app.js';
import { fateOf, fuzz, FUZZ_MS } from '../fuzz.js';
import { ENQUEUE, mixture } from '../options.js';
import { payload, same } from '../payloads.js';
import { anyName, isName, nothingUseful, plainName, unboxed } from '../values.js';

/** A server of its own: whatever lies in it was put there by the call that is looked at. */
const here = inAWorld({});
const FIXED =
  'due|running|leases|jobs|followups|attempts|quarantine|dead|errors|unique|debounce|idle|meta|completed|history';

/** All keys of the server that are not of this prefix and queue. */
async function strayKeys(prefix: string, queue: string): Promise<string[]> {
  const own = new RegExp(`^(?:${FIXED}|session:[\\w-]+\\.\\w+)$`);
  const start = `${prefix}:{${queue}}:`;
  const keys = await here.world.redis.keys('*');
  return keys.filter(
    (key) => key !== `${prefix}:queues` && !(key.startsWith(start) && own.test(key.slice(start.length))),
  );
}

/** May be given as part of an item: of anything else nothing would be left there. */
function isItem(options: unknown): options is object {
  if (typeof options !== 'object' || options === null || types.isProxy(options)) return false;
  return [Object.prototype, null].includes(Object.getPrototypeOf(options) as object | null);
}

/** Only enqueues. The first input of a test starts it. */
let app: TestApp | undefined;
afterEach(() => {
  app = undefined;
});
async function producerApp(): Promise<TestApp> {
  return (app ??= await here.start({ options: { consume: false } }));
}

describe('What is written in Redis', () => {
  const names = fc.record({
    queue: fc.oneof({ weight: 8, arbitrary: anyName }, nothingUseful),
    id: fc.oneof({ weight: 8, arbitrary: anyName }, nothingUseful, fc.constant(undefined)),
  });
  it(
    'of a call that is refused: nothing; of any other: only keys of its queue under the prefix',
    () =>
      fuzz('names in Redis', names, {
        check: async (input) => {
          const [queue, id] = [unboxed(input.queue), unboxed(input.id)];
          const { producer, inspector } = await producerApp();
          const { redis, prefix } = here.world;
          await redis.flushall();
          let answered: string | undefined;
          const fate = await fateOf(
            async () => (answered = (await producer.enqueue(queue, { q: queue === id }, { id: id })).id),
          );
          const isFine = isName(queue, 128, { ends: true }) && (id === undefined || isName(id, 256, { ends: false }));
          expect(fate === 'accepted').toBe(isFine);
          // What leaves later than the answer, such as the name of the queue, leaves before this does.
          await inspector.queues();
          if (!isFine) {
            expect(await redis.dbsize()).toBe(0);
            return fate;
          }
          expect(await strayKeys(prefix, queue)).toEqual([]);
          expect(id ?? answered).toBe(answered);
          expect(await redis.hkeys(`${prefix}:{${queue}}:jobs`)).toEqual([answered]);
          expect(await producer.get(queue, answered!)).toMatchObject({
            id: answered,
            queue,
            payload: { q: queue === id },
          });
          expect((await inspector.list(queue, 'due')).jobs.map((job) => job.id)).toEqual([answered]);
          expect(await producer.cancel(queue, answered!)).toMatchObject({ outcome: 'cancelled' });
          expect(await redis.hkeys(`${prefix}:{${queue}}:jobs`)).toEqual([]);
          return fate;
        },
      }),
    FUZZ_MS,
  );

  // Without those that wait for replicas or the disk.
  const { durability: _, ...options } = ENQUEUE;
  const jobs = fc.record({ sample: payload, given: mixture(options), bulk: fc.boolean() });
  it(
    'of a call that is refused: nothing; of any other: that job, due when it says',
    () =>
      fuzz('jobs in Redis', jobs, {
        check: async ({ sample, given: { options: given, isSpoilt }, bulk }) => {
          const { producer } = await producerApp();
          const { redis, prefix } = here.world;
          await redis.flushall();
          const before = await here.world.now();
          let result: Awaited<ReturnType<DelayQueueProducer['enqueue']>> | undefined;
          const fate = await fateOf(async () => {
            if (bulk && isItem(given)) {
              const item = Object.defineProperties({ payload: sample.given }, Object.getOwnPropertyDescriptors(given));
              [, result] = await producer.enqueueMany('mail', [{ payload: 'good' }, item]);
            } else {
              result = await producer.enqueue('mail', sample.given, given);
            }
          });
          if (isSpoilt || sample.comes === 'refused') expect(fate).not.toBe('accepted');
          if (!result) {
            expect(await redis.dbsize()).toBe(0);
            return fate;
          }
          const after = await here.world.now();
          expect(await strayKeys(prefix, 'mail')).toEqual([]);
          const { delay = 0, at } = given as { delay?: number | string; at?: Date | number };
          const delayMs = parseDuration(delay, '');
          const due = result.dueAt.getTime();
          const [from, to] =
            at === undefined ? [before + delayMs, after + delayMs] : [Number(at), Math.ceil(Number(at))];
          expect(due).toBeGreaterThanOrEqual(from);
          expect(due).toBeLessThanOrEqual(to);
          const stored = await producer.get('mail', result.id);
          const last = await here.world.now();
          expect(stored).toMatchObject({ id: given.id ?? result.id, dueAt: result.dueAt });
          if (due > last || due <= after) expect(stored!.state).toBe(due > last ? 'delayed' : 'due');
          expect(same(stored!.payload, (sample.comes as { value: unknown }).value)).toBe(true);
          expect(same(stored!.context, { ...given.context })).toBe(true);
          expect(stored!.maxAttempts).toBe(given.attempts);
          return fate;
        },
      }),
    FUZZ_MS,
  );
});

describe('Instances and prefixes', () => {
  const instances = fc.record({
    name: fc.oneof({ weight: 3, arbitrary: plainName }, anyName),
    prefix: fc.oneof({ weight: 3, arbitrary: plainName }, anyName),
  });
  it(
    'of any name boot and keep to their prefix, or are refused',
    () =>
      fuzz('instances in Redis', instances, {
        check: async ({ name, prefix }) => {
          const { redis, url } = here.world;
          await redis.flushall();
          const fate = await fateOf(async () => {
            const options = { connection: url, shutdownHooksWarning: false, consume: false };
            const booted = await here.boot({ imports: [DelayQueueModule.forRoot({ ...options, name, prefix })] });
            const producer = booted.get<DelayQueueProducer>(getDelayQueueToken(name));
            await producer.enqueue('mail', 1, { id: 'a' });
            await booted.get<DelayQueueInspector>(getDelayQueueToken(name, DelayQueueInspector)).queues();
            expect(await strayKeys(prefix, 'mail')).toEqual([]);
            await booted.close();
            expect(await strayKeys(prefix, 'mail')).toEqual([]);
          });
          const isFine = isName(name, 64, { ends: true }) && isName(prefix, 64, { ends: true });
          expect({ name, prefix, fate: fate === 'accepted' }).toEqual({ name, prefix, fate: isFine });
          if (!isFine) expect(await redis.dbsize()).toBe(0);
          return fate;
        },
      }),
    FUZZ_MS,
  );
});
