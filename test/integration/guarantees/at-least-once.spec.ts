import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { DiscardJob, SnoozeJob, fixed } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';
import { callsOf } from '../../helpers/script-calls.js';

const here = inAWorld();
const end = endingWithEachTest();
const isStep = callsOf('step');

/** Cuts the connection at every second round trip of the worker: in turn before Redis runs it, and before it is answered. */
function cutAtSteps(proxy: Proxy): void {
  let steps = 0;
  let loseReply = false;
  proxy.judge = (direction, chunk) => {
    if (direction === 'request' && isStep(chunk)) {
      steps++;
      loseReply = steps % 4 === 1;
      return steps % 4 === 3 ? 'cut' : 'pass';
    }
    const lose = direction === 'reply' && loseReply;
    if (lose) loseReply = false;
    return lose ? 'cut' : 'pass';
  };
}

describe('An accepted job runs at least once', () => {
  it('and only once, when nothing but the connection of its worker fails', async () => {
    const JOBS = 600;
    const proxy = end(await Proxy.before(here.world.url));
    cutAtSteps(proxy);
    const starts = new Map<string, number>();
    const handle = async (_: unknown, { id }: DelayedJob) => {
      starts.set(id, (starts.get(id) ?? 0) + 1);
      await sleep(3);
    };
    const { producer } = await here.start({ options: { consume: false } });
    await here.start({
      providers: [handlerClass('mail', handle, { concurrency: 20, lease: '30s' })],
      options: { connection: proxy.url },
    });
    await producer.enqueueMany(
      'mail',
      Array.from({ length: JOBS }, () => ({ payload: {} })),
    );

    await eventually(async () => expect((await here.world.read('mail')).meta['completed']).toBe(String(JOBS)), 20_000);
    expect(proxy.lost).toBeGreaterThan(10);
    expect(starts.size).toBe(JOBS);
    expect([...starts.values()].filter((times) => times !== 1)).toEqual([]);
  });

  it('or is found waiting, running, dead, cancelled or expired: never nowhere', async () => {
    let free!: () => void;
    const hold = new Promise<void>((resolve) => (free = resolve));
    const endings: Record<string, (job: DelayedJob) => unknown> = {
      complete: () => undefined,
      fail: () => Promise.reject(new Error('always')),
      failOnce: ({ attempt }) => attempt === 1 && Promise.reject(new Error('once')),
      discard: () => Promise.reject(new DiscardJob('not wanted')),
      snooze: ({ snoozes }) => snoozes === 0 && Promise.reject(new SnoozeJob(20)),
      run: () => hold,
    };
    const handlers = handlerClass('all', (kind: string, job) => endings[kind]!(job), {
      attempts: 2,
      backoff: fixed(20),
      concurrency: 100,
    });
    const { producer, inspector } = await here.start({ providers: [handlers] });
    await inspector.pause('all');
    const TIMES = 20;
    for (const kind of Object.keys(endings)) {
      await producer.enqueueMany(
        'all',
        Array.from({ length: TIMES }, () => ({ payload: kind })),
      );
    }
    await producer.enqueueMany(
      'all',
      Array.from({ length: TIMES }, () => ({ payload: 'wait', delay: '1h' })),
    );
    await producer.enqueueMany(
      'all',
      Array.from({ length: TIMES }, () => ({ payload: 'expire', expiresIn: 1 })),
    );
    const unwanted = await producer.enqueueMany(
      'all',
      Array.from({ length: TIMES }, () => ({ payload: 'cancel' })),
    );
    for (const { id } of unwanted) await producer.cancel('all', id);
    await sleep(5);
    await inspector.resume('all');

    await eventually(async () => {
      expect(await inspector.counts('all')).toMatchObject({ delayed: TIMES, due: 0, running: TIMES, dead: 2 * TIMES });
      expect(await inspector.totals('all')).toMatchObject({
        enqueued: 9 * TIMES,
        completed: 3 * TIMES,
        expired: TIMES,
        dead: 2 * TIMES,
      });
    });
    expect(await here.world.violations('all')).toEqual([]);
    free();
    await eventually(async () => expect(await inspector.totals('all')).toMatchObject({ completed: 4 * TIMES }));
  });
});
