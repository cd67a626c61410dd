import { expect, it } from '@jest/globals';
import { DiscardJob } from '../../../lib/index.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';

/** What once went wrong, by the name of what went wrong. */

const here = inAWorld();

it('the reason of a DiscardJob was logged whole, however long and in however many lines', async () => {
  const log: string[] = [];
  const reason = `no such customer\n${'x'.repeat(100_000)}`;
  const handle = () => {
    throw new DiscardJob(reason);
  };
  const { producer, queue, becomes } = await oneHandler(here, handle, {}, log);
  await producer.enqueue(queue, {}, { id: 'a' });
  await becomes('a', { state: 'dead', deadReason: 'discarded' });
  const [line] = log.filter((one) => one.includes('dead letter (discarded)'));
  expect(line!.length).toBeLessThan(500);
  expect(line).toMatch(/: no such customer x{100,200}\.\.\./);
});
