// Under which faults and calls a deliberate defect is tried: those that could show it. A seed draws the rest.

/** One server, one build, queues that stay as they are: what most defects are about. */
const SIMPLE = {
  cluster: false,
  older: false,
  reshards: [],
  transfers: 0,
  limits: false,
  queues: 0,
  durable: 0,
  replicas: 0,
  persistence: 'everysec',
  forGood: [],
  weather: [],
  schedules: 0,
  burst: 0,
  moved: true,
  traits: [],
  nights: 0,
};
/** Dense and small: most defects need one fault at the right moment, and not a long run. */
const DENSE = {
  ...SIMPLE,
  faultsMs: 10_000,
  faultEveryMs: 500,
  restMs: 0,
  leaseMs: 2_000,
  commandTimeoutMs: 1_000,
  concurrency: 3,
  workers: 3,
  attempts: 3,
};
/** Nothing is wrong, so each wake-up counts. */
const CALM = { ...DENSE, kinds: [], concurrency: 1, longestWorkMs: 500, longestDelayMs: 2_000, fails: 0.3, latency: 1, pull: false, batch: false, bulks: 0, shards: 1, timeouts: 0 }; // prettier-ignore

/** All that changes what a group or a queue may start, and what ends runs. */
const LIMITS = {
  ...DENSE,
  limits: true,
  /** All limits that there are, as tight as the jobs allow. */
  limited: [
    {
      queue: 'jobs',
      limits: {
        globalConcurrency: 3,
        rateLimit: { max: 5, per: 200 },
        groups: { concurrency: 1, rateLimit: { max: 3, per: 200 }, retries: 'block' },
        priorityStep: 100,
      },
      groups: 5,
      hasPriorities: true,
    },
  ],
  shards: 1,
  kinds: ['crash', 'freeze', 'terminate', 'lostReply'],
  rate: 8,
  longestWorkMs: 300,
  longestDelayMs: 2_000,
  fails: 0.2,
  snoozes: 0.1,
  cancels: 0.1,
  moves: 0.1,
  repeats: 0.2,
  updates: 0.1,
  operators: 0.03,
  bulks: 0.05,
  maxSize: 0,
};

const GIVEN = {
  calm: CALM,
  /** One worker, whose two sessions cross each other, and few jobs: nobody else wakes it. */
  alone: { ...CALM, workers: 1, concurrency: 3, rate: 2, longestWorkMs: 900, leaseMs: 30_000 },
  /** Calls find workers that do not answer. */
  unheard: {
    ...DENSE,
    kinds: ['freeze', 'cutOff', 'halfOpen', 'deaf'],
    concurrency: 1,
    longestWorkMs: 500,
    fails: 0.3,
    rate: 15,
  },
  /** Handlers that outlast their timeouts, in the only slot. */
  timeouts: { ...CALM, timeouts: 0.5, longestWorkMs: 200, workers: 1 },
  /** Shards that share one slot. */
  shards: { ...CALM, shards: 3, extends: 0.2, longestWorkMs: 300 },
  /** Claims of many jobs. */
  bulks: { ...DENSE, kinds: [], concurrency: 10, bulks: 0.4, longestWorkMs: 3_000 },
  /** Runs that another one follows. */
  followed: { ...CALM, repeats: 0.4 },
  bounds: { ...CALM, maxSize: 3, keptCount: 5, keptMs: 1_000, bulks: 0.2, killers: 1, repeats: 0.2, rate: 8 },
  /** Steps that complete more jobs than a step usually forgets. */
  history: { ...CALM, keptCount: 1, keptMs: 3_600_000, maxSize: 0, concurrency: 300, bulks: 0.5, rate: 40, longestWorkMs: 1, longestDelayMs: 100, fails: 0, shards: 1 }, // prettier-ignore
  publishing: { ...DENSE, kinds: [], operators: 0.3 },
  rolling: { ...CALM, rolling: true, faultsMs: 2_000, rate: 8, workers: 3, concurrency: 3, calmMs: 20_000, longestWorkMs: 100 }, // prettier-ignore
  crowd: { ...CALM, workers: 8, concurrency: 3, rate: 4 },
  clock: { ...DENSE, kinds: ['serverClockJump', 'serverClockJumpsTwice', 'freeze', 'crash'] },
  extend: { ...DENSE, kinds: ['freeze', 'aimedFreeze'], extends: 0.5, longestWorkMs: 3_000, pull: true },
  many: { ...CALM, workers: 1, concurrency: 2_000, rate: 60, leaseMs: 5_000, longestWorkMs: 15_000 },
  drain: { ...DENSE, kinds: ['terminate'], longestWorkMs: 9_000, rate: 1 },
  crash: { ...DENSE, kinds: ['crash', 'freeze'], moves: 0.3, killers: 1, faultsMs: 15_000, mendingMs: 90_000 },
  /** One slot: whatever runs is alone. */
  sole: {
    ...DENSE,
    kinds: ['crash', 'aimedCrash', 'freeze'],
    concurrency: 1,
    killers: 1,
    mendingMs: 90_000,
    shards: 1,
    moved: false,
  },
  /** Long jobs, and a quarantine that always has one. */
  isolation: { ...DENSE, kinds: ['crash', 'freeze'], concurrency: 10, longestWorkMs: 6_000, killers: 2, mendingMs: 150_000, rate: 4 }, // prettier-ignore
  frozen: { ...DENSE, kinds: ['freeze', 'aimedFreeze'], moves: 0.2, repeats: 0.2, longestWorkMs: 900 },
  resend: { ...DENSE, kinds: ['lostReply', 'replyHeld', 'lateStep', 'aimedLateStep', 'freeze'] },
  disk: { ...DENSE, kinds: ['restart', 'failover', 'serverClockJump'] },
  broken: { ...DENSE, kinds: ['halfOpen', 'halfOpenOne', 'readOnly', 'full', 'cutOff', 'reset', 'scriptsForgotten'] },
  pulled: { ...DENSE, kinds: ['freeze', 'replyHeld'], pull: true, extends: 0.2 },
  calls: { ...DENSE, kinds: ['lostReply', 'freeze'], repeats: 0.3, cancels: 0.2, moves: 0.2, snoozes: 0.2, expires: 0.2, operators: 0.03 }, // prettier-ignore
  /** Nodes of a Cluster with several clocks, and calls that arrive late. */
  nodes: { ...DENSE, cluster: true, shards: 3, kinds: ['nodeClockSteps', 'slotMoves', 'lateStep', 'aimedLateStep', 'replyHeld'] }, // prettier-ignore
  /** A master that is replaced often, and Sentinels that are no help. */
  sentinels: { ...DENSE, traits: ['sentinels'], kinds: ['masterFails', 'masterChanges', 'sentinelsAway', 'sentinelsLie'], faultEveryMs: 900 }, // prettier-ignore
  /** Whoever makes occurrences and runs them fails often, and some runs outlast the time until the next one. */
  schedules: {
    ...DENSE,
    schedules: 3,
    kinds: ['crash', 'freeze', 'serverPause', 'reset', 'lostReply'],
    rate: 2,
    fails: 0.2,
    nights: 2,
  },
  limits: LIMITS,
  /** Nothing is wrong, so each wake-up counts; of several processes. */
  calmLimits: { ...CALM, ...LIMITS, kinds: [], latency: 1, pull: false, batch: false, timeouts: 0, concurrency: 3 },
  movedLimits: { ...LIMITS, transfers: 0.1, expires: 0.1, pull: true },
  /** Of a queue in shards: each has its share of the limits of the queue, and all of the jobs of some groups. */
  splitLimits: { ...LIMITS, shards: 3, limited: [{ queue: 'jobs', limits: { globalConcurrency: 5, rateLimit: { max: 16, per: 200 }, groups: { concurrency: 1 } }, groups: 5, hasPriorities: false }] }, // prettier-ignore
  /** Whatever runs is all that may run, and its process is killed often. */
  fullLimits: { ...LIMITS, limited: [{ queue: 'jobs', limits: { globalConcurrency: 1 }, groups: 0, hasPriorities: false }], kinds: ['crash'], workers: 1, rate: 2, longestWorkMs: 900 }, // prettier-ignore
  recurringLimits: { ...LIMITS, schedules: 3, nights: 2 },
  dense: DENSE,
};

/** The first one whose pattern is in the name of the defect. */
const PROFILES = [
  [/^limits\/.*dead-runs/, 'fullLimits'],
  [/^limits\/.*(each-shard|all-shards|rest-of-a-limit)/, 'splitLimits'],
  [/^limits\/.*(wakes|wake-up|wait)/, 'calmLimits'],
  [/^limits\/.*(moved-job|released|expired)/, 'movedLimits'],
  [/^limits\/.*(occurrences|local-time)/, 'recurringLimits'],
  [/^limits\//, 'limits'],
  [/^recurring\//, 'schedules'],
  [/sentinel|given-up-client/, 'sentinels'],
  [/clock-back/, 'clock'],
  [/timeout-keeps|late-return/, 'timeouts'],
  [/slot-twice|heartbeat-without-a-slot/, 'shards'],
  [/jobs-left/, 'bulks'],
  [/after-followup|despite-replacement|forgets-replacement/, 'followed'],
  [/history-grows/, 'history'],
  [/max-size|history\//, 'bounds'],
  [/publishing/, 'publishing'],
  [/first-ones-only/, 'many'],
  [/settled-head-unseen|head-left|head-not-read-after-claim|due-look|second-step|claim-in-flight/, 'alone'],
  [/leaving-keeps-the-role|full-leader|one-name/, 'rolling'],
  [/wakes-all/, 'crowd'],
  [/overdue-head/, 'unheard'],
  [/wake-up|concurrency|slot|never-early|claims-early|due-order/, 'calm'],
  [/jump|grace|clock|far-deadlines|longest-lease|away-takes/, 'clock'],
  [/extend/, 'extend'],
  [/drain|lifecycle|leaves/, 'drain'],
  [/quarantined-job-not-alone|poison|take-back|quarantined-forget|quarantined-together/, 'crash'],
  [/alone|killed|loss-|killer/, 'sole'],
  [/quarantine/, 'isolation'],
  [/pull/, 'pulled'],
  [
    /frozen|one-owner|token|settles|lapsed|late-ending|late-renewal|came-back|moved-job|released-job|lost-claim/,
    'frozen',
  ],
  [/resends|session|settling|late-claim|refused-renewal/, 'resend'],
  [/connection|full-memory/, 'broken'],
  [/unique|cancel|retries|dead-letters|pausing/, 'calls'],
  [/./, 'dense'],
];

/** @returns its name and what it overrides of a configuration */
export function profileOf(defect) {
  const [, profile] = PROFILES.find(([pattern]) => pattern.test(defect));
  return { profile, given: GIVEN[profile] };
}

export function profileNames() {
  return Object.keys(GIVEN);
}

export function profileNamed(profile) {
  return { profile, given: GIVEN[profile] };
}
