import { describe, expect, it } from '@jest/globals';
import { HistoryWriter } from '../../lib/history/history-writer.js';
import type { InstanceContext } from '../../lib/instance/instance-context.js';
import { NoAnswerError } from '../../lib/redis/redis.errors.js';
import { inBuckets, Tally } from '../../lib/tally/tally.js';

/** A Redis that counts, and that the test takes away or makes silent. */
function served() {
  const hashes = new Map<string, Record<string, number>>();
  const state = { isReady: true, isSilent: false, written: 0 };
  const connection = {
    get isReady() {
      return state.isReady;
    },
    send: (call: () => Promise<unknown>) => call(),
    commands: {
      time: async () => ['60030', '0'],
      hincrby: async (key: string, field: string, by: number) => {
        const hash = hashes.get(key) ?? {};
        hashes.set(key, { ...hash, [field]: (hash[field] ?? 0) + by });
        state.written++;
        if (state.isSilent) throw new NoAnswerError('the answer was lost');
      },
      pexpire: async () => 1,
    },
  };
  const context = { connection, options: { name: 'default', prefix: 'dq' } } as unknown as InstanceContext;
  const tally = new Tally(inBuckets);
  const writer = new HistoryWriter(context, tally, () => false, (error) => { throw error; }); // prettier-ignore
  const claimed = () => [...hashes.values()].map((hash) => hash['claimed'] ?? 0).reduce((sum, count) => sum + count, 0);
  return { hashes, state, tally, writer, claimed };
}

describe('the counts of a process', () => {
  it('are written as what is new since they were written before', async () => {
    const { tally, writer, claimed, state } = served();
    tally.of('default', 'q').claimed = 5;
    writer.cut();
    await writer.write();
    tally.of('default', 'q').claimed = 7;
    writer.cut();
    await writer.write();
    expect(claimed()).toBe(7);
    const { written } = state;
    writer.cut();
    await writer.write();
    expect(state.written).toBe(written); // Nothing happened: nothing is said.
  });

  it('wait while Redis is away', async () => {
    const { tally, writer, claimed, state } = served();
    state.isReady = false;
    tally.of('default', 'q').claimed = 5;
    writer.cut();
    await writer.write();
    expect(claimed()).toBe(0);
    state.isReady = true;
    await writer.write();
    expect(claimed()).toBe(5);
  });

  it('are not written again when the answer is lost: a job never counts twice', async () => {
    const { tally, writer, claimed, state } = served();
    state.isSilent = true;
    tally.of('default', 'q').claimed = 5;
    writer.cut();
    await writer.write();
    expect(claimed()).toBe(5);
    state.isSilent = false;
    writer.cut();
    await writer.write();
    expect(claimed()).toBe(5);
  });

  it('of other instances, and of the many queues that are counted together, are left out', async () => {
    const { tally, writer, hashes } = served();
    for (const [instance, queue] of [['eu', 'q'], ['default', '{others}'], ['default', 'q']] as const) tally.of(instance, queue).claimed = 1; // prettier-ignore
    writer.cut();
    await writer.write();
    expect([...hashes.keys()]).toEqual(['dq:{q}:minute:1000']);
  });
});
