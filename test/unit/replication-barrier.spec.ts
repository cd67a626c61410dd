import { describe, expect, it } from '@jest/globals';
import { ReplicationBarrier, localFsyncs } from '../../lib/redis/replication-barrier.js';
import { slotOf } from '../../lib/redis/keys.js';
import type { RedisConnection } from '../../lib/redis/redis.connection.js';
import { NoAnswerError } from '../../lib/redis/redis.errors.js';

const ONE = { replicas: 1, timeoutMs: 100 };

/** A connection that notes what is sent, and answers a wait when it is told to. */
function fake() {
  const sent: string[] = [];
  const answers: { resolve: (value: unknown) => void; reject: (error: Error) => void }[] = [];
  const held = () => new Promise((resolve, reject) => answers.push({ resolve, reject }));
  const commands = {
    stream: {} as object | undefined,
    set: async (key: string) => void sent.push(`SET ${key}`),
    wait: (...args: unknown[]) => (sent.push(`WAIT ${args.join(' ')}`), held()),
    call: (...args: unknown[]) => (sent.push(args.join(' ')), held()),
  };
  const connection = { commands, send: (call: () => Promise<unknown>) => call() };
  const barrier = new ReplicationBarrier(connection as unknown as RedisConnection);
  const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  return { sent, answers, commands, barrier, turn };
}

describe('a barrier', () => {
  it('writes before it waits, so that the wait covers whatever was answered before', async () => {
    const { sent, answers, barrier, turn } = fake();
    const reached = barrier.wait(barrier.link('k'), 'k', ONE);
    await turn();
    expect(sent).toEqual(['SET k', 'WAIT 1 100']);
    answers[0]!.resolve(2);
    expect(await reached).toBe(2);
  });

  it('has one wait at a time; calls that come meanwhile share the next', async () => {
    const { sent, answers, barrier, turn } = fake();
    const link = barrier.link('a');
    const first = [barrier.wait(link, 'a', ONE), barrier.wait(link, 'b', ONE)];
    await turn();
    const next = [barrier.wait(link, 'c', ONE), barrier.wait(link, 'd', { replicas: 2, timeoutMs: 100 }), barrier.wait(link, 'e', ONE)]; // prettier-ignore
    await turn();
    expect(sent).toEqual(['SET a', 'WAIT 1 100']);
    answers[0]!.resolve(1);
    expect(await Promise.all(first)).toEqual([1, 1]);
    await turn();
    expect(sent.slice(2)).toEqual(['SET c', 'WAIT 1 100']);
    answers[1]!.resolve(1);
    await turn();
    expect(sent.slice(4)).toEqual(['SET d', 'WAIT 2 100']);
    answers[2]!.resolve(2);
    expect(await Promise.all(next)).toEqual([1, 2, 1]);
  });

  it('does not vouch for what was sent over another link', async () => {
    const { sent, commands, barrier, turn } = fake();
    const before = barrier.link('k');
    for (const stream of [{}, undefined]) {
      commands.stream = stream;
      await expect(barrier.wait(before, 'k', ONE)).rejects.toBeInstanceOf(NoAnswerError);
    }
    await turn();
    expect(sent).toEqual([]);
  });

  it('passes a lost link on, and goes on with the next', async () => {
    const { answers, barrier, turn } = fake();
    const first = barrier.wait(barrier.link('k'), 'k', ONE);
    await turn();
    const second = barrier.wait(barrier.link('k'), 'k', ONE);
    answers[0]!.reject(new Error('Connection is closed.'));
    await expect(first).rejects.toThrow('Connection is closed.');
    await turn();
    answers[1]!.resolve(1);
    expect(await second).toBe(1);
  });

  it.each(['ERR unknown command', 'NOPERM no permissions', 'OOM command not allowed'])(
    'counts nothing and says why, when the server refuses: %s',
    async (message) => {
      const { answers, barrier, turn } = fake();
      const reached = barrier.wait(barrier.link('k'), 'k', ONE);
      await turn();
      answers[0]!.reject(new Error(message));
      expect(await reached).toBe(0);
      expect(barrier.problem).toMatchObject({ message });
    },
  );

  it('asks for the append-only file of the server itself, and of no replica', async () => {
    const { sent, answers, barrier, turn } = fake();
    const reached = barrier.wait(barrier.link('k'), 'k', { replicas: 0, timeoutMs: 100 });
    await turn();
    expect(sent).toEqual(['SET k', 'WAITAOF 1 0 100']);
    answers[0]!.resolve([1, 0]);
    expect(await reached).toBe(1);
  });
});

it.each<[unknown, number]>([
  [[1, 0], 1],
  [['1', '2'], 1],
  [[0, 2], 0],
  [[], 0],
  ['OK', 0],
  [null, 0],
])('the answer %p of WAITAOF means %p local fsync', (reply, fsyncs) => {
  expect(localFsyncs(reply)).toBe(fsyncs);
});

// As CLUSTER KEYSLOT gives them; 12182 and 5061 are those of the Cluster specification's examples.
it.each([
  ['foo', 12182],
  ['bar', 5061],
  ['dq:{foo}:due', 12182],
  ['123456789', 12739],
])('the slot of %p is %p', (key, slot) => {
  expect(slotOf(key)).toBe(slot);
});
