import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { setTimeout as sleep } from 'node:timers/promises';
import { SnoozeJob } from '../../../lib/index.js';
import type { BatchJob, DelayedJob, DelayQueueProducer, HandlerOptions } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

/** A worker that overlooks a head finds it after 5 s at the latest, when it reads again without being told. */
const WELL_BEFORE_THE_RE_READ_MS = 2_500;
const ROUNDS = 120;

interface Plan {
  readonly queue: string;
  readonly way: 'now' | 'later' | 'runNow' | 'reschedule';
  readonly ms: number;
  readonly runsMs: number;
  readonly fails: number;
  readonly snoozeMs: number;
  readonly awaited: boolean;
}

const rarely = (ms: number) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: ms }) });
const PLAN: fc.Arbitrary<Plan> = fc.record({
  queue: fc.constantFrom('one', 'ten', 'hundred', 'batches'),
  way: fc.constantFrom('now', 'later', 'runNow', 'reschedule'),
  ms: fc.nat(50),
  runsMs: rarely(5),
  fails: rarely(2),
  snoozeMs: rarely(10),
  awaited: fc.boolean(),
});

async function put(producer: DelayQueueProducer, id: string, { queue, way, ms, ...payload }: Plan): Promise<void> {
  const job = (delay: number | '1h') => producer.enqueue(queue, payload, { id, delay });
  if (way === 'now') await job(0);
  else if (way === 'later') await job(ms);
  else {
    await job('1h');
    await (way === 'runNow' ? producer.runNow(queue, id) : producer.reschedule(queue, id, { delay: ms }));
  }
}

it.each([1, 2])(
  'a retry that became the head during another step was found by the re-read only (%i processes)',
  async (n) => {
    const ended = new Set<string>();
    const options = (concurrency: number): HandlerOptions => ({
      concurrency,
      attempts: 5,
      backoff: (attempt) => attempt,
    });
    const handle = async ({ runsMs, fails, snoozeMs }: Plan, job: DelayedJob) => {
      if (runsMs > 0) await sleep(runsMs);
      if (job.attempt <= fails) throw new Error('no luck');
      if (snoozeMs > 0 && job.snoozes === 0) throw new SnoozeJob(snoozeMs);
      ended.add(job.id);
    };
    const handleBatch = (_: unknown, jobs: unknown) => (jobs as BatchJob[]).forEach(({ id }) => ended.add(id));
    const providers = [
      handlerClass('one', handle, options(1)),
      handlerClass('ten', handle, options(10)),
      handlerClass('hundred', handle, options(100)),
      handlerClass('batches', handleBatch, { batch: { size: 2 } }),
    ];
    const apps = [];
    for (let i = 0; i < n; i++) apps.push(await here.start({ providers }));
    const { producer } = apps[0]!;
    const seed = Number(process.env['LOOKS_SEED'] ?? Date.now() % 2 ** 31);
    const rounds = fc.sample(fc.array(PLAN, { minLength: 1, maxLength: 6 }), { numRuns: ROUNDS, seed });
    for (const [round, plans] of rounds.entries()) {
      const puts: Promise<void>[] = [];
      for (const [k, plan] of plans.entries()) {
        const promise = put(producer, `${n}-${round}-${k}`, plan);
        puts.push(promise);
        if (plan.awaited) await promise;
      }
      await Promise.all(puts);
      await eventually(() => {
        const missing = plans.filter((_, k) => !ended.has(`${n}-${round}-${k}`));
        expect({ LOOKS_SEED: seed, round, missing }).toEqual({ LOOKS_SEED: seed, round, missing: [] });
      }, WELL_BEFORE_THE_RE_READ_MS);
    }
  },
);
