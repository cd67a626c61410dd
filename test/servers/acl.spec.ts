import { readFileSync } from 'node:fs';
import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DelayQueueHealth } from '../../lib/index.js';
import type { DelayedJob } from '../../lib/index.js';
import { createApp, handlerClass } from '../helpers/app.js';
import type { TestApp } from '../helpers/app.js';
import { endingWithEachTest } from '../helpers/ending.js';
import { eventually } from '../helpers/eventually.js';
import { inAWorld } from '../helpers/in-a-world.js';
import type { World } from '../helpers/world.js';

const here = inAWorld({ appendfsync: 'always' });
jest.spyOn(console, 'warn').mockImplementation(() => undefined); // ioredis has its own say about INFO
const ends = endingWithEachTest();

/** What docs/operations.md gives the user, by its words. */
const DOCUMENTED = /ACL SETUSER app on >secret ([^`]+)```/
  .exec(readFileSync('docs/operations.md', 'utf8'))![1]!
  .split(/\s+/)
  .filter((word) => word !== '' && word !== '\\');
/** Servers know the newest ones of these only since 7.2. */
const SINCE_7_2 = ['+client|setinfo', '+waitaof'];
const QUEUE = 'story';
/** More than health looks at in one check. */
const MORE_QUEUES = Array.from({ length: 300 }, (_, n) => `queue-${n}`);
let splits = 0;

// Another one than 0, which every connection has without asking.
beforeAll(() => here.world.redis.select(1));
afterEach(() => here.world.redis.call('ACL', 'DELUSER', 'app'));

interface Denial {
  reason: string;
  object: string;
}

async function denials(): Promise<Denial[]> {
  const log = (await here.world.redis.call('ACL', 'LOG')) as string[][];
  return log.map((entry) => ({ reason: entry[entry.indexOf('reason') + 1]!, object: entry[entry.indexOf('object') + 1]! })); // prettier-ignore
}

async function permit(words: readonly string[]): Promise<void> {
  const known = (await here.world.redis.call('COMMAND', 'INFO', 'WAITAOF')) as unknown[];
  const usable = known[0] === null ? words.filter((word) => !SINCE_7_2.includes(word)) : words;
  await here.world.redis.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret', ...usable);
  await here.world.redis.call('ACL', 'LOG', 'RESET');
}

/** Everything that an application may ask for. Goes on after each refusal, so that what is missing does not hide the rest. */
async function story(log: string[], ended?: (inspector: TestApp['inspector']) => Promise<unknown>): Promise<void> {
  const handle = (payload: unknown, job: DelayedJob) => {
    if (payload === 'fails' && job.attempt === 1) throw new Error('asked to fail');
  };
  const world = { connection: `${here.world.url.replace('://', '://app:secret@')}/1`, prefix: 'dq' } as World;
  const app = await createApp(world, {
    providers: [handlerClass(QUEUE, handle, { attempts: 2, backoff: () => 0 })],
    options: { commandTimeout: '2s', connectTimeout: '5s', drainTimeout: 0}, // prettier-ignore
    log,
  });
  const { close } = ends(app);
  const { producer, inspector } = app;
  const later = { delay: '1h' } as const;
  const steps: (() => Promise<unknown>)[] = [
    () => producer.enqueue(QUEUE, 'plain'),
    () => producer.enqueue(QUEUE, 'fails'),
    () => producer.enqueue(QUEUE, 'copied', { durability: { replicas: 1, timeout: 50 } }),
    () => producer.enqueue(QUEUE, 'synced', { durability: 'fsync' }),
    () => here.world.redis.zadd(`dq:{${QUEUE}}:due`, Date.now() + 3_600_000, 'ghost'), // an index without a record
    () => producer.enqueueMany(QUEUE, [{ payload: 1, id: 'ghost', ...later }, { payload: 2, id: 'b', ...later }]), // prettier-ignore
    () => producer.reschedule(QUEUE, 'b', { delay: '2h' }),
    () => producer.cancel(QUEUE, 'b'),
    () => producer.enqueue(QUEUE, 1, { id: 'c', ...later, onDuplicate: 'replace' }),
    () => producer.get(QUEUE, 'c'),
    () => inspector.move(QUEUE, ['c'], 'elsewhere'),
    () =>
      producer.enqueueMany(QUEUE, [
        { payload: 1, ...later },
        { payload: 2, ...later },
      ]),
    async () => {
      const { cursor } = await inspector.list(QUEUE, 'delayed', { limit: 1 });
      await inspector.list(QUEUE, 'delayed', { limit: 1, cursor: cursor! });
    },
    () => inspector.queues(),
    () => inspector.pause(QUEUE),
    () => inspector.resume(QUEUE),
    () => inspector.purge(QUEUE),
    () => producer.enqueue('split', 1, later),
    () => inspector.reshard('split', { to: splits++ % 2 === 0 ? 2 : 1, wait: '1s' }),
    () => inspector.remove('split', { force: true }),
    async () => ended?.(inspector),
    () => inspector.totals(QUEUE),
    () => here.world.redis.sadd('dq:queues', ...MORE_QUEUES),
    async () => expect(await app.app.get(DelayQueueHealth).check()).toMatchObject({ redis: { status: 'up' } }),
    () => here.world.redis.srem('dq:queues', ...MORE_QUEUES),
    close, // which clears up
  ];
  for (const [n, step] of steps.entries()) {
    await step().catch(
      (error: Error) => void log.push(`step ${n}: ${error.message} ${(error.cause as Error)?.message}`),
    );
  }
}

describe('a user with the documented permissions', () => {
  it('is refused nothing', async () => {
    await permit(DOCUMENTED);
    const log: string[] = [];
    await story(log, async (inspector) =>
      eventually(async () => expect((await inspector.totals(QUEUE)).completed).toBeGreaterThanOrEqual(3)),
    );
    expect(await denials()).toEqual([]);
    expect(log.filter((line) => /NOPERM|permission/i.test(line))).toEqual([]);
    // What fails is what this server cannot do at all.
    const failed = log.filter((line) => line.startsWith('step'));
    expect(failed.filter((line) => !/0 of 1 replicas|needs Redis 7\.2|Nothing was sent/.test(line))).toEqual([]);
  });

  it('reaches no other keys and channels', () => {
    expect(DOCUMENTED.filter((word) => /^[~&%]|keys|channels/.test(word))).toEqual(['resetkeys', '~dq:*', 'resetchannels', '&dq:*']); // prettier-ignore
    expect(DOCUMENTED.filter((word) => word.includes('@'))).toEqual(['-@all']);
  });

  it.each(DOCUMENTED.filter((word) => /^[+~&]/.test(word)))('misses %s', async (missing) => {
    const known = (await here.world.redis.call('COMMAND', 'INFO', 'WAITAOF')) as unknown[];
    if (known[0] === null && SINCE_7_2.includes(missing)) return;
    await permit(DOCUMENTED.filter((word) => word !== missing));
    const running = story([]).catch(() => undefined);
    const wanted = missing.startsWith('+')
      ? { reason: 'command', object: missing.slice(1) }
      : { reason: missing.startsWith('~') ? 'key' : 'channel' };
    await eventually(async () => expect(await denials()).toContainEqual(expect.objectContaining(wanted)), 30_000);
    await permit(DOCUMENTED); // so that the rest of it ends soon
    await running;
  });
});
