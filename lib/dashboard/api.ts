/**
 * What the page and the server of the dashboard say to each other. Types only: the page is built for browsers. It is no public
 * API: page and server come from the same package, and it may change with each version.
 *
 * - All paths are below `api/`, relative to the page. Names and ids go in the query or the body, never in the path.
 * - Every request takes `instance`, in the query or the body: what `forRoot({ name })` was given. Default: the first one.
 * - Times are ms since 1970. What does not exist is left out.
 * - Errors are `application/problem+json`, see `Problem`.
 */

import type {
  RunNowRequest,
  RescheduleRequest,
  CancelRequest,
  MoveRequest,
  JobsActResponse,
  RequeueRequest,
  RequeueResponse,
  RemoveDeadRequest,
  RemoveDeadResponse,
  PauseRequest,
  PauseResponse,
  PurgeRequest,
  PurgeResponse,
  ScheduleActRequest,
  BackfillRequest,
  ScheduleActResponse,
} from './api-acts.js';
import type {
  MeResponse,
  StateResponse,
  TimelineResponse,
  JobsResponse,
  JobResponse,
  DeadGroupsResponse,
  LatenessResponse,
  ProcessesResponse,
  SchedulesResponse,
  ServerResponse,
  ForecastResponse,
  LimitsResponse,
  FindResponse,
} from './api-reads.js';

export type * from './api-acts.js';
export type * from './api-reads.js';

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
  | 'DASHBOARD_NO_TOKEN' // 401: of the command line: neither its cookie nor its token
  | 'DASHBOARD_WRONG_HOST' // 421: of the command line: asked by a name that nobody has allowed
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
  forecast: ForecastResponse;
  limits: LimitsResponse;
  find: FindResponse;
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

// What the build of the page leaves for the server: `assets.json` beside the files, which are compressed (gzip).

/**
 * `page` is the HTML, with one `<base href="/">`, whose `href` the server replaces for the path of the request, and without
 * inline scripts or styles. `files` are by their name in the URL, `assets/index-1a2b3c.js`, relative to the folder of the
 * table and with `.gz` behind it; their names have a hash of their content, so browsers keep them for a year.
 */
export interface AssetManifest {
  page: string;
  files: Record<string, { type: string }>;
}
