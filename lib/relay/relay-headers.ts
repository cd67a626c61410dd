import type { DelayedJob } from '../job/delayed-job.js';

/** What a message says of its job, by the names of headers. */
export const RELAY_HEADERS = Object.freeze({
  /** The same for every message of a job: receivers tell a doubled message by it. */
  id: 'delayed-job-id',
  queue: 'delayed-job-queue',
  /** ISO 8601, by the clock of the Redis server. */
  dueAt: 'delayed-job-due-at',
  /** 1 for the first one. */
  attempt: 'delayed-job-attempt',
});

/** With the fields of the trace, such as `traceparent`, if there is one. */
export type RelayHeaders = Readonly<Record<string, string>>;

export function headersOf(job: DelayedJob, trace: Readonly<Record<string, string>> | undefined): RelayHeaders {
  return {
    ...trace,
    [RELAY_HEADERS.id]: job.id,
    [RELAY_HEADERS.queue]: job.queue,
    [RELAY_HEADERS.dueAt]: job.dueAt.toISOString(),
    [RELAY_HEADERS.attempt]: String(job.attempt),
  };
}
