import { expect, describe, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { handlerClass } from '../../helpers/app.js';
import type { TestApp } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';
import type { DelayedJob } from '../../../lib/index.js';

const here = inAWorld();
const ends = endingWithEachTest();
const RESTARTS = 100;
const CREW = 3;
/** A lease that never ends within the test: only a hand-over lets the next one have the job. */
const LEASE = '10m';
const DRAIN_MS = 30;
/** A process takes about a second to start, so there are a few here, and a hundred when asked for. */
const TERMED = Number(process.env['SIGTERMS'] ?? 4);

describe('Workers that are replaced one after the other under load', () => {
  it('a hundred times charge no attempt, and what they were at is taken up within 2 s', async () => {
    const handedOver = new Map<string, number>();
    const waits: number[] = [];
    const attempts = new Set<number>();
    const completed = new Set<string>();
    const handle = async (ms: number, job: DelayedJob) => {
      attempts.add(job.attempt);
      const since = handedOver.get(job.id);
      if (since !== undefined) waits.push(performance.now() - since);
      handedOver.delete(job.id);
      job.signal.addEventListener('abort', () => handedOver.set(job.id, performance.now()));
      await sleep(ms);
      if (!job.signal.aborted) completed.add(job.id);
    };
    const handler = () => handlerClass('roll', handle, { lease: LEASE, attempts: 1, concurrency: 5 });
    const start = () => here.start({ providers: [handler()], options: { drainTimeout: DRAIN_MS } });
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const crew: TestApp[] = await Promise.all(Array.from({ length: CREW }, start));
    let asked = 0;
    const load = setInterval(() => {
      asked++;
      void producer.enqueue('roll', asked % 5 === 0 ? 150 : 5);
    }, 10);
    for (let restart = 0; restart < RESTARTS; restart++) {
      const [leaving, joining] = [crew.shift()!, start()];
      await leaving.close();
      crew.push(await joining);
    }
    clearInterval(load);

    await eventually(async () => expect((await inspector.totals('roll')).completed).toBe(asked), 20_000);
    expect(completed.size).toBe(asked);
    expect(attempts).toEqual(new Set([1]));
    expect(handedOver.size).toBe(0);
    expect(waits.length).toBeGreaterThan(RESTARTS / 4);
    expect(Math.max(...waits)).toBeLessThan(2_000);
    expect((await here.world.read('roll')).attempts).toEqual({});
    expect(await inspector.totals('roll')).toMatchObject({ failed: 0, retried: 0, dead: 0 });
  });

  it(
    `as processes that get SIGTERM do so too, ${TERMED} times`,
    async () => {
      const settings = { queue: 'term', handler: { lease: LEASE, attempts: 1 }, options: { drainTimeout: 200 } };
      const { producer, inspector } = await here.start({ options: { consume: false } });
      const all: WorkerProcess[] = [];
      const start = async () => {
        const worker = ends(await WorkerProcess.start(here.world, settings));
        all.push(worker);
        return worker;
      };
      const crew = await Promise.all([start(), start()]);
      let asked = 0;
      const handedOver: string[] = [];
      for (let restart = 0; restart < TERMED; restart++) {
        const leaving = crew.shift()!;
        const items = Array.from({ length: 20 }, (_, n) => ({ payload: { waitMs: n % 4 === 0 ? 800 : 20 } }));
        await producer.enqueueMany('term', items);
        asked += items.length;
        await eventually(() => expect(leaving.of('start').length).toBeGreaterThan(0));
        expect(await leaving.terminate()).toEqual({ code: null, signal: 'SIGTERM' });
        handedOver.push(...leaving.of('aborted').map(({ id }) => id!));
        crew.push(await start());
      }
      await eventually(async () => expect((await inspector.totals('term')).completed).toBe(asked), 20_000);
      expect(handedOver.length).toBeGreaterThan(0);
      for (const id of handedOver) {
        // What a process says may arrive after what Redis says.
        const starts = await eventually(() => {
          const heard = all.flatMap((worker) => worker.of('start')).filter((message) => message.id === id);
          expect(heard.length).toBeGreaterThan(1);
          return heard;
        });
        const aborts = all.flatMap((worker) => worker.of('aborted')).filter((message) => message.id === id);
        // It was started 200 ms before it was aborted; the words of two processes may cross.
        for (const { at } of aborts) expect(Math.min(...starts.map((one) => one.at! - at!).filter((ms) => ms > -100))).toBeLessThan(60_000); // prettier-ignore
      }
      expect(new Set(all.flatMap((worker) => worker.of('start')).map(({ attempt }) => attempt))).toEqual(new Set([1]));
      expect((await here.world.read('term')).attempts).toEqual({});
      expect(await inspector.totals('term')).toMatchObject({ failed: 0, retried: 0, dead: 0 });
    },
    60_000 + TERMED * 3_000,
  );
});
