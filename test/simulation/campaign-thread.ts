import { Worker } from 'node:worker_threads';
import type { CampaignAnswer, CampaignSeed, CampaignWork } from './campaign-worker.js';

/** A seed takes seconds. One that is not over by then, on a busy machine, hangs. */
const LONGEST_SEED_MS = 600_000;
/** A thread ends after so many seeds, and another one takes its place: whatever it holds on to is gone. */
const SEEDS_PER_THREAD = 500;
const RESOURCES = { maxOldGenerationSizeMb: 2_048, maxYoungGenerationSizeMb: 128 };

/** A seed during which its thread died, or that did not come to an end. */
export interface Crash extends CampaignSeed {
  readonly why: string;
}

export interface CampaignListener {
  /** @returns the next seed; undefined when there is none */
  take(): CampaignSeed | undefined;
  note(answer: CampaignAnswer): void;
  crashed(crash: Crash): void;
}

/** Runs seeds one after the other, each in a worker thread, until there are none. */
export async function runSeeds(work: CampaignWork, listener: CampaignListener): Promise<void> {
  for (let seed = listener.take(); seed !== undefined;) {
    const worker = new Worker(new URL('campaign-worker.js', import.meta.url), {
      workerData: work,
      resourceLimits: RESOURCES,
    });
    // One that is ended while it runs may still tell of an error.
    worker.on('error', () => {});
    try {
      for (let n = 0; seed !== undefined && n < SEEDS_PER_THREAD; n++) {
        const answer: CampaignAnswer | string = await answerOf(worker, seed);
        if (typeof answer === 'string') listener.crashed({ ...seed, why: answer });
        else listener.note(answer);
        seed = listener.take();
        if (typeof answer === 'string') break;
      }
    } finally {
      await worker.terminate();
    }
  }
}

/** @returns why there is no answer, if there is none */
function answerOf(worker: Worker, seed: CampaignSeed): Promise<CampaignAnswer | string> {
  return new Promise((resolve) => {
    const late = () => end(`it did not end within ${LONGEST_SEED_MS / 1_000} s`);
    const timer = setTimeout(late, LONGEST_SEED_MS);
    const failed = (error: Error) => end(error.stack ?? error.message);
    const exited = (code: number) => end(`its thread ended with code ${code}`);
    const end = (answer: CampaignAnswer | string) => {
      clearTimeout(timer);
      worker.off('message', end).off('error', failed).off('exit', exited);
      resolve(answer);
    };
    worker.on('message', end).on('error', failed).on('exit', exited);
    worker.postMessage(seed);
  });
}
