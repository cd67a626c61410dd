import { STATUS_CODES } from 'node:http';
import type { DelayQueueErrorCode } from '../delay-queue.errors.js';
import { DelayQueueError, UnavailableError } from '../delay-queue.errors.js';
import type { DashboardCode, Problem } from './api.js';

/** What the dashboard refuses by itself. */
export class DashboardProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: DashboardCode,
    message: string,
  ) {
    super(message);
    this.name = 'DashboardProblem';
  }
}

/** A field of the query or of the body. */
export function badRequest(message: string): DashboardProblem {
  return new DashboardProblem(400, 'DASHBOARD_BAD_REQUEST', message);
}

export function notFound(message: string): DashboardProblem {
  return new DashboardProblem(404, 'DASHBOARD_NOT_FOUND', message);
}

/** Those that are not here are faults of what is stored or of the application: 500. */
const STATUS: Partial<Record<DelayQueueErrorCode, number>> = {
  ERR_DQ_INVALID_DELAY: 400,
  ERR_DQ_INVALID_QUEUE: 400,
  ERR_DQ_INVALID_ID: 400,
  ERR_DQ_INVALID_OPTION: 400,
  ERR_DQ_UNKNOWN_INSTANCE: 404,
  ERR_DQ_UNAVAILABLE: 503,
  ERR_DQ_CONNECTION: 503,
  ERR_DQ_CLOSED: 503,
  ERR_DQ_BACK_PRESSURE: 503,
  ERR_DQ_REDIS_FULL: 503,
  ERR_DQ_QUEUE_FULL: 409,
  ERR_DQ_PUBLISHING_PAUSED: 409,
  ERR_DQ_SHARD_COUNT: 409,
};

const INTERNAL =
  'The dashboard failed, and the log of the application says why. What was asked for may have been done: look first.';

/** @returns undefined for `thrown` that nobody expected: its text is for the log, and not for a browser */
export function problemOf(thrown: unknown): Problem | undefined {
  if (thrown instanceof DashboardProblem) {
    return problem(thrown.status, thrown.code, thrown.message);
  }
  if (!(thrown instanceof DelayQueueError)) return undefined;
  return {
    ...problem(STATUS[thrown.code] ?? 500, thrown.code, thrown.message),
    ...(thrown.retryable && { retryable: true }),
    ...(thrown instanceof UnavailableError && thrown.maybeAccepted && { maybeAccepted: true }),
  };
}

export function internalProblem(): Problem {
  return { ...problem(500, 'DASHBOARD_INTERNAL', INTERNAL), maybeAccepted: true };
}

function problem(status: number, code: string, detail: string): Problem {
  return { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail, code };
}
