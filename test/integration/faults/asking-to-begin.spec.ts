import { expect, it, jest } from '@jest/globals';
import type { RedisConnection } from '../../../lib/redis/redis.connection.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';
import { callsOf } from '../../helpers/script-calls.js';

const here = inAWorld();
const end = endingWithEachTest();

// It asks up to three times: that must not last beyond the time that a closing application gives to its handlers.
it.each(['cut', 'swallow'] as const)(
  'an application that is closed while it asks whether an occurrence may begin hands it back: its questions are %s',
  async (verdict) => {
    const queue = `asking-${verdict}`;
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const proxy = end(await Proxy.before(here.world.url));
    const ran: string[] = [];
    const providers = (from: string) => [handlerClass(queue, () => void ran.push(from), { lease: '1m' })];
    const { close } = await here.start({
      providers: providers('first'),
      options: { connection: proxy.url, commandTimeout: 1_500, drainTimeout: '2s' },
    });
    const asks = callsOf('beginOccurrence', true);
    let asked = 0;
    proxy.judge = (direction, chunk) => (direction === 'request' && asks(chunk) && ++asked > 0 ? verdict : 'pass');
    await producer.schedule(queue, 's', { every: '1s' }, null, { overlap: 'skip' });
    await eventually(() => expect(asked).toBeGreaterThan(0));
    const since = performance.now();
    await close();
    expect(performance.now() - since).toBeLessThan(4_000);
    expect(ran).toEqual([]);
    expect(await inspector.counts(queue)).toMatchObject({ running: 0 });
    await here.start({ providers: providers('second') });
    await eventually(() => expect(ran).toContain('second'));
    expect(ran).not.toContain('first');
  },
);

it('an occurrence that is only asked for is charged no attempt, however long that takes', async () => {
  const queue = 'asking-for-long';
  const { producer, inspector } = await here.start({ options: { consume: false } });
  const proxy = end(await Proxy.before(here.world.url));
  const ran: unknown[] = [];
  await here.start({
    providers: [handlerClass(queue, () => void ran.push(1), { lease: '1m', timeout: '1s', attempts: 1 })],
    options: { connection: proxy.url, commandTimeout: 1_000 },
  });
  const asks = callsOf('beginOccurrence', true);
  let asked = 0;
  proxy.judge = (direction, chunk) => (direction === 'request' && asks(chunk) && ++asked > 0 ? 'swallow' : 'pass');
  await producer.schedule(queue, 's', { every: '1s' }, null, { overlap: 'skip' });
  await eventually(() => expect(asked).toBeGreaterThan(6), 60_000);
  expect(ran).toEqual([]);
  expect(await inspector.totals(queue)).toMatchObject({ failed: 0, dead: 0 });
});

it('an occurrence whose lease ends while it is asked for does not begin: another process may have run it', async () => {
  const queue = 'asking-beyond-the-lease';
  const { producer, inspector } = await here.start({ options: { consume: false } });
  const proxy = end(await Proxy.before(here.world.url));
  const ran: string[] = [];
  const providers = (from: string) => [handlerClass(queue, () => void ran.push(from), { lease: '2s' })];
  const slow = await here.start({ providers: providers('slow'), options: { connection: proxy.url } });
  let tell!: () => void;
  const isHeld = new Promise<void>((resolve) => (tell = resolve));
  let asked = 0;
  const connection = (slow.inspector as any).shards.connection as RedisConnection;
  const run = connection.run.bind(connection);
  const calls = jest.spyOn(connection, 'run').mockImplementation(async (script, ...args) => {
    const answer = await run(script, ...args);
    if (script !== 'beginOccurrence') return answer;
    asked++;
    // It may begin, and Redis hears of nothing that this process says from now on.
    proxy.deafen();
    await isHeld;
    return answer;
  });
  try {
    await producer.schedule(queue, 's', { every: '1h' }, null, { overlap: 'skip' });
    await producer.triggerSchedule(queue, 's');
    await eventually(() => expect(asked).toBe(1));
    await here.start({ providers: providers('other') });
    await eventually(() => expect(ran).toContain('other'), 20_000);
    tell();
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ running: 0, due: 0 }));
    expect(ran).toEqual(['other']);
  } finally {
    tell();
    calls.mockRestore();
  }
});
