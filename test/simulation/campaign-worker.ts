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

export interface CampaignAnswer {
  readonly result: Result;
  readonly secondHash: string | undefined;
}

const { project, given, twice } = workerData as CampaignWork;

// One seed at a time; the next one is sent when the answer is there.
parentPort!.on('message', (seed: number) => {
  const failed = (error: unknown) => {
    // Outside of promises, where it ends the thread, and the other side is told.
    setImmediate(() => {
      throw error;
    });
  };
  answer(seed).then((done) => parentPort!.postMessage(done), failed);
});

async function answer(seed: number): Promise<CampaignAnswer> {
  const plan = planOf(seed, given);
  const result = await runPlan(plan, { project });
  return { result, secondHash: twice ? (await runPlan(plan, { project })).hash : undefined };
}
