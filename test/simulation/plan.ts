import { drawAftermath } from './aftermath.js';
import { drawBounds, UNBOUNDED, withBounds } from './bounds.js';
import type { BoundsOfPlan, ResizeOperation } from './bounds.js';
import { drawDrains, drawKillers, killersMs } from './ending-operations.js';
import type { FaultKind, KindForGood, WeatherKind } from './fault-kinds.js';
import type { Persistence } from './disk.js';
import { drawClusterKinds, drawFaults, drawForGood, drawKinds, drawWeather } from './drawn-faults.js';
import { drawFurtherOperations } from './further-operations.js';
import type { FurtherOperation } from './further-operations.js';
import { drawLimits, slotsByLimits, UNLIMITED, withGroup, withLimits } from './limits.js';
import type { LimitsOfPlan, OperationOfLimits } from './limits.js';
import { drawMistakes } from './mistakes.js';
import type { MistakeOperation } from './mistakes.js';
import { drawNights, withNights } from './nights.js';
import type { NightOperation } from './nights.js';
import { isPlain, nameOfMany, TAKEN } from './queues.js';
import type { QueuesOfPlan } from './queues.js';
import { Random, rounded } from './random.js';
import { drawScheduleCount, drawSchedules } from './schedules.js';
import type { OperationOfSchedules } from './schedules.js';
import { unusualSizes } from './sizes.js';
import { drawLaterTraits, drawTraits } from './traits.js';
import type { TraitsOfPlan } from './traits.js';
import { drawUnregistering } from './unregistering.js';
import type { UnregisterOperation } from './unregistering.js';

export const LONGEST_EXTENSION_MS = 60_000;
type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** What one run of the handler does. It is the payload of the job. */
export interface RunPlan {
  /** Number of the operation that wrote it: tells two versions of one job apart. */
  readonly n: number;
  /** How long it runs, ms. */
  readonly work: number;
  /** How many runs fail before one ends well. */
  readonly fails?: number;
  /** `release` only of what is pulled. */
  readonly ending?: 'snooze' | 'discard' | 'release';
  /** What it snoozes to: the payload of the next run. */
  readonly becomes?: RunPlan;
  /** Longest run, ms, as the job's option. */
  readonly timeout?: number;
  /** How many runs outlast the timeout before one does not. */
  readonly hangs?: number;
  /** Lease that the handler asks for, ms. */
  readonly extend?: number;
  /** It ends its process, each time. */
  readonly kills?: boolean;
  /** The first process that pulls it forgets it. */
  readonly forgotten?: boolean;
  /** Of its job, as the call says. */
  readonly group?: string | undefined;
  readonly priority?: number;
}

export interface EnqueueOperation {
  readonly kind: 'enqueue';
  readonly at: number;
  readonly queue: string;
  readonly id: string;
  readonly delay: number;
  readonly run: RunPlan;
  readonly onDuplicate?: 'keep' | 'replace' | 'reschedule' | 'reject';
  readonly maxWait?: number;
  readonly uniqueFor?: number;
  readonly expiresIn?: number;
  readonly keepExpired?: boolean;
  /** Replaced without another due time. */
  readonly dueAt?: 'keep';
  readonly onDead?: 'replace' | 'keep';
  /** Its due time is given as an instant. */
  readonly isInstant?: boolean;
  /** The library makes its id from its payload; `id` is what that must be. */
  readonly isByContent?: boolean;
  /** The definition of its queue says its id, and when it is due. */
  readonly isByDefinition?: boolean;
  /** What must have the job before the call is answered. */
  readonly durability?: 'fsync' | { readonly replicas: number; readonly timeout: number };
}

export interface BulkOperation {
  readonly kind: 'bulk';
  readonly at: number;
  readonly queue: string;
  readonly jobs: readonly EnqueueOperation[];
  /** Over which its due times are spread, ms. */
  readonly spread?: number;
}

export type Operation =
  | EnqueueOperation
  | BulkOperation
  | FurtherOperation
  | ResizeOperation
  | MistakeOperation
  | UnregisterOperation
  | OperationOfSchedules
  | OperationOfLimits
  | NightOperation
  | {
      readonly kind: 'cancel';
      readonly at: number;
      readonly queue: string;
      readonly id: string;
      readonly running: boolean;
    }
  | {
      readonly kind: 'reschedule';
      readonly at: number;
      readonly queue: string;
      readonly id: string;
      readonly delay: number;
    }
  | { readonly kind: 'pause'; readonly at: number; readonly queue: string; readonly forMs: number }
  | { readonly kind: 'requeueDead'; readonly at: number; readonly queue: string }
  /** A person moves a job that waits in the quarantine. */
  | { readonly kind: 'moveQuarantined'; readonly at: number }
  /** A worker drains and starts again, while nothing is wrong. */
  | { readonly kind: 'drain'; readonly at: number; readonly worker: number };

/** A fault of the plan. What its numbers from 0 to 1 mean depends on its kind. */
export interface Fault {
  readonly n: number;
  readonly at: number;
  readonly kind: FaultKind;
  /** Chooses the process. */
  readonly who: number;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  /** Of a worker that is lost for good: another one takes its place. */
  readonly replacedAfterMs?: number;
}

/** What a seed draws first. */
export interface Configuration extends QueuesOfPlan, BoundsOfPlan, TraitsOfPlan, LimitsOfPlan {
  readonly workers: number;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly commandTimeoutMs: number;
  readonly attempts: number;
  /** Jobs per second. */
  readonly rate: number;
  readonly longestWorkMs: number;
  readonly longestDelayMs: number;
  readonly shards: number;
  readonly batchSize: number;
  readonly batchWaitMs: number;
  /** Most jobs of one `pull()`. */
  readonly pullMost: number;
  /** Jobs that are enqueued at the beginning, all at a time, and how long each one runs. */
  readonly burst: number;
  readonly burstWorkMs: number;
  /** Probabilities, for each job. */
  readonly fails: number;
  readonly extends: number;
  readonly cancels: number;
  readonly moves: number;
  readonly repeats: number;
  readonly snoozes: number;
  readonly expires: number;
  readonly bulks: number;
  readonly operators: number;
  readonly timeouts: number;
  readonly updates: number;
  /** Number of shards that the queue is given while jobs flow, one after the other. */
  readonly reshards: readonly number[];
  /** All processes begin with an older build of the library, and go over to the present one while jobs flow. */
  readonly older: boolean;
  /** Three nodes in place of one server. */
  readonly cluster: boolean;
  readonly durable: number;
  readonly replicas: number;
  readonly persistence: Persistence;
  /** How many jobs end their process each time they run. */
  readonly killers: number;
  /** Workers are replaced one after the other at the end, while nothing is wrong. */
  readonly rolling: boolean;
  /** Multiplies every latency. */
  readonly latency: number;
  readonly kinds: readonly FaultKind[];
  /** What goes wrong all the time, without a plan. */
  readonly weather: readonly WeatherKind[];
  /** What goes wrong with workers, each with another one, and never heals. */
  readonly forGood: readonly KindForGood[];
  readonly faultEveryMs: number;
  /** Faults come in volleys, with a rest of about this time between two; 0: they come all the time. */
  readonly restMs: number;
  /** The three phases: faults, then calm in which everything mends, then calm with tight limits. */
  readonly faultsMs: number;
  readonly mendingMs: number;
  readonly calmMs: number;
  /** Stretches of hours to weeks during the faults in which nothing happens. */
  readonly nights: number;
}

export interface Plan {
  readonly seed: number;
  readonly configuration: Configuration;
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
}

/** Draws the plan of a seed. @param given overrides what the seed draws */
export function planOf(seed: number, given: Partial<Configuration> = {}): Plan {
  const drawn = draw(new Random(seed, 'configuration'));
  const sized = { ...drawn, ...unusualSizes(new Random(seed, 'sizes'), drawn), ...given };
  const bounded = { ...sized, ...drawBounds(new Random(seed, 'bounds'), sized), ...given };
  const withForGood = { ...bounded, ...drawForGood(new Random(seed, 'for good'), bounded), ...given };
  const nights = new Random(seed, 'nights');
  const traits = drawTraits(new Random(seed, 'traits'), withForGood);
  const weather = drawWeather(new Random(seed, 'weather'), withForGood);
  const schedules = drawScheduleCount(new Random(seed, 'schedule count'), withForGood);
  const traited = { ...withForGood, ...schedules, ...traits, ...weather, ...drawNights(nights) };
  const later = drawLaterTraits(new Random(seed, 'later traits'), traited);
  const whole = { ...traited, ...later, ...drawClusterKinds(new Random(seed, 'cluster kinds'), traited), ...given };
  const configuration = { ...whole, ...drawLimits(new Random(seed, 'limits'), whole, given.limits), ...given };
  const operations = drawOperations(new Random(seed, 'operations'), configuration);
  const further = drawFurtherOperations(new Random(seed, 'further operations'), configuration, operations);
  const limited = withLimits(new Random(seed, 'limited'), configuration, [...operations, ...further]);
  const all = withBounds(new Random(seed, 'bounded operations'), configuration, limited);
  const grouping = new Random(seed, 'groups of schedules');
  return withNights(nights, {
    seed,
    configuration,
    operations: [
      ...all,
      ...drawMistakes(seed, configuration, operations),
      ...drawUnregistering(seed, configuration, operations),
      ...drawSchedules(new Random(seed, 'schedules'), configuration).map((one) =>
        withGroup(grouping, configuration, one),
      ),
    ].toSorted((one, other) => one.at - other.at),
    faults: drawFaults(new Random(seed, 'faults'), configuration),
  });
}

/** Each seed leaves out most kinds of faults and of operations: rare combinations come about, and runs stay cheap. */
function draw(random: Random): Configuration {
  const leaseMs = random.pick([1_000, 2_000, 2_000, 5_000, 10_000, 30_000]);
  const commandTimeoutMs = random.pick([1_000, 1_000, 2_000, 5_000]);
  const some = (probability: number) => (random.chance(0.35) ? probability : 0);
  const drawn: Writable<Configuration> = {
    workers: random.pick([1, 2, 3, 3, 3, 4]),
    concurrency: random.pick([1, 1, 3, 3, 10, 40, 300]),
    leaseMs,
    commandTimeoutMs,
    attempts: random.pick([3, 5, 10]),
    rate: random.pick([2, 4, 8, 8, 15]),
    longestWorkMs: random.pick([20, 100, 900, 900, leaseMs * 1.5]),
    longestDelayMs: random.pick([500, 500, 2_000, 10_000]),
    shards: random.pick([1, 1, 1, 2, 3]),
    queues: 0,
    pull: random.chance(0.2),
    pullMost: random.pick([1, 1, 10, 1_000]),
    batch: random.chance(0.15),
    batchSize: random.pick([1, 5, 5, 20]),
    batchWaitMs: random.pick([0, 50, 50]),
    burst: 0,
    burstWorkMs: 0,
    ...UNBOUNDED,
    ...UNLIMITED,
    traits: [],
    fails: some(random.pick([0.05, 0.3])),
    extends: some(0.1),
    cancels: some(0.1),
    moves: some(0.1),
    repeats: some(0.2),
    snoozes: some(0.1),
    expires: some(0.1),
    bulks: some(0.1),
    operators: some(0.03),
    timeouts: some(0.1),
    updates: some(0.1),
    transfers: some(0.05),
    schedules: 0,
    reshards: random.chance(0.06) ? random.pick([[2], [3], [4, 1], [1]]) : [],
    older: false,
    cluster: random.chance(0.12),
    durable: some(0.3),
    replicas: random.pick([0, 0, 1, 2]),
    persistence: random.pick(['everysec', 'everysec', 'everysec', 'always', 'no', 'none'] as const),
    killers: leaseMs <= 5_000 && random.chance(0.1) ? random.pick([1, 1, 2]) : 0,
    rolling: random.chance(0.3),
    latency: random.pick([1, 1, 1, 4]),
    kinds: [],
    weather: [],
    forGood: [],
    faultEveryMs: random.pick([60, 60, 100, 100, 200, 900]),
    nights: 0,
    restMs: random.pick([0, 1_000, 4_000]),
    faultsMs: random.pick([10_000, 20_000, 30_000, 40_000]),
    // As long as the worst fault may last. Quiet time costs next to nothing.
    mendingMs: 20_000 + 5 * commandTimeoutMs + 4 * leaseMs,
    calmMs: 6_000,
    // The last draw, so that it changes no other one.
    moved: random.chance(0.3),
  };
  drawn.mendingMs += killersMs(drawn);
  drawn.kinds = drawKinds(random, drawn);
  return drawn;
}

function drawOperations(random: Random, configuration: Configuration): Operation[] {
  const operations: Operation[] = [];
  const { faultsMs, mendingMs, calmMs, rate } = configuration;
  const gap = 1_000 / rate;
  let at = 300;
  for (let n = 0; at < faultsMs + mendingMs + calmMs; n++) {
    at += random.chance(0.1) ? 0 : random.between(0, 2 * gap);
    // While everything mends, nothing new need happen: the old jobs are what is looked at.
    if (at > faultsMs + 2_000 && at < faultsMs + mendingMs - 1_000) at = faultsMs + mendingMs - 1_000;
    const job = drawJob(random, configuration, n, rounded(at));
    if (random.chance(configuration.bulks)) operations.push(drawBulk(random, job));
    else operations.push(job);
    operations.push(...drawAftermath(random, configuration, job));
  }
  operations.push(...drawKillers(random, configuration), ...drawDrains(configuration));
  return operations.toSorted((one, other) => one.at - other.at);
}

function drawJob(random: Random, configuration: Configuration, n: number, at: number): EnqueueOperation {
  const queue = drawQueue(random, configuration);
  const run = drawRun(random, configuration, queue, n);
  const expires = random.chance(configuration.expires);
  return {
    kind: 'enqueue',
    at,
    queue,
    id: `j${n}`,
    delay: random.chance(0.3) ? 0 : random.whole(0, configuration.longestDelayMs),
    run,
    ...(random.chance(configuration.durable) && { durability: drawDurability(random, configuration) }),
    ...(expires && { expiresIn: random.pick([300, 2_000, 20_000]), keepExpired: random.chance(0.3) }),
  };
}

/** Sometimes more than there is: such a call fails, and its job is stored all the same. */
function drawDurability(random: Random, { replicas, commandTimeoutMs }: Configuration): EnqueueOperation['durability'] {
  if (random.chance(0.4)) return 'fsync';
  const asked = random.chance(0.1) ? replicas + 1 : Math.max(1, replicas);
  return { replicas: asked, timeout: random.pick([100, commandTimeoutMs]) };
}

function drawRun(random: Random, configuration: Configuration, queue: string, n: number): RunPlan {
  const { workers, forGood, concurrency, rate, longestWorkMs } = configuration;
  // Half of what the workers can do: what waits for long is stuck, and not just too much.
  const slots =
    queue === 'pulled' ? 1 : Math.max(1, workers - forGood.length) * (queue === 'batched' ? 2 : concurrency);
  const used = Math.min(slots, slotsByLimits(configuration, queue));
  const most = Math.min(longestWorkMs, (used * 1_000) / rate / (isPlain(queue) ? 2 : 1));
  const fails = random.chance(configuration.fails) ? random.whole(1, 2) : 0;
  const ending = random.chance(configuration.snoozes) ? random.pick(['snooze', 'discard'] as const) : undefined;
  const extend = random.chance(configuration.extends) ? random.pick([1_000, 5_000, LONGEST_EXTENSION_MS]) : 0;
  const work = rounded(random.between(0, most));
  const limits = isPlain(queue) && random.chance(configuration.timeouts);
  const becomes = isPlain(queue) && ending === 'snooze' && random.chance(0.5);
  const limit = limits && { timeout: Math.ceil(work) + random.pick([150, 500]), hangs: random.whole(0, 2) };
  return {
    n,
    work,
    ...(fails > 0 && { fails }),
    ...(ending && { ending: queue === 'pulled' && random.chance(0.5) ? 'release' : ending }),
    // Another payload changes no option of the job.
    ...(becomes && { becomes: { n: n + SNOOZED, work: rounded(work / 2), ...(limit && { timeout: limit.timeout }) } }),
    ...(extend > 0 && { extend }),
    ...limit,
    ...(queue === 'pulled' && random.chance(0.15) && { forgotten: true }),
  };
}

/** What is added to the number of an operation for another version of its job. */
const SNOOZED = 800_000;
export const IN_BULK = 1_000_000;
/** Jobs of a bulk are numbered from such a number on. */
export const LARGEST_BULK = 1_000;

function drawQueue(random: Random, { pull, batch, queues }: Configuration): string {
  if (pull && random.chance(0.25)) return random.pick(['pulled', 'pulled', TAKEN]);
  if (batch && random.chance(0.3)) return 'batched';
  return queues > 0 && random.chance(0.8) ? nameOfMany(random.whole(0, queues - 1)) : 'jobs';
}

function drawBulk(random: Random, first: EnqueueOperation): BulkOperation {
  const count = random.chance(0.02) ? LARGEST_BULK : random.pick([2, 10, 60]);
  const jobs = Array.from({ length: count }, (_, i) => ({
    ...first,
    id: i === 0 ? first.id : `${first.id}.${i}`,
    run: { n: first.run.n * LARGEST_BULK + IN_BULK + i, work: rounded(first.run.work / count) },
  }));
  const spread = random.chance(0.3) ? 2_000 : 0;
  return { kind: 'bulk', at: first.at, queue: first.queue, jobs, ...(spread > 0 && { spread }) };
}
