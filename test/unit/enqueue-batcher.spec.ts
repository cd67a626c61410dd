import { describe, expect, it } from '@jest/globals';
import { EnqueueBatcher } from '../../lib/producer/enqueue-batcher.js';
import { enqueueHead } from '../../lib/redis/enqueue.protocol.js';
import { NoAnswerError } from '../../lib/redis/redis.errors.js';
import type { SessionCall } from '../../lib/redis/session.js';
import type { ShardStore } from '../../lib/redis/shard-store.js';

const NOW = 1_800_000_012_345;
const TIMEOUT_MS = 50;
const item = (id: string) => ({ id, spec: 'kd0', content: '\n1' });

/** A shard whose first call gets no answer. The question what became of it is answered when the test says so. */
function silentShard() {
  let answer!: (text: string) => void;
  const question = new Promise<string>((resolve) => (answer = resolve));
  let calls = 0;
  const session = () => ({
    busy: false,
    isSettled: true,
    call({ onSent, onDoubt }: SessionCall) {
      if (calls++ > 0) return Promise.resolve(`${NOW} c - ${NOW}`);
      onSent!();
      const error = new NoAnswerError('Silence.');
      onDoubt!(error);
      return Promise.reject(error);
    },
    again: () => question,
  });
  const connection = { isReady: true, isClosed: false, isInterrupted: false };
  const store = { connection, queue: 'q', session, heard: () => {} } as unknown as ShardStore;
  const batcher = new EnqueueBatcher(store, TIMEOUT_MS, { decode: (body) => body });
  return { batcher, answer, calls: () => calls };
}

describe('a repeat of an enqueue in doubt', () => {
  it.each([
    ['that never took effect', `${NOW}`],
    ['that was refused while publishing was paused, and of which the answer tells once', `${NOW} b - 0`],
  ])(
    'is a call like any other after the answer about a call %s came too late for the first repeat',
    async (_, told) => {
      const { batcher, answer, calls } = silentShard();
      const both = ['a', 'b'].map((id) => batcher.enqueue(item(id)));
      for (const call of both) await expect(call).rejects.toMatchObject({ maybeAccepted: true });
      await expect(batcher.enqueue(item('b'))).rejects.toMatchObject({ maybeAccepted: true });
      expect(calls()).toBe(1);
      answer(told);
      await new Promise(setImmediate);
      await expect(batcher.enqueue(item('b'))).resolves.toMatchObject({ outcome: 'created' });
      expect(calls()).toBe(2);
      await batcher.close(0);
    },
  );
});

it('a repeat that is refused because too much waits leaves the enqueue in doubt to the next one', async () => {
  const { batcher, answer, calls } = silentShard();
  await expect(batcher.enqueue(item('a'))).rejects.toMatchObject({ maybeAccepted: true });
  const large = batcher.enqueue({
    ...item('large'),
    content: '\n' + 'x'.repeat(64 * 1024 * 1024 - 'large'.length - 1),
  });
  await expect(batcher.enqueue(item('a'))).rejects.toMatchObject({ code: 'ERR_DQ_BACK_PRESSURE' });
  await large.catch(() => undefined); // on a slow machine its time may be over
  const before = calls();
  const again = batcher.enqueue(item('a'));
  answer(`${NOW} k r ${NOW}`);
  await expect(again).resolves.toMatchObject({ outcome: 'kept' });
  expect(calls()).toBe(before);
  await batcher.close(0);
});

it.each([
  [`${NOW}`, false],
  [`${NOW} c - ${NOW}`, false],
  [`+${NOW} c - ${NOW}`, true],
])('an answer tells the time, whether it is about jobs or about none: %s', (answer, isNew) => {
  expect(enqueueHead(answer)).toEqual({ now: NOW, isNew });
});
