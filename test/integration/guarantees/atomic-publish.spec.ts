import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DelayedJob, UnavailableError } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';
import { callsOf } from '../../helpers/script-calls.js';

const here = inAWorld();
const end = endingWithEachTest();
const isEnqueue = callsOf('enqueue');

/** On a busy machine a call may take longer than its time. It names its job, so repeating it is safe: that is promised here. */
const untilAnswered = eventually;

/** A producer behind a proxy, with its scripts loaded. */
async function farProducer(queue: string, commandTimeout = 5_000) {
  const proxy = end(await Proxy.before(here.world.url));
  const { producer } = await here.start({ options: { consume: false, connection: proxy.url, commandTimeout } });
  await untilAnswered(() => producer.enqueue(queue, 'first', { id: 'first', delay: '1h' }));
  return { proxy, producer };
}

/** Loses one enqueue, and all that follows while `meanwhile` holds. */
function lose(proxy: Proxy, when: 'before' | 'after', meanwhile = () => false): void {
  let called = false;
  let lost = false;
  proxy.judge = (direction, chunk) => {
    if (lost) return meanwhile() ? 'cut' : 'pass';
    called ||= isEnqueue(chunk);
    lost = called && direction === (when === 'before' ? 'request' : 'reply');
    return lost ? 'cut' : 'pass';
  };
}

describe('An enqueue happens as a whole and once', () => {
  it('in a single script call', async () => {
    const { proxy, producer } = await farProducer('single');
    const requests: Buffer[] = [];
    proxy.judge = (direction, chunk) => {
      if (direction === 'request') requests.push(chunk);
      return 'pass';
    };
    await producer.enqueue('single', 'second');
    expect(requests.map(isEnqueue)).toEqual([true]);
  });

  it('that also wakes a worker', async () => {
    const runs: DelayedJob[] = [];
    // Without a word from anybody it would look again five seconds after each run.
    const { producer } = await here.start({ providers: [handlerClass('wake', (_, job) => runs.push(job))] });
    await producer.enqueue('wake', {});
    await eventually(() => expect(runs).toHaveLength(1));
    for (let n = 0; n < 5; n++) {
      await producer.enqueue('wake', {}, { delay: 50 });
      await eventually(() => expect(runs).toHaveLength(n + 2));
    }
    expect(Math.max(...runs.slice(1).map(({ latenessMs }) => latenessMs))).toBeLessThan(4_000);
  });

  it.each(['before', 'after'] as const)('when the connection breaks %s Redis ran it', async (when) => {
    const queue = `cut-${when}`;
    const { proxy, producer } = await farProducer(queue);
    lose(proxy, when);
    expect(await producer.enqueue(queue, 'second')).toMatchObject({ outcome: 'created', state: 'due' });
    expect(proxy.lost).toBe(1);
    expect((await here.world.read(queue)).meta['enqueued']).toBe('2');
    expect(await here.world.violations(queue)).toEqual([]);
  });

  it('even when the job is long done by the time of the resend', async () => {
    const runs: unknown[] = [];
    const { inspector } = await here.start({ providers: [handlerClass('done', (payload) => runs.push(payload))] });
    const { proxy, producer } = await farProducer('done');
    lose(proxy, 'after', () => runs.length === 0);
    expect(await producer.enqueue('done', 'second')).toMatchObject({ outcome: 'created' });
    await eventually(async () => expect(await inspector.totals('done')).toMatchObject({ enqueued: 2, completed: 1 }));
    expect(runs).toEqual(['second']);
    expect(await inspector.counts('done')).toMatchObject({ delayed: 1, due: 0, running: 0 });
  });

  it('in every chunk of a bulk, while connections break again and again', async () => {
    // Longer than a busy machine needs to get a call through between two cuts.
    const { proxy, producer } = await farProducer('bulk', 20_000);
    let cutting = true;
    const cuts = (async () => {
      while (cutting) {
        await sleep(20 + Math.random() * 60);
        proxy.cut();
      }
    })();
    try {
      for (let round = 0; round < 10; round++) {
        const items = Array.from({ length: 500 }, (_, n) => ({ payload: n, delay: '1h' }));
        const results = await producer.enqueueMany('bulk', items);
        expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(['created']));
      }
    } finally {
      cutting = false;
      await cuts;
    }
    expect((await here.world.read('bulk')).meta['enqueued']).toBe('5001');
    expect(await here.world.violations('bulk')).toEqual([]);
  });

  it('and is safe to repeat by its id when its fate is unknown', async () => {
    const { proxy, producer } = await farProducer('unknown', 300);
    proxy.judge = (direction) => (direction === 'reply' ? 'swallow' : 'pass');
    const error = await producer.enqueue('unknown', 'second').catch((thrown: UnavailableError) => thrown);
    expect(error).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', maybeAccepted: true, id: expect.any(String) });
    proxy.judge = () => 'pass';

    const { id } = error as { id: string };
    const repeated = await untilAnswered(() => producer.enqueue('unknown', 'second', { id }));
    expect(repeated).toMatchObject({ id, outcome: 'created' });
    expect((await here.world.read('unknown')).meta['enqueued']).toBe('2');
  });
});
