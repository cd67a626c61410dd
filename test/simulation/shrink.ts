import { availableParallelism } from 'node:os';
import { withoutNight } from './nights.js';
import type { NightOperation } from './nights.js';
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

/** At first only parts of this size are left out, of which each makes all that comes later cheaper. */
const COARSE = 8;
/** What a report may have at most. A plan that has more is tried with other chances. */
const FEW_FAULTS = 3;
const FEW_OPERATIONS = 10;
const OTHER_SEEDS = 4;

/** Smaller and calmer, one at a time; what does not apply changes nothing. */
const SIMPLER: readonly ((configuration: Configuration) => Partial<Configuration>)[] = [
  () => ({ workers: 1 }),
  ({ workers }) => ({ workers: Math.max(1, workers - 1) }),
  () => ({ queues: 0 }),
  () => ({ limits: false, limited: [] }),
  () => ({ traits: [] }),
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
    // Fewer jobs make each further try cheaper.
    await this.#onlySpokenOf();
    await this.#fewerNights();
    await this.#fewerOperations(1 / COARSE);
    for (let before = ''; before !== this.#size && !this.trials.isOver;) {
      before = this.#size;
      await this.#fewerFaults();
      await this.#fewerOperations();
      await this.#simpler();
      if (before === this.#size && !this.#isSmall) await this.#byOtherChances();
    }
    return this.best;
  }

  get #isSmall(): boolean {
    const { faults, operations } = this.best.plan;
    return faults.length <= FEW_FAULTS && operations.length <= FEW_OPERATIONS;
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

  /** Those of the jobs that the violation speaks of. */
  async #onlySpokenOf(): Promise<void> {
    const about = new Set(this.#violation.what.match(/\b(?:j|burst|backlog|killer)\d+/g));
    const { operations: all } = this.best.plan;
    const spokenOf = all.filter(
      (operation) => operation.kind === 'night' || ('id' in operation && about.has(operation.id)),
    );
    if (spokenOf.length === 0 || spokenOf.length === all.length) return;
    await this.#take([{ operations: spokenOf, faults: [] }, { operations: spokenOf }]);
  }

  /** What comes later is planned for an earlier time then, so that nobody lives through the night awake. */
  async #fewerNights(): Promise<void> {
    const nights = () => this.best.plan.operations.filter((one): one is NightOperation => one.kind === 'night');
    for (let place = nights().length - 1; place >= 0; place--) {
      await this.#take([withoutNight(this.best.plan, nights()[place]!)]);
    }
  }

  async #fewerOperations(part = 0): Promise<void> {
    await this.#onlySpokenOf();
    const nights = this.best.plan.operations.filter(({ kind }) => kind === 'night');
    const others = this.best.plan.operations.filter(({ kind }) => kind !== 'night');
    const withNights = (operations: readonly Operation[]) => ({
      operations: [...operations, ...nights].toSorted((one, other) => one.at - other.at),
    });
    await this.#smallest(others, withNights, Math.max(1, Math.floor(others.length * part)));
    if (part === 0) await this.#fewerInBulk();
  }

  async #fewerInBulk(): Promise<void> {
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

  /** A fault hits or misses by chance: with another seed fewer of them may do. */
  async #byOtherChances(): Promise<void> {
    const { seed, faults, operations } = this.best.plan;
    const fewer: Partial<Plan>[] = [
      ...faults.map((_, n) => ({ faults: faults.toSpliced(n, 1) })),
      ...operations
        .filter(({ kind }) => kind !== 'night')
        .map((one) => ({ operations: operations.filter((other) => other !== one) })),
    ];
    const changes = Array.from({ length: OTHER_SEEDS }, (_, n) =>
      fewer.map((change) => ({ ...change, seed: seed + n + 1 })),
    );
    await this.#take(changes.flat());
  }

  async #simpler(): Promise<void> {
    for (const simpler of SIMPLER) {
      const { configuration } = this.best.plan;
      const changed = { ...configuration, ...simpler(configuration) };
      if (JSON.stringify(changed) !== JSON.stringify(configuration)) await this.#take([{ configuration: changed }]);
    }
  }

  /** Delta debugging: leaves out halves, then quarters, then single ones, as long as the rest still does it. @param least of what is left out */
  async #smallest<T>(list: readonly T[], change: (list: readonly T[]) => Partial<Plan>, least = 1): Promise<void> {
    let left = list;
    for (let size = Math.ceil(left.length / 2); size >= least; size = size === 1 ? 0 : Math.ceil(size / 2)) {
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
