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
