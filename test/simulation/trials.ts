import { Worker } from 'node:worker_threads';
import type { Plan } from './plan.js';
import type { Trial } from './shrink-worker.js';
import type { Result } from './simulation.js';

export interface Found {
  readonly plan: Plan;
  readonly result: Result;
}

/** Tries plans in worker threads, each plan once. */
export class Trials {
  /** How many plans were run. */
  tries = 0;
  /** Simulated ms after which a run has shown whether it breaks the rule. */
  untilMs = Infinity;
  readonly #threads: Worker[];
  /** Plans that do not break the rule. */
  readonly #vain = new Set<string>();

  readonly #began = process.cpuUsage();

  /** @param limitMs of CPU for each thread, because other work slows a machine down; from then on nothing is tried any more */
  constructor(
    project: string,
    rule: string,
    count: number,
    private readonly limitMs: number,
  ) {
    const file = new URL('shrink-worker.js', import.meta.url);
    this.#threads = Array.from({ length: count }, () => new Worker(file, { workerData: { project, rule } }));
    // What a trial waits for is told to it; an error that comes later is of no use to anybody.
    for (const thread of this.#threads) thread.on('error', () => {});
  }

  get isOver(): boolean {
    const { user, system } = process.cpuUsage(this.#began);
    return (user + system) / 1_000 > this.limitMs * this.#threads.length;
  }

  /** @returns the first of these plans that breaks the rule */
  async firstOf(plans: readonly Plan[]): Promise<Found | undefined> {
    const fresh = plans.filter((plan) => !this.#vain.has(keyOf(plan)));
    for (let at = 0; at < fresh.length && !this.isOver; at += this.#threads.length) {
      const some = fresh.slice(at, at + this.#threads.length);
      const results = await Promise.all(some.map((plan, n) => this.#run(this.#threads[n]!, plan)));
      const first = results.findIndex((result) => result !== undefined);
      for (const [n, result] of results.entries()) if (!result) this.#vain.add(keyOf(some[n]!));
      if (first >= 0) return { plan: some[first]!, result: results[first]! };
    }
    return undefined;
  }

  async end(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }

  #run(thread: Worker, plan: Plan): Promise<Result | undefined> {
    this.tries++;
    return new Promise((resolve) => {
      const end = (result: Result | undefined) => {
        thread.off('message', end).off('exit', gone);
        clearInterval(timer);
        resolve(result);
      };
      const gone = () => end(undefined);
      const timer = setInterval(() => this.isOver && gone(), 500);
      thread.on('message', end).on('exit', gone);
      thread.postMessage({ plan, untilMs: this.untilMs } satisfies Trial);
    });
  }
}

/** Plans with equal keys that come from one plan are equal. */
function keyOf({ seed, configuration, operations, faults }: Plan): string {
  const ids = operations.map((operation) =>
    'jobs' in operation ? JSON.stringify(operation) : `${operation.kind} ${operation.at}`,
  );
  return `${seed} ${JSON.stringify(configuration)} ${ids.join()} ${faults.map(({ n }) => n).join()}`;
}
