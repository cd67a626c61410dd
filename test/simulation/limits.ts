import type { QueueLimits } from '../../lib/job/queue-limits.js';
import type { BulkOperation, Configuration, EnqueueOperation, Operation, RunPlan } from './plan.js';
import { QUEUES_OF_PULLERS, queuesOfWorkers, RECURRING } from './queues.js';
import { rounded } from './random.js';
import type { Random } from './random.js';
import type { OperationOfSchedules } from './schedules.js';

/** A queue with groups, priorities or limits. */
export interface LimitedQueue {
  readonly queue: string;
  /** What applications say when they boot; undefined where only operators set limits. */
  readonly limits: QueueLimits | undefined;
  /** What every second worker says instead: another version of the application. */
  readonly others: QueueLimits | undefined;
  /** How many groups its jobs have; 0 for none. */
  readonly groups: number;
  readonly hasPriorities: boolean;
}

export interface LimitsOfPlan {
  /** Whether some queue has limits. */
  readonly limits: boolean;
  readonly limited: readonly LimitedQueue[];
}

export const UNLIMITED: LimitsOfPlan = { limits: false, limited: [] };

interface OfQueue {
  readonly at: number;
  readonly queue: string;
}

export type OperationOfLimits =
  /** An operator sets others, or takes all away, and gives them back to the settings of the applications after a while. */
  | (OfQueue & { readonly kind: 'setLimits'; readonly limits: QueueLimits | undefined; readonly forMs: number })
  | (OfQueue & { readonly kind: 'lookAtLimits' })
  /** A job that keeps the place of its group until it has run again is changed while it waits: the first one that there is. */
  | (OfQueue & { readonly kind: 'changeKept'; readonly how: 'cancel' | 'reschedule' | 'runNow' });

/** The number of the first payload of a backlog. */
const IN_BACKLOG = 30_000_000;
/** More at a time would wait for a rate for longer than a run lasts. */
const MOST_IN_BULK = 60;
/** Of their sizes. */
const MEAN_OF_BULK = 24;
/** The group that most jobs are of. */
const BUSY = 'g0';
const MOST_QUEUES = 4;

/** One run in three has some. Has a stream of its own: a seed without limits does what it did. @param wanted decides it */
export function drawLimits(random: Random, configuration: Configuration, wanted: boolean | undefined): LimitsOfPlan {
  const { older, burst, concurrency, pull } = configuration;
  const limits = random.chance(0.35);
  // Not all older builds know them, and jobs that run for longer than everything else leave no room.
  if (!(wanted ?? limits) || older || burst > 0 || concurrency > 1_000) return UNLIMITED;
  const queues = [...queuesOfWorkers(configuration), ...(pull ? QUEUES_OF_PULLERS : [])];
  const chosen = queues.filter((queue) => random.chance(queue === 'jobs' ? 0.8 : 0.5));
  const limited = chosen.slice(0, MOST_QUEUES).map((queue) => drawQueue(random, configuration, queue));
  return { limits: limited.length > 0, limited };
}

/** Into how many shards a queue is split at most: each has a share of the limits of the queue, which is one at least. */
function mostShards({ shards, reshards }: Configuration, queue: string): number {
  return queue === 'jobs' ? Math.max(shards, ...reshards) : 1;
}

function drawQueue(random: Random, configuration: Configuration, queue: string): LimitedQueue {
  const groups = random.pick([0, 1, 2, 5, 5, 20, 2_000]);
  const limits = drawSome(random, configuration, queue);
  const others = drawSome(random, configuration, queue);
  return {
    queue,
    limits: random.chance(0.8) ? limits : undefined,
    others: random.chance(0.15) ? others : undefined,
    groups,
    hasPriorities: random.chance(0.4),
  };
}

/** Never so tight that jobs wait for long: what waits for long is stuck. */
function drawSome(random: Random, configuration: Configuration, queue: string): QueueLimits {
  const limits: QueueLimits = {};
  const rate = jobsPerSecond(configuration);
  const shards = mostShards(configuration, queue);
  // Shares that are not all equal.
  const ofAll = (limit: number) => (shards === 1 ? limit : limit * shards + random.whole(0, shards - 1));
  if (random.chance(0.5)) limits.globalConcurrency = ofAll(random.pick([1, 2, 3, 10]));
  if (random.chance(0.4)) {
    const { max, per } = drawRate(random, rate);
    limits.rateLimit = { max: ofAll(max), per };
  }
  if (random.chance(0.5)) limits.priorityStep = random.pick([100, 1_000, 60_000]);
  const concurrency = random.pick([undefined, undefined, 1, 1, 1, 2, 5]);
  const rateLimit = random.chance(0.3) ? drawRate(random, rate) : undefined;
  const blocks = concurrency === 1 && random.chance(0.5);
  if (concurrency === undefined && !rateLimit) return limits;
  return {
    ...limits,
    groups: {
      ...(concurrency && { concurrency }),
      ...(rateLimit && { rateLimit }),
      ...(blocks && { retries: 'block' }),
    },
  };
}

/** How many come on average. */
function jobsPerSecond({ rate, bulks }: Configuration): number {
  return rate * (1 + bulks * MEAN_OF_BULK);
}

/** Three times what comes, because some of it starts more than once. */
function drawRate(random: Random, rate: number): QueueLimits['rateLimit'] & object {
  const per = random.pick([200, 1_000, 1_000, 5_000]);
  return { max: Math.ceil((3 * rate * per) / 1_000), per };
}

/** How many jobs of a queue run at a time at most, by any of its limits. */
export function slotsByLimits({ limited }: LimitsOfPlan, queue: string): number {
  const of = limited.find((one) => one.queue === queue);
  if (!of) return Infinity;
  // An operator may set others for a while.
  return Math.min(
    2,
    ...[of.limits, of.others].map((one) => Math.min(one?.globalConcurrency ?? 2, one?.groups?.concurrency ?? 2)),
  );
}

/** What a process has in its settings. @param isOther it is of the other version of the application */
export function limitOptionsOf({ limited }: LimitsOfPlan, isOther: boolean): Readonly<Record<string, QueueLimits>> {
  const said = limited.map(({ queue, limits, others }) => [queue, (isOther && others) || limits] as const);
  return Object.fromEntries(said.filter((one): one is readonly [string, QueueLimits] => one[1] !== undefined));
}

/** @returns all operations: jobs of these queues with groups and priorities, and what else is asked of such queues */
export function withLimits(
  random: Random,
  configuration: Configuration,
  operations: readonly Operation[],
): readonly Operation[] {
  const { limited } = configuration;
  if (limited.length === 0) return operations;
  const groups = new Map<string, RunPlan['group']>();
  const found: Operation[] = operations.map((operation) => {
    const of = 'queue' in operation && limited.find(({ queue }) => queue === operation.queue);
    if (!of) return operation;
    // Under one id in two shards there are two jobs.
    const isSplit = mostShards(configuration, of.queue) > 1;
    if (operation.kind === 'enqueue') return grouped(random, of, operation, groups, isSplit);
    if (operation.kind !== 'bulk') return operation;
    const jobs = operation.jobs.slice(0, MOST_IN_BULK).map((job) => grouped(random, of, job, groups, isSplit));
    return { ...operation, jobs };
  });
  for (const of of limited)
    found.push(...drawBacklog(random, configuration, of), ...drawCalls(random, configuration, of));
  return found;
}

/** A job that is asked for again is of the same group, as a rule. */
function grouped(
  random: Random,
  { groups: count, hasPriorities }: LimitedQueue,
  operation: EnqueueOperation,
  groups: Map<string, RunPlan['group']>,
  isSplit: boolean,
): EnqueueOperation {
  const drawn = count === 0 || random.chance(0.1) ? undefined : drawGroup(random, count);
  const isRepeated = operation.onDuplicate !== undefined && (isSplit || random.chance(0.8));
  const group = isRepeated ? groups.get(operation.id) : drawn;
  groups.set(operation.id, group);
  const priority = hasPriorities ? random.pick([0, 0, 1, 5, 9]) : 0;
  return {
    ...operation,
    run: { ...operation.run, ...(group !== undefined && { group }), ...(priority > 0 && { priority }) },
  };
}

/** Occurrences of a schedule are all of one group. */
export function withGroup(
  random: Random,
  { limited }: LimitsOfPlan,
  operation: OperationOfSchedules,
): OperationOfSchedules {
  const of = limited.find(({ queue }) => queue === RECURRING);
  if (!of || of.groups === 0 || operation.kind !== 'schedule' || random.chance(0.2)) return operation;
  return { ...operation, run: { ...operation.run, group: drawGroup(random, of.groups) } };
}

function drawGroup(random: Random, count: number): string {
  return random.chance(0.4) ? BUSY : `g${random.whole(0, count - 1)}`;
}

/** Far more of one group than can start at once, beside which the jobs of others must have their turns. */
function drawBacklog(random: Random, configuration: Configuration, { queue, groups }: LimitedQueue): BulkOperation[] {
  if (queue === RECURRING || groups === 0 || random.chance(0.5)) return [];
  const { limited, faultsMs, rate, longestWorkMs, maxSize } = configuration;
  if (maxSize > 0) return [];
  const place = limited.findIndex((one) => one.queue === queue);
  const at = rounded(random.between(1_000, faultsMs / 2));
  const most = Math.min(longestWorkMs, 100 / rate);
  const jobs = Array.from({ length: random.pick([20, 60, 150]) }, (_, i): EnqueueOperation => {
    const n = IN_BACKLOG + 1_000 * place + i;
    const group = random.chance(0.8) ? BUSY : drawGroup(random, groups);
    return {
      kind: 'enqueue',
      at,
      queue,
      id: `backlog${n}`,
      delay: 0,
      run: { n, work: rounded(random.between(0, most)), group },
    };
  });
  return [{ kind: 'bulk', at, queue, jobs }];
}

function drawCalls(random: Random, configuration: Configuration, { queue }: LimitedQueue): OperationOfLimits[] {
  const found: OperationOfLimits[] = [];
  const at = () => rounded(random.between(1_000, configuration.faultsMs));
  const changes = random.pick([0, 0, 1, 4]);
  for (let i = 0; i < changes; i++) {
    const limits = random.chance(0.15) ? undefined : drawSome(random, configuration, queue);
    found.push({ kind: 'setLimits', at: at(), queue, limits, forMs: random.whole(100, 6_000) });
  }
  for (let i = random.whole(0, 2); i > 0; i--) found.push({ kind: 'lookAtLimits', at: at(), queue });
  for (let i = random.whole(0, 3); i > 0; i--) {
    found.push({ kind: 'changeKept', at: at(), queue, how: random.pick(['cancel', 'reschedule', 'runNow'] as const) });
  }
  return found;
}
