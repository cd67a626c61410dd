import { describe, expect, it } from '@jest/globals';
import { DelayQueueHealth } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import type { TestApp } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { monitoring } from '../../helpers/monitoring.js';

// A private server, because everything that it is told is read along.
const here = inAWorld({});

interface Command {
  command: string;
  args: string[];
}

/** What Redis was sent while `act` ran, by clients and by scripts. */
async function commandsDuring(act: () => Promise<unknown>): Promise<Command[]> {
  const commands: Command[] = [];
  const monitor = await monitoring(here.world.redis);
  monitor.on('monitor', (_time: string, [command, ...args]: [string, ...string[]]) => {
    commands.push({ command: command.toLowerCase(), args });
  });
  try {
    await act();
    await here.world.redis.echo('the end');
    await eventually(() => expect(commands.at(-1)).toEqual({ command: 'echo', args: ['the end'] }));
  } finally {
    monitor.disconnect();
  }
  return commands.filter(({ command, args }) => command !== 'echo' && command !== 'ping' && args[0] !== 'the end');
}

// Not `sscan`: what is read with it is the list of the names of queues, a bounded part at a time.
const WHOLE_KEY = /^(keys|scan|hscan|zscan|hgetall|hkeys|hvals|sort|flushall|flushdb)$/;

/** Commands whose work grows with the length of a queue. */
function unbounded(commands: Command[]): string[] {
  return commands
    .filter(({ command, args }) => {
      if (WHOLE_KEY.test(command)) return true;
      if (/^z(rev)?range|^zremrange/.test(command) && !args.includes('LIMIT')) return !/^\d+$/.test(args[2]!);
      return (
        /^(smembers|sscan|del|unlink)$/.test(command) &&
        args.some((key) => /:(due|jobs|running|dead|quarantine)$/.test(key))
      );
    })
    .map(({ command, args }) => [command, ...args].join(' '));
}

/** Everything that an application can ask for, once, about a queue that nobody drains. */
async function useOnce({ app, producer, inspector }: TestApp, queue: string): Promise<void> {
  const { id } = await producer.enqueue(queue, {}, { delay: '1h' });
  await producer.enqueue(queue, {}, { id, onDuplicate: 'replace', delay: '2h' });
  await producer.reschedule(queue, id, { delay: '3h' });
  await producer.get(queue, id);
  await producer.cancel(queue, id);
  await inspector.counts(queue);
  for (const state of ['delayed', 'due', 'running', 'dead'] as const) await inspector.list(queue, state, { limit: 5 });
  await inspector.pause(queue);
  await inspector.resume(queue);
  await inspector.requeueDead(queue, ['nobody']);
  await inspector.removeDead(queue, ['nobody']);
  await inspector.queues();
  await app.get(DelayQueueHealth).check();
}

/** Fills a queue with jobs of every kind. */
async function fill({ producer }: TestApp, queue: string, from: number, to: number): Promise<void> {
  const numbers = Array.from({ length: to - from }, (_, n) => from + n);
  await producer.enqueueMany(
    queue,
    numbers.map((n) => ({ payload: n, delay: n % 2 ? '1h' : 0 })),
  );
  await here.world.redis.zadd(here.world.key(queue, 'dead'), ...numbers.flatMap((n) => [n, `dead${n}`]));
}

/** How often the scripts among `told` did something, call by call. */
function perCall(commands: Command[], what: (one: Command) => boolean): number[] {
  const counts: number[] = [];
  for (const one of commands) {
    if (one.command === 'evalsha') counts.push(0);
    else if (what(one)) counts[counts.length - 1]!++;
  }
  return counts;
}

const LONG = 5_000;

describe('The work of a script is bounded by its arguments', () => {
  it('so calls tell Redis no more about a long queue than about a short one, and read no key as a whole', async () => {
    const app = await here.start({ options: { consume: false } });
    await fill(app, 'queue', 0, 50);
    await useOnce(app, 'queue');
    const short = await commandsDuring(() => useOnce(app, 'queue'));
    await fill(app, 'queue', 50, LONG);
    const long = await commandsDuring(() => useOnce(app, 'queue'));
    expect(unbounded([...short, ...long])).toEqual([]);
    expect(Math.abs(long.length - short.length)).toBeLessThan(5);
    expect(short.length).toBeGreaterThan(50);
  });

  it('so a worker takes at most 200 jobs at once, and 50 back from workers that died', async () => {
    const { redis } = here.world;
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueueMany(
      'drain',
      Array.from({ length: LONG }, (_, n) => ({ payload: n })),
    );
    const orphaned = await redis.zrange(here.world.key('drain', 'due'), '0', '1999');
    await redis.zrem(here.world.key('drain', 'due'), ...orphaned);
    await redis.zadd(here.world.key('drain', 'running'), ...orphaned.flatMap((id, n) => [n + 1, id]));
    await redis.zadd(here.world.key('drain', 'leases'), ...orphaned.flatMap((_, n) => [n + 1, String(n + 1)]));

    let runs = 0;
    const commands = await commandsDuring(async () => {
      const hold = new Promise<void>(() => {});
      const handler = handlerClass('drain', () => (runs++, hold), { concurrency: 1_000, lease: '30s' });
      await here.start({ providers: [handler], options: { drainTimeout: 0 } });
      await eventually(() => expect(runs).toBe(1_000));
    });
    expect(unbounded(commands)).toEqual([]);
    const longest = (command: string) =>
      Math.max(...commands.filter((one) => one.command === command).map(({ args }) => args.length));
    expect(longest('hmget')).toBe(1 + 200);
    expect(longest('zadd')).toBe(1 + 2 * 201); // with the member that makes a skiplist
    const takenBack = perCall(commands, ({ command, args }) => command === 'zadd' && args[0]!.endsWith(':quarantine'));
    expect(Math.max(...takenBack)).toBe(50);
  });
});
