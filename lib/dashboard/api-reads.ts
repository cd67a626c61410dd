// What the page asks for, and what it is answered: see api.ts.

/** Ms since 1970; by the clock of Redis unless the field says otherwise. */
export type Ms = number;

export type ApiJobState = 'delayed' | 'due' | 'running' | 'dead' | 'completed';
export type ApiDeadReason = 'exhausted' | 'discarded' | 'leaseLost' | 'undecodable' | 'invalid' | 'expired';

// GET me

/** What this user may do, and what there is to look at. Ask first, once for each instance; of an unknown one it tells of the first. */
export interface MeResponse {
  /** As `access` named it. */
  user?: string;
  level: 'read' | 'write';
  /** Names of instances; there is at least one. The unnamed one is `default`. */
  instances: string[];
  /** Of this package. */
  version: string;
  payloads: 'show' | 'hide' | 'custom';
  errors: 'show' | 'hide';
  /** What the answers below can tell. */
  features: {
    /** `DelayQueueHistoryModule` is imported: lateness and processes. */
    history: boolean;
    schedules: boolean;
  };
  /** A badge, such as `production`. */
  environment?: string;
}

// GET state

/**
 * All queues of an instance. Read at most once a second per process. Send `If-None-Match` with the `ETag` of the last
 * answer: 304 says that nothing but `now` and `ageMs` has changed.
 */
export interface StateResponse {
  /** When Redis was read; left out where no queue was. */
  now?: Ms;
  /** For how long Redis has not answered: 0 while it does, and left out where it never did. */
  ageMs?: number;
  redis: { up: true } | { up: false; problem: string };
  /** By name. */
  queues: QueueState[];
  /** So many queues more, which are not in the list. */
  more: number;
}

/**
 * - `unattended`: jobs are due, or left by a process that is gone, and no live process claims them
 * - `damaged`: it cannot be read; `problem` says why, and all numbers are 0
 *
 * The first that applies of: damaged, paused, unattended, lagging, publishingPaused, ok.
 */
export type QueueStatus = 'ok' | 'paused' | 'publishingPaused' | 'lagging' | 'unattended' | 'damaged';

export interface QueueState {
  queue: string;
  status: QueueStatus;
  problem?: string;
  delayed: number;
  due: number;
  running: number;
  dead: number;
  /** Those that are kept. */
  completed: number;
  paused: boolean;
  publishingPaused: boolean;
  /** Age of the oldest due job. */
  lagMs: number;
  /** Due time of the first waiting job; it may have passed. */
  nextDueAt?: Ms;
  shards: number;
  /** It is at a limit of its own. Left out of a queue without limits, groups and priorities. */
  limited?: boolean;
  /** Jobs that fall due in each of the next 60 minutes; up to ten seconds old. */
  nextHour: number[];
}

// GET timeline?queue&from&to&buckets     Without queue: the sum of all queues.

export interface TimelineResponse {
  now: Ms;
  from: Ms;
  to: Ms;
  /** Of a bucket; the last one may be narrower. */
  widthMs: number;
  counts: number[];
  /** Due by `now`, wherever the timeline begins. */
  overdue: number;
  before: number;
  after: number;
  firstDueAt?: Ms;
  lastDueAt?: Ms;
  /** Queues that are in the sum, and those that are not: there are too many, or they cannot be read. */
  queues: number;
  left: number;
}

// GET jobs?queue&state&from&to&cursor&limit     limit 1 to 200, default 50

/**
 * Pages by due time; running jobs by claim, dead and completed ones by their end, which `from` and `to` mean then. Running
 * jobs have no range.
 */
export interface JobsResponse {
  jobs: JobRow[];
  /** Of the next page. */
  cursor?: string;
}

export interface JobRow {
  id: string;
  queue: string;
  state: ApiJobState;
  dueAt?: Ms;
  enqueuedAt?: Ms;
  attempts: number;
  maxAttempts?: number;
  completedAt?: Ms;
  deadReason?: ApiDeadReason;
  group?: string;
  /** 1 to 9; left out for 0. */
  priority?: number;
  /** It was lost by a process once, and is kept apart from the others. */
  quarantined: boolean;
  lastError?: ErrorText;
  /** The beginning of the payload, at most 200 characters. Left out when payloads are hidden. */
  preview?: string;
}

export interface ErrorText {
  name: string;
  /** Empty when errors are hidden. */
  message: string;
  stack?: string;
  /** By the clock of the worker. */
  at?: Ms;
  cause?: ErrorText;
  /** Of an AggregateError. */
  errors?: ErrorText[];
}

// GET job?queue&id     404 DASHBOARD_NOT_FOUND

export interface JobResponse extends JobRow {
  /** When this was read. */
  now: Ms;
  /** Ids are unique in a queue: the shard that has it. */
  shard: number;
  payload: PayloadText;
  /** Left out when payloads are hidden. */
  context?: Record<string, string>;
  /** The last failed attempts, in short, the newest last. */
  errors: ErrorText[];
  /** Until when the process that runs it holds it. */
  leaseUntil?: Ms;
  /** When it became a dead letter or was completed. */
  endedAt?: Ms;
  expiresAt?: Ms;
  snoozes: number;
  /** What the job itself says; what is left out is said by its handler. */
  options: Record<string, string | number | boolean>;
  /** Of an occurrence of a schedule. */
  schedule?: { id: string; at: Ms };
}

/**
 * - `json`: `text` is JSON as it is stored, so numbers have all their digits
 * - `text`: for people, of a payload that is no JSON
 */
export type PayloadText =
  | { kind: 'json' | 'text'; text: string; /** Characters in all, when it was cut. */ of?: number }
  /** The application does not show it, or its function failed. */
  | { kind: 'hidden'; problem?: string }
  | { kind: 'undecodable'; problem: string };

// GET dead-groups?queue

export interface DeadGroupsResponse {
  /** Dead letters of the queue. */
  total: number;
  /** So many of them, the newest ones, are in the groups. At most 1,000. */
  looked: number;
  /** The largest first. */
  groups: DeadGroup[];
}

export interface DeadGroup {
  reason: ApiDeadReason;
  /** Name of the error. */
  error?: string;
  /** Numbers and ids in it are replaced by `#`. */
  message?: string;
  /** The message of its newest one, as it is. */
  example?: string;
  count: number;
  firstAt: Ms;
  lastAt: Ms;
  /** The newest first. For `dead/requeue` and `dead/remove`. */
  ids: string[];
}

// GET lateness?queue&from&to     Default: the last hour. 501 DASHBOARD_MISSING without DelayQueueHistoryModule

export interface LatenessResponse {
  from: Ms;
  to: Ms;
  /** Those in which something happened; the present one is written when it is over. */
  minutes: LatenessMinute[];
  total: LatenessCounts;
  /** Upper bounds of the buckets of lateness; one bucket more is above all of them. */
  boundsMs: number[];
  /** Above which health calls the queue degraded. */
  degradedMs: number;
  /** Now. */
  lagMs: number;
}

export interface LatenessCounts {
  enqueued: number;
  claimed: number;
  completed: number;
  failed: number;
  retried: number;
  snoozed: number;
  expired: number;
  deadLettered: number;
  leasesLost: number;
  /** Left out when no job was claimed. `mostMs` is left out when it is above all bounds. */
  lateness?: { p50Ms: number; p99Ms: number; mostMs?: number; meanMs: number; buckets: number[] };
  meanDurationMs?: number;
}

export interface LatenessMinute extends LatenessCounts {
  at: Ms;
}

// GET processes     501 DASHBOARD_MISSING without DelayQueueHistoryModule

export interface ProcessesResponse {
  processes: ProcessRow[];
}

export interface ProcessRow {
  name: string;
  host: string;
  pid: number;
  /** Of this package. */
  version: string;
  node: string;
  startedAt: Ms;
  /** When it last showed itself. */
  seenAt: Ms;
  draining: boolean;
  queues: { queue: string; busy: number; slots: number; lastClaimMs: number; zombies: number; paused: boolean }[];
}

// GET schedules?queue&cursor     Without queue: of all queues. 501 DASHBOARD_MISSING where there are none

export interface SchedulesResponse {
  schedules: ScheduleRow[];
  cursor?: string;
  /** Ids that a newer library wrote. */
  unreadable: { queue: string; id: string }[];
}

export interface ScheduleRow {
  id: string;
  queue: string;
  cron?: string;
  timeZone?: string;
  everyMs?: number;
  from?: Ms;
  until?: Ms;
  limit?: number;
  jitterMs: number;
  missed: string;
  overlap: string;
  payload: PayloadText;
  /** Declared by a handler, or made by a call. */
  owner: 'code' | 'call';
  paused: boolean;
  /** The next ten times, without jitter; fewer when it ends, none while it is paused. */
  next: Ms[];
  /** The job of `overlap` that began last, and how it is now, if it is still there. */
  lastJob?: { id: string; state?: ApiJobState };
  counts: { made: number; missed: number; overlapped: number };
}

// GET server

export interface ServerResponse {
  /** Without credentials. */
  address: string;
  /** Left out when INFO is not permitted: `problem` says so. */
  server?: {
    version: string;
    usedMemory: number;
    /** 0: no limit. */
    maxMemory: number;
    evictionPolicy: string;
    /** Jobs survive a restart, as far as INFO tells. */
    persisted: boolean;
    appendOnly: boolean;
    replicas: number;
    clustered: boolean;
    /** `memory://`: nothing survives this process. */
    inProcess: boolean;
  };
  problem?: string;
  latencyMs: number;
  health: 'up' | 'degraded' | 'down';
  /** What health and the checks of the start found: whole sentences. */
  findings: string[];
  prefix: string;
  durability: string;
  /** Queues with more than one shard. */
  shards: { queue: string; shards: number }[];
  /** This process. */
  process: { pid: number; host: string; node: string; version: string };
}

// GET forecast?queue     Of the next 24 hours, of what DelayQueueHistoryModule measures

/** When the backlog will be gone, and in which times jobs will start late. */
export interface ForecastResponse {
  at: Ms;
  /** Jobs per second that all processes start together; left out when nothing was measured: then there are no peaks. */
  rate?: number;
  basis?: 'given' | 'measured' | 'slots';
  /** Live ones that work on the queue. */
  processes: number;
  /** Then it is as if the queue were resumed now. */
  paused: boolean;
  /** Jobs that are due now, and when they will all have started. */
  due: number;
  clearAt?: Ms;
  /** At most 20, the first ones. */
  peaks: ForecastPeakRow[];
}

export interface ForecastPeakRow {
  /** Due time of its first job. */
  from: Ms;
  /** When its last job starts. */
  until: Ms;
  jobs: number;
  /** Of the job that starts latest. */
  latestMs: number;
  latestDueAt: Ms;
}

// GET limits?queue

/** How near a queue is to its limits, and which groups wait. */
export interface LimitsResponse {
  setBy: 'config' | 'operator';
  running: number;
  concurrency?: number;
  rate?: RateRow;
  groupConcurrency?: number;
  groupRate?: RateRow;
  /** It is at a limit of its own. */
  limited: boolean;
  /** Groups: in line for a turn, at a limit of theirs, and all. */
  groups: { inLine: number; limited: number; total: number };
  /** The ten with the most due jobs of those that were looked at. */
  backlog: { group?: string; due: number; waiting: number; running: number; limitedUntil?: Ms }[];
  looked: number;
}

export interface RateRow {
  max: number;
  perMs: number;
}

// GET find?id

/** The jobs with exactly this id, in the queues that were looked at: 200 at most. */
export interface FindResponse {
  jobs: JobRow[];
  looked: number;
  /** Queues that were not looked at, or cannot be read. */
  left: number;
}
