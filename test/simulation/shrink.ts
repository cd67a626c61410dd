import { availableParallelism } from 'node:os';
import type { Violation } from './oracle.js';
import type { BulkOperation, EnqueueOperation, Operation, Plan } from './plan.js';
import { featuresOf, smallerThan, sooner } from './simpler.js';
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

/** What a report may have at most. A plan that has more is tried with other chances. */
const FEW_FAULTS = 3;
const FEW_OPERATIONS = 10;
const OTHER_SEEDS = 4;
/** It gives up after so many rounds of other seeds of which none has left anything out. */
const MOST_ROUNDS = 8;

/**
 * Finds a small plan that breaks the same rule: less time, whole features, faults, operations, then fewer and smaller processes. Plans are
 * lists and all streams of randomness are independent, so each try is one run.
 *
 * @param limitMs of CPU, for each core; what was found by then is returned
 */
export async function shrink(plan: Plan, rule: string, project: string, limitMs = 120_000): Promise<Shrunk> {
  const trials = new Trials(project, rule, availableParallelism(), limitMs);
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
    // Each feature that is gone makes all further tries cheaper, and so does each job.
    await this.#onlySpokenOf();
    await this.#fewerFeatures();
    for (let round = 0; round < MOST_ROUNDS && !this.trials.isOver;) {
      const before = this.#size;
      // As long as nothing has changed, all of it would fail once more.
      if (round === 0) await this.#less();
      if (before === this.#size && this.#isSmall) break;
      if (before === this.#size) await this.#byOtherChances(round);
      round = before === this.#size ? round + 1 : 0;
    }
    return this.best;
  }

  async #less(): Promise<void> {
    const before = this.#size;
    await this.#fewerFaults();
    await this.#fewerOperations();
    await this.#smaller();
    if (before === this.#size) await this.#fewerFeatures();
    if (before === this.#size && !this.#isSmall) await this.#inOneCall();
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
    const jobs = operations.map((operation) => (operation.kind === 'bulk' ? operation.jobs.length : 1));
    return JSON.stringify([configuration, jobs, faults.length]);
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

  /** All at once where that will do: what is left then is what the violation is about. */
  async #fewerFeatures(): Promise<void> {
    const { plan } = this.best;
    const features = featuresOf(plan);
    const without = (left: typeof features) => {
      const gone = features.filter((feature) => !left.includes(feature));
      return gone.reduce((before, feature) => feature(before), plan);
    };
    if (features.length === 0 || (await this.#take([without([])])) >= 0) return;
    await this.#smallest(features, (left) => without([...left]));
  }

  async #fewerOperations(): Promise<void> {
    await this.#onlySpokenOf();
    const isNight = ({ kind }: Operation) => kind === 'night';
    const nights = this.best.plan.operations.filter(isNight);
    const others = this.best.plan.operations.filter((operation) => !isNight(operation));
    const withNights = (operations: readonly Operation[]) => ({
      operations: [...operations, ...nights].toSorted((one, other) => one.at - other.at),
    });
    await this.#smallest(others, withNights);
    await this.#fewerInBulk();
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

  /** Many jobs that are needed together may come by one call, each still due when it was. */
  async #inOneCall(): Promise<void> {
    const { operations } = this.best.plan;
    const isOne = (operation: Operation): operation is EnqueueOperation =>
      operation.kind === 'enqueue' && !operation.onDuplicate && !operation.isByDefinition;
    const plain = operations.filter(isOne);
    for (const queue of new Set(plain.map((operation) => operation.queue))) {
      const some = plain.filter((operation) => operation.queue === queue);
      const [{ at }] = some as [EnqueueOperation];
      if (some.length < 2) continue;
      const due = some.map((one): EnqueueOperation => ({ ...one, at, delay: one.delay + Math.round(one.at - at) }));
      const withBulk = (jobs: readonly EnqueueOperation[]): Partial<Plan> => {
        const bulk: BulkOperation = { kind: 'bulk', at, queue, jobs };
        const others = this.best.plan.operations.filter((one) => !(some as readonly Operation[]).includes(one));
        return { operations: [...others, bulk].toSorted((one, other) => one.at - other.at) };
      };
      await this.#take([withBulk(due), withBulk(some.map((one) => ({ ...one, at })))]);
    }
  }

  /** A fault hits or misses by chance: with another seed fewer of them may do. Large parts first. */
  async #byOtherChances(round: number): Promise<void> {
    const { faults, operations } = this.best.plan;
    const seed = this.best.plan.seed + round * OTHER_SEEDS;
    const others = operations.filter(({ kind }) => kind !== 'night');
    for (let parts = 2; parts <= 2 * Math.max(faults.length, others.length) && !this.trials.isOver; parts *= 2) {
      const fewer: Partial<Plan>[] = [
        ...(faults.length > FEW_FAULTS
          ? partsOf(faults, parts).map((part) => ({ faults: without(faults, part) }))
          : []),
        ...(others.length > FEW_OPERATIONS
          ? partsOf(others, parts).map((part) => ({ operations: without(operations, part) }))
          : []),
      ];
      const changes = Array.from({ length: OTHER_SEEDS }, (_, n) =>
        fewer.map((change) => ({ ...change, seed: seed + n + 1 })),
      );
      if ((await this.#take(changes.flat())) >= 0) return;
    }
  }

  async #smaller(): Promise<void> {
    // What is judged when all is over comes sooner when the faults are over sooner.
    if (JUDGED_AT_END.has(this.rule)) await this.#take([sooner(this.best.plan)]);
    for (const [n] of smallerThan(this.best.plan).entries()) {
      const smaller = smallerThan(this.best.plan)[n];
      if (smaller) await this.#take([smaller]);
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

function partsOf<T>(list: readonly T[], count: number): T[][] {
  const size = Math.ceil(list.length / count);
  return Array.from({ length: Math.ceil(list.length / size) }, (_, n) => list.slice(n * size, (n + 1) * size));
}

function without<T>(list: readonly T[], part: readonly T[]): T[] {
  const gone = new Set(part);
  return list.filter((one) => !gone.has(one));
}
