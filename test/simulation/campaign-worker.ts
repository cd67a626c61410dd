import { parentPort, workerData } from 'node:worker_threads';
import { planOf } from './plan.js';
import type { Configuration } from './plan.js';
import { runPlan } from './run-seed.js';
import type { Result } from './simulation.js';

export interface CampaignWork {
  readonly project: string;
  readonly given: Partial<Configuration>;
  /** Each seed runs a second time, and both must be equal. */
  readonly twice: boolean;
}

/** A seed, and what it is given so that kinds of faults that are behind come often. */
export interface CampaignSeed {
  readonly seed: number;
  readonly filling?: Partial<Configuration>;
}

export interface CampaignAnswer extends CampaignSeed {
  readonly result: Result;
  readonly secondHash: string | undefined;
}

const { project, given, twice } = workerData as CampaignWork;

// One seed at a time; the next one is sent when the answer is there.
parentPort!.on('message', (seed: CampaignSeed) => {
  const failed = (error: unknown) => {
    // Outside of promises, where it ends the thread, and the other side is told.
    setImmediate(() => {
      throw error;
    });
  };
  answer(seed).then((done) => parentPort!.postMessage(done), failed);
});

async function answer(one: CampaignSeed): Promise<CampaignAnswer> {
  const plan = planOf(one.seed, { ...given, ...one.filling });
  const result = await runPlan(plan, { project });
  return { ...one, result, secondHash: twice ? (await runPlan(plan, { project })).hash : undefined };
}
