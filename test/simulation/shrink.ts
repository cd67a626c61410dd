import { availableParallelism } from 'node:os';
import type { Violation } from './oracle.js';
import type { Configuration, Operation, Plan } from './plan.js';
import type { Result } from './simulation.js';
import { Trials } from './trials.js';
import type { Found } from './trials.js';

export interface Shrunk {
  readonly plan: Plan;
  readonly result: Result;
  readonly tries: number;
}

/** These rules are judged when all is over; any other one at the moment at which it is broken. */
const JUDGED_AT_END = new Set(['lost', 'stuck', 'index']);
/** With less of something else a violation may come a little later. */
const LATER_MS = 3_000;

/** Smaller and calmer, one at a time; what does not apply changes nothing. */
const SIMPLER: readonly ((configuration: Configuration) => Partial<Configuration>)[] = [
  () => ({ workers: 1 }),
  ({ workers }) => ({ workers: Math.max(1, workers - 1) }),
  () => ({ shards: 1 }),
  () => ({ pull: false }),
  () => ({ batch: false }),
  () => ({ concurrency: 1 }),
  ({ concurrency }) => ({ concurrency: Math.max(1, Math.ceil(concurrency / 10)) }),
  () => ({ latency: 1 }),
  () => ({ longestDelayMs: 500 }),
  () => ({ extends: 0 }),
];

/**
 * Finds a small plan that breaks the same rule: less time, then fewer faults, fewer operations, fewer and smaller processes. Plans are
 * lists and all streams of randomness are independent, so each try is one run.
 *
 * @param limitMs real time; what was found by then is returned
 */
export async function shrink(plan: Plan, rule: string, project: string, limitMs = 120_000): Promise<Shrunk> {
  const trials = new Trials(project, rule, availableParallelism(), performance.now() + limitMs);
  try {
    const first = await trials.firstOf([plan]);
    if (!first) throw new Error(`The plan does not break the rule "${rule}".`);
    const { plan: least, result } = await new Shrinking(trials, rule, first).run();
    return { plan: least, result, tries: trials.tries };
  } finally {
    await trials.end();
  }
}

class Shrinking {
  constructor(
    private readonly trials: Trials,
    private readonly rule: string,
    private best: Found,
  ) {}

  async run(): Promise<Found> {
    await this.#shorten();
    for (let before = ''; before !== this.#size && !this.trials.isOver;) {
      before = this.#size;
      await this.#fewerFaults();
      await this.#fewerOperations();
      await this.#simpler();
    }
    return this.best;
  }

  get #violation(): Violation {
    return this.best.result.violations.find(({ rule }) => rule === this.rule)!;
  }

  get #size(): string {
    const { configuration, operations, faults } = this.best.plan;
    return JSON.stringify([configuration, operations.length, faults.length]);
  }

  /** @returns the place of the first of these that does it, which is then the best one; -1 for none */
  async #take(changes: readonly Partial<Plan>[]): Promise<number> {
    const plans = changes.map((change) => ({ ...this.best.plan, ...change }));
    const found = await this.trials.firstOf(plans);
    if (!found) return -1;
    this.best = found;
    if (!JUDGED_AT_END.has(this.rule)) this.trials.untilMs = this.#violation.at + LATER_MS;
    return plans.indexOf(found.plan);
  }

  /** Nothing that comes later can matter. */
  async #shorten(): Promise<void> {
    if (JUDGED_AT_END.has(this.rule)) return;
    const { at: end } = this.#violation;
    this.trials.untilMs = end + LATER_MS;
    const { operations, faults } = this.best.plan;
    await this.#take([
      { operations: operations.filter(({ at }) => at <= end), faults: faults.filter(({ at }) => at <= end) },
    ]);
  }

  /** Most violations need one fault. */
  async #fewerFaults(): Promise<void> {
    const { faults } = this.best.plan;
    if (faults.length === 0 || (await this.#take([{ faults: [] }])) >= 0) return;
    await this.#smallest(faults, (left) => ({ faults: left }));
  }

  async #fewerOperations(): Promise<void> {
    // Those of the jobs that the violation speaks of.
    const about = new Set(this.#violation.what.match(/\bj\d+/g));
    const { operations: all } = this.best.plan;
    const spokenOf = all.filter((operation) => 'id' in operation && about.has(operation.id));
    if (spokenOf.length > 0 && spokenOf.length < all.length) await this.#take([{ operations: spokenOf }]);
    await this.#smallest(this.best.plan.operations, (operations) => ({ operations }));
    for (const [place, operation] of this.best.plan.operations.entries()) {
      if (operation.kind !== 'bulk') continue;
      const withJobs = (jobs: typeof operation.jobs): Partial<Plan> => {
        const operations: Operation[] = [...this.best.plan.operations];
        operations[place] = { ...operation, jobs };
        return { operations };
      };
      await this.#smallest(operation.jobs, withJobs);
    }
  }

  async #simpler(): Promise<void> {
    for (const simpler of SIMPLER) {
      const { configuration } = this.best.plan;
      const changed = { ...configuration, ...simpler(configuration) };
      if (JSON.stringify(changed) !== JSON.stringify(configuration)) await this.#take([{ configuration: changed }]);
    }
  }

  /** Delta debugging: leaves out halves, then quarters, then single ones, as long as the rest still does it. */
  async #smallest<T>(list: readonly T[], change: (list: readonly T[]) => Partial<Plan>): Promise<void> {
    let left = list;
    for (let size = Math.ceil(left.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      for (let at = 0; at < left.length && !this.trials.isOver;) {
        const starts: number[] = [];
        for (let start = at; start < left.length; start += size) starts.push(start);
        const without = starts.map((start) => [...left.slice(0, start), ...left.slice(start + size)]);
        const taken = await this.#take(without.map(change));
        if (taken < 0) break;
        left = without[taken]!;
        at = starts[taken]!;
      }
    }
  }
}
