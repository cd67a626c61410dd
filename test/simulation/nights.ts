import { crash, closeInstanceOf } from './ending.js';
import type { Configuration, EnqueueOperation, Fault, Operation, Plan } from './plan.js';
import { Random, rounded } from './random.js';
import type { Simulation } from './simulation.js';
import { ALL } from './troubles.js';

/** A stretch in which nothing happens. What was planned for later comes after it. */
export interface NightOperation {
  readonly kind: 'night';
  readonly at: number;
  readonly forMs: number;
  /**
   * `stopped`: all processes drain, and start again at its end. `killed`: they are gone at once. `frozen`: they stand still, as a machine
   * that was suspended. `away`: killed, and the server is away as well. `idle`: all of them live, and nobody asks anything of them.
   */
  readonly how: 'stopped' | 'killed' | 'frozen' | 'away' | 'idle';
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const LENGTHS_MS = [HOUR_MS, 8 * HOUR_MS, DAY_MS, 7 * DAY_MS, 30 * DAY_MS, 90 * DAY_MS] as const;
/** A fleet that lives looks at its queues all the time, and that is what a run costs. */
const IDLE_MS = [30_000, 300_000] as const;
/** Operations go on so long after the end of a night; processes start within twice that time. */
const AWAKE_MS = 3_000;
/** By then a process that was asked to end has ended or was killed. */
const SETTLED_MS = 20_000;
/** Until the server has heard that connections are closed. */
const HEARD_MS = 2_000;
/** Until processes work again after a night. */
const MENDED_MS = 15_000;

/** One run in sixteen lasts for weeks. */
export function drawNights(random: Random): Pick<Configuration, 'nights'> {
  return { nights: random.chance(0.08) ? random.whole(1, 6) : 0 };
}

/** Puts the nights between what is planned, and lets jobs wait for days: each of them is due before the faults are over. */
export function withNights(random: Random, plan: Plan): Plan {
  const { faultsMs, nights: count } = plan.configuration;
  if (count === 0) return plan;
  const nights = drawPlaces(random, count, faultsMs).map((at) => drawNight(random, at));
  const later = (at: number) => nights.reduce((sum, night) => (night.at < at ? sum + lengthOf(night) : sum), at);
  const end = later(faultsMs);
  const operations: Operation[] = plan.operations.map((operation) => {
    const moved = { ...operation, at: rounded(later(operation.at)) };
    if (moved.kind === 'bulk') return { ...moved, jobs: moved.jobs.map((job) => ({ ...job, at: moved.at })) };
    // What is enqueued twice by its payload asks for one time.
    if (moved.kind !== 'enqueue' || moved.isByContent || operation.at > faultsMs || random.chance(0.5)) return moved;
    // At any time, or while somebody is awake.
    const dueAt = random.chance(0.5) ? random.between(moved.at, end) : later(random.between(operation.at, faultsMs));
    return waiting(random, moved, Math.floor(dueAt - moved.at));
  });
  const placed = nights.map((night) => ({ ...night, at: rounded(later(night.at)) }));
  return {
    ...plan,
    configuration: { ...plan.configuration, faultsMs: end },
    operations: [...operations, ...placed].toSorted((one, other) => one.at - other.at),
    faults: plan.faults.map((fault): Fault => ({ ...fault, at: rounded(later(fault.at)) })),
  };
}

/** The same with one night fewer. */
export function withoutNight(plan: Plan, night: NightOperation): Plan {
  const earlier = <T extends { readonly at: number }>(one: T): T =>
    one.at > night.at ? { ...one, at: rounded(one.at - lengthOf(night)) } : one;
  const { configuration } = plan;
  return {
    ...plan,
    configuration: { ...configuration, faultsMs: configuration.faultsMs - lengthOf(night) },
    operations: plan.operations.filter((one) => one !== night).map(earlier),
    faults: plan.faults.map(earlier),
  };
}

function lengthOf({ forMs }: NightOperation): number {
  return forMs + AWAKE_MS;
}

/** Between the first jobs and the last ones. */
function drawPlaces(random: Random, count: number, faultsMs: number): number[] {
  const places = Array.from({ length: count }, () => rounded(random.between(2_000, faultsMs - 1_000)));
  return places.toSorted((one, other) => one - other);
}

function drawNight(random: Random, at: number): NightOperation {
  const how = random.pick(['stopped', 'stopped', 'killed', 'frozen', 'away', 'idle'] as const);
  const forMs = how === 'idle' ? random.between(...IDLE_MS) : random.pick(LENGTHS_MS) * random.between(0.5, 1);
  return { kind: 'night', at, forMs: Math.floor(forMs), how };
}

/** What expires is given more time, too. */
function waiting(random: Random, operation: EnqueueOperation, delay: number): EnqueueOperation {
  const { expiresIn } = operation;
  return {
    ...operation,
    delay,
    ...(expiresIn !== undefined && random.chance(0.7) && { expiresIn: expiresIn + Math.floor(DAY_MS * random.next()) }),
  };
}

/** Lets a night of the plan happen. */
export function beginNight(simulation: Simulation, { at, forMs, how }: NightOperation): void {
  const { engine, fleet, troubles, configuration, seed } = simulation;
  engine.trace('night', how, forMs);
  if (how === 'idle') return;
  const random = new Random(seed, `night at ${at}`);
  const endsAt = engine.now + forMs;
  // They do not come back all at a time.
  const downMs = () => Math.max(0, endsAt - engine.now) + random.between(0, 2 * AWAKE_MS);
  const isReady = () => fleet.living.filter(({ isStopping }) => !isStopping);
  if (how === 'frozen') for (const member of fleet.living) member.process.freeze(downMs());
  else if (how === 'stopped') for (const member of isReady()) closeInstanceOf(simulation, member, downMs());
  else for (const member of isReady()) crash(simulation, member, downMs());
  troubles.mark(ALL, forMs + MENDED_MS + configuration.leaseMs);
  const crashReady = () => {
    const awake = fleet.living.filter(({ process }) => !process.isFrozen);
    for (const member of awake) crash(simulation, member, downMs());
    return awake.length > 0;
  };
  // Whoever comes up meanwhile would live through the night.
  const sleep = () => {
    if (crashReady()) engine.after(HEARD_MS, sleep);
    else engine.sleep(endsAt);
  };
  engine.after(SETTLED_MS, () => {
    // Those that were on their way up when the night began.
    crashReady();
    simulation.server.sync();
    if (how === 'away' && !simulation.cluster) simulation.takeServerAway(downMs());
    engine.after(HEARD_MS, sleep);
  });
}
