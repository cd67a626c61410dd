import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Replica } from '../../helpers/replica.js';

/** In a file of its own: a process numbers its sessions from 0, over all queues, and so does each file of tests. */
const here = inAWorld({ config: { 'repl-diskless-sync-delay': '0' } });
const QUEUES = 40;
let replica: Replica;

beforeAll(async () => {
  replica = await Replica.of(here.server);
});
afterAll(() => replica.stop());

it('what is written for a wait is the key of no session, so each session still knows its last call', async () => {
  const { producer } = await here.start({ options: { consume: false } });
  const remembered: (string | null)[] = [];
  for (let n = 0; n < QUEUES; n++) {
    const queue = `durable-${n}`;
    const { outcome } = await producer.enqueue(queue, n, { id: 'A', delay: '1h', durability: { replicas: 1 } });
    expect(outcome).toBe('created');
    const sessions = await here.world.redis.keys(`${here.world.key(queue, 'session')}*`);
    const texts = await here.world.redis.mget(sessions);
    remembered.push(...texts.filter((text) => text !== ''));
  }
  // The answer to the one call, with its number: a copy of it that arrives late makes no second job.
  expect(remembered).toHaveLength(QUEUES);
  for (const text of remembered) expect(text).toMatch(/^1 ./);
});

it('every queue with a durable call was remembered for ever; idle ones are forgotten, and used as before', async () => {
  const { producer } = await here.start({ options: { consume: false } });
  const durability = { replicas: 1 } as const;
  const sessions = async () => {
    const keys = await here.world.redis.keys(`${here.world.key('once', 'session')}*`);
    return (await here.world.redis.mget(keys)).filter((text) => text !== '').length;
  };
  await producer.enqueue('once', 1, { id: 'A', delay: '1h', durability });
  await producer.enqueue('once', 1, { id: 'B', delay: '1h', durability });
  expect(await sessions()).toBe(1);
  for (let at = 0; at < 1_100; at += 100) {
    const names = Array.from({ length: 100 }, (_, n) => `customer-${at + n}`);
    await Promise.all(names.map((queue) => producer.enqueue(queue, 1, { delay: '1h', durability })));
  }
  expect(await producer.enqueue('once', 2, { id: 'A', delay: '1h', durability })).toMatchObject({ outcome: 'kept' });
  expect(await sessions()).toBe(2); // the first one was forgotten, and expires
}, 30_000);
