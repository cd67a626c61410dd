import type { FaultKind } from './fault-kinds.js';
import type { Configuration } from './plan.js';
import type { Random } from './random.js';

/** Faults after which no lease has to end before everything is as it was. */
const LEASES_SURVIVE: readonly FaultKind[] = [
  'wallClockJump',
  'reset',
  'lostReply',
  'requestHeld',
  'replyHeld',
  'halfOpen',
  'halfOpenOne',
  'slow',
  'deaf',
  'serverPause',
  'full',
  'readOnly',
  'scriptsForgotten',
];

const HOUR_MS = 3_600_000;

/**
 * Jobs that run longer than everything else lasts, all at a time. None of them ends its process: whatever ran beside it would then run
 * alone, one after the other, for longer than a run lasts.
 */
const LONG_RUNS = {
  workers: 1,
  shards: 1,
  batch: false,
  pull: false,
  queues: 0,
  killers: 0,
  burstWorkMs: 15_000,
} as const;

/**
 * One run in twelve is far larger in one way than an application usually is. Each way is drawn as rarely as it costs, and makes the
 * rest smaller.
 */
const SIZES: readonly ((random: Random, drawn: Configuration) => Partial<Configuration>)[] = [
  // More jobs at a time than one step can renew.
  () => ({
    ...LONG_RUNS,
    concurrency: 2_000,
    rate: 40,
    leaseMs: 5_000,
    longestWorkMs: 15_000,
    faultsMs: 20_000,
  }),
  (random) => ({ ...LONG_RUNS, concurrency: 5_000, burst: random.pick([300, 1_000, 1_000, 5_000]), rate: 2 }),
  (random) => ({ queues: random.pick([5, 5, 50, 50, 500]), workers: random.pick([1, 2]), shards: 1, pull: false }),
  (random) => ({ shards: random.pick([8, 8, 32]), workers: 2 }),
  (random) => ({ batch: true, batchSize: random.pick([50, 200]), batchWaitMs: random.pick([0, 50, 1_000]) }),
  (random) => longLease(random.pick([60_000, 60_000, 600_000])),
  (random, { kinds }) => ({
    ...longLease(random.pick([HOUR_MS, 24 * HOUR_MS])),
    kinds: kinds.filter((kind) => LEASES_SURVIVE.includes(kind)),
    extends: 0,
    mendingMs: 60_000,
  }),
];

export function unusualSizes(random: Random, drawn: Configuration): Partial<Configuration> {
  return random.chance(0.08) ? random.pick(SIZES)(random, drawn) : {};
}

/** No job ends its process: each death costs a lease, and it takes more of them to find such a job than a run lasts. */
function longLease(leaseMs: number): Partial<Configuration> {
  return { leaseMs, longestWorkMs: 900, workers: 1, shards: 1, queues: 0, killers: 0, mendingMs: 30_000 + 4 * leaseMs };
}
