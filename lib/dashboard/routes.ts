import * as dead from './acts/dead.js';
import * as jobs from './acts/jobs.js';
import * as queue from './acts/queue.js';
import * as schedules from './acts/schedules.js';
import type { Act, Read } from './acts/act.js';
import type { Acts, Reads } from './api.js';
import { readDeadGroups } from './reads/dead-groups.js';
import { readFind } from './reads/find.js';
import { readForecast } from './reads/forecast.js';
import { readJob } from './reads/job.js';
import { readJobs } from './reads/jobs.js';
import { readLateness, readProcesses } from './reads/lateness.js';
import { readSchedules } from './reads/schedules.js';
import { readLimits } from './reads/limits.js';
import { readServer } from './reads/server.js';
import { readTimeline } from './reads/timeline.js';

// Tables, so that no path is ever taken apart: what is not in them is not there.

const reads: Record<Exclude<keyof Reads, 'me' | 'state'>, Read> = {
  timeline: readTimeline,
  jobs: readJobs,
  job: readJob,
  'dead-groups': readDeadGroups,
  lateness: readLateness,
  processes: readProcesses,
  schedules: readSchedules,
  server: readServer,
  forecast: readForecast,
  limits: readLimits,
  find: readFind,
};

const acts: Record<keyof Acts, Act> = {
  'jobs/run-now': jobs.runNow,
  'jobs/reschedule': jobs.reschedule,
  'jobs/cancel': jobs.cancel,
  'jobs/move': jobs.move,
  'dead/requeue': dead.requeue,
  'dead/remove': dead.removeDead,
  'queue/pause': queue.pause,
  'queue/resume': queue.resume,
  'queue/pause-publishing': queue.pausePublishing,
  'queue/resume-publishing': queue.resumePublishing,
  'queue/purge': queue.purge,
  'schedules/pause': schedules.pauseSchedule,
  'schedules/resume': schedules.resumeSchedule,
  'schedules/trigger': schedules.trigger,
  'schedules/backfill': schedules.backfill,
};

export const READS: ReadonlyMap<string, Read> = new Map(Object.entries(reads));
export const ACTS: ReadonlyMap<string, Act> = new Map(Object.entries(acts));
