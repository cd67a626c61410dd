/**
 * What the page and the server of the dashboard say to each other. Types only, and nothing imported: the page is built for
 * browsers. It is no public API: page and server come from the same package, and it may change with each version.
 *
 * - All paths are below `api/`, relative to the page. Names and ids go in the query or the body, never in the path.
 * - Every request takes `instance`, in the query or the body: what `forRoot({ name })` was given. Default: the first one.
 * - Times are ms since 1970. What does not exist is left out.
 * - Errors are `application/problem+json`, see `Problem`.
 */

/** Ms since 1970; by the clock of Redis unless the field says otherwise. */
export type Ms = number;

export type ApiJobState = 'delayed' | 'due' | 'running' | 'dead' | 'completed';
export type ApiDeadReason = 'exhausted' | 'discarded' | 'leaseLost' | 'undecodable' | 'invalid' | 'expired';

/** By request: the answer of every error. */
export interface Problem {
  type: 'about:blank';
  title: string;
  status: number;
  /** A whole sentence for people, with what to do. */
  detail: string;
  /** `ERR_DQ_...` of the library, or one of the dashboard's own. */
  code: string;
  /** The same request may succeed later. */
  retryable?: boolean;
  /** The act may have been done: look before it is repeated. */
  maybeAccepted?: boolean;
}

/** Codes of a `Problem` that are the dashboard's own. */
export type DashboardCode =
  | 'DASHBOARD_FORBIDDEN' // 403: `access` says none, or read only for an act
  | 'DASHBOARD_CROSS_SITE' // 403: an act that does not come from the page
  | 'DASHBOARD_ACCESS_FAILED' // 500: the application's `access` threw or answered something else
  | 'DASHBOARD_NOT_FOUND' // 404: no such path, or no such job or schedule
  | 'DASHBOARD_METHOD' // 405
  | 'DASHBOARD_MEDIA_TYPE' // 415: an act whose content type is not application/json
  | 'DASHBOARD_TOO_LARGE' // 413
  | 'DASHBOARD_BAD_REQUEST' // 400: not JSON, or a field is missing or of the wrong type
  | 'DASHBOARD_NOT_CONFIRMED' // 409: `confirm` is not the name of the queue
  | 'DASHBOARD_MISSING' // 501: needs a module that the application does not import; says which
  | 'DASHBOARD_INTERNAL'; // 500

// GET me

/** What this user may do, and what there is to look at. Ask first, once. */
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
 * answer: 304 says that nothing but `readAt` has changed.
 */
export interface StateResponse {
  /** When Redis was read, by the clock of the server process; while Redis is away, when it last answered. */
  readAt: Ms;
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
  /** When the run began, while it runs, as far as it is known. */
  claimedAt?: Ms;
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
  /** Numbers, ids and quoted texts in it are replaced by `#`. */
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

// POST: acts. All need level `write`, `content-type: application/json`, and to be asked by the page itself.

/** What each act takes. */
export interface ActRequest {
  instance?: string;
  queue: string;
  /** Nothing is changed; the answer says what would be. */
  dryRun?: boolean;
}

/** Due times from `from` on and before `to`; one of them may be left out. */
export interface DueRange {
  from?: Ms;
  to?: Ms;
}

/** At most 1,000 ids, or all jobs that are due in a range, 1,000 in a call. */
export type JobChoiceRequest = ({ ids: string[]; range?: never } | { range: DueRange; ids?: never }) & {
  /** Of the answer before; all else must be the same as then. */
  cursor?: string;
};

/** POST jobs/run-now */
export type RunNowRequest = ActRequest & JobChoiceRequest;

/** POST jobs/reschedule. Durations are ms, or texts such as `1h 30m`. */
export type RescheduleRequest = ActRequest &
  JobChoiceRequest & {
    to: { at: Ms } | { delay: number | string } | { by: number | string };
    /** Not with `by`. */
    spread?: number | string;
  };

/** POST jobs/cancel */
export type CancelRequest = ActRequest &
  JobChoiceRequest & {
    /** Running jobs as well: their signals abort. */
    running?: boolean;
  };

/** POST jobs/move */
export type MoveRequest = ActRequest & JobChoiceRequest & { target: string };

export type ActOutcome =
  'rescheduled' | 'cancelled' | 'moved' | 'exists' | 'running' | 'dead' | 'notFound' | 'changed' | 'leaseLost';

/** Of the four acts on jobs. */
export interface JobsActResponse {
  results: { id: string; outcome: ActOutcome; state?: ApiJobState; dueAt?: Ms }[];
  /** Call again with it: there are more jobs, or the act was interrupted after these. */
  cursor?: string;
}

/** At most 1,000 ids; or all, 1,000 in a call, the oldest first. */
export type DeadChoiceRequest = { ids: string[]; all?: never } | { all: true; ids?: never };

/** POST dead/requeue */
export type RequeueRequest = ActRequest &
  DeadChoiceRequest & {
    delay?: number | string;
    spread?: number | string;
    /** Default true. False: exactly one more run. */
    resetAttempts?: boolean;
    /** With `all`: only of this reason. */
    reason?: ApiDeadReason;
    /** Of the answer before: without it jobs that die again meanwhile would be requeued again. */
    cursor?: string;
  };

export interface RequeueResponse {
  /** With `dryRun`: so many would be. */
  requeued: number;
  /** Dead letters that the queue has now. */
  remaining: number;
  /** Of `all`: there may be more; call again with it. */
  cursor?: string;
}

/** POST dead/remove */
export type RemoveDeadRequest = ActRequest & DeadChoiceRequest;

export interface RemoveDeadResponse {
  /** With `dryRun`: so many would be. */
  removed: number;
  /** Dead letters that the queue has now. With `all`, call again while there are some. */
  remaining: number;
}

/** POST queue/pause, queue/resume, queue/pause-publishing, queue/resume-publishing. `dryRun` only tells the state. */
export type PauseRequest = ActRequest;

export interface PauseResponse {
  queue: string;
  paused: boolean;
  publishingPaused: boolean;
}

/** POST queue/purge: 1,000 jobs in a call. Running jobs stay. */
export interface PurgeRequest extends ActRequest {
  /** Default: waiting and dead. */
  states?: ('waiting' | 'dead' | 'completed')[];
  /** The name of the queue, typed by the user. Not needed with `dryRun`. */
  confirm?: string;
}

export interface PurgeResponse {
  /** With `dryRun`: so many would be, all that there are. */
  removed: number;
  /** Of these states; call again while there are some. */
  remaining: number;
}

/** POST schedules/pause, schedules/resume, schedules/trigger. 404 without such a schedule */
export interface ScheduleActRequest extends ActRequest {
  id: string;
}

/** POST schedules/backfill: occurrences of the past, from `from` on and before `to`. */
export interface BackfillRequest extends ScheduleActRequest {
  from: Ms;
  to: Ms;
}

export interface ScheduleActResponse {
  id: string;
  /** Of pause and resume. */
  paused?: boolean;
  /** The job that was made, of trigger. */
  job?: string;
  /** Occurrences that were made, of backfill; with `dryRun` at most so many. */
  made?: number;
}

/** Paths of reads, and what they answer. */
export interface Reads {
  me: MeResponse;
  state: StateResponse;
  timeline: TimelineResponse;
  jobs: JobsResponse;
  job: JobResponse;
  'dead-groups': DeadGroupsResponse;
  lateness: LatenessResponse;
  processes: ProcessesResponse;
  schedules: SchedulesResponse;
  server: ServerResponse;
}

/** Paths of acts: what they take, and what they answer. */
export interface Acts {
  'jobs/run-now': [RunNowRequest, JobsActResponse];
  'jobs/reschedule': [RescheduleRequest, JobsActResponse];
  'jobs/cancel': [CancelRequest, JobsActResponse];
  'jobs/move': [MoveRequest, JobsActResponse];
  'dead/requeue': [RequeueRequest, RequeueResponse];
  'dead/remove': [RemoveDeadRequest, RemoveDeadResponse];
  'queue/pause': [PauseRequest, PauseResponse];
  'queue/resume': [PauseRequest, PauseResponse];
  'queue/pause-publishing': [PauseRequest, PauseResponse];
  'queue/resume-publishing': [PauseRequest, PauseResponse];
  'queue/purge': [PurgeRequest, PurgeResponse];
  'schedules/pause': [ScheduleActRequest, ScheduleActResponse];
  'schedules/resume': [ScheduleActRequest, ScheduleActResponse];
  'schedules/trigger': [ScheduleActRequest, ScheduleActResponse];
  'schedules/backfill': [BackfillRequest, ScheduleActResponse];
}

// What the build of the page leaves for the server: `assets.json` beside the files.

/**
 * `page` is the HTML, with one `<base href="/">`, whose `href` the server replaces for the path of the request, and without
 * inline scripts or styles. `files` are by their name in the URL, `assets/index-1a2b3c.js`, relative to the folder of the
 * table; their names have a hash of their content, so browsers keep them for a year.
 */
export interface AssetManifest {
  page: string;
  files: Record<string, { type: string }>;
}
