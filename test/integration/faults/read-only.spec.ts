import { afterEach, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld({});
afterEach(() => here.world.redis.replicaof('NO', 'ONE'));

async function connectionsSoFar(): Promise<number> {
  return Number(/total_connections_received:(\d+)/.exec(await here.world.redis.info('stats'))![1]);
}

describe('A Redis that is read-only for two seconds', () => {
  it('between the end of handlers and their settles makes no handler run again', async () => {
    const JOBS = 200;
    const starts = new Map<string, number>();
    const log: string[] = [];
    let open!: () => void;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const handle = (_: unknown, { id }: DelayedJob) => {
      starts.set(id, (starts.get(id) ?? 0) + 1);
      return gate;
    };
    const { producer, inspector } = await here.start({
      providers: [handlerClass('settle', handle, { concurrency: 100, lease: '1s' })],
      log,
    });
    await producer.enqueueMany(
      'settle',
      Array.from({ length: JOBS }, () => ({ payload: {} })),
    );
    await eventually(() => expect(starts.size).toBe(100));

    const before = await connectionsSoFar();
    // The data stays: the port is dead, so the replica never gets as far as to replace it.
    await here.world.redis.replicaof('127.0.0.1', '1');
    open();
    const enqueued = producer.enqueue('settle', {});
    await sleep(2_000);
    expect((await here.world.read('settle')).meta['completed']).toBeUndefined();
    // A demoted master keeps its connections, and only a new one finds the new master.
    expect(await connectionsSoFar()).toBeGreaterThan(before);
    await here.world.redis.replicaof('NO', 'ONE');

    expect(await enqueued).toMatchObject({ outcome: 'created' });
    await eventually(
      async () => expect(await inspector.totals('settle')).toMatchObject({ completed: JOBS + 1 }),
      15_000,
    );
    expect(starts.size).toBe(JOBS + 1);
    expect(new Set(starts.values())).toEqual(new Set([1]));
    expect(await inspector.totals('settle')).toMatchObject({ failed: 0, retried: 0, dead: 0 });
    const lines = log.filter((line) => / Redis at \S+ (is read-only|is not reachable|is back)/.test(line));
    expect(lines).toEqual([
      expect.stringMatching(/^warn .*is read-only/),
      expect.stringMatching(/^log .*is back after/),
    ]);
  });
});
