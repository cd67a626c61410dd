import type { ActOutcome, ApiJobState, DueRange, JobsActResponse } from '../api.js';
import { act } from './server.js';

// Acts on many jobs, call by call: the server does at most a thousand at once.

export type JobAct = 'run-now' | 'reschedule' | 'cancel' | 'move';

export type Chosen = { readonly ids: readonly string[] } | { readonly range: DueRange };

export interface JobActRequest {
  readonly act: JobAct;
  readonly queue: string;
  readonly chosen: Chosen;
  /** What this act takes beside the jobs. */
  readonly more: Readonly<Record<string, unknown>>;
}

export interface ActResult {
  readonly id: string;
  readonly outcome: ActOutcome;
  readonly state?: ApiJobState;
}

export interface Report {
  readonly results: readonly ActResult[];
  /** The user stopped it: there are more jobs. */
  readonly isPartial: boolean;
  /** What ended it before its end. */
  readonly error?: unknown;
}

/** Jobs in one call. */
export const MOST = 1_000;

/** What each outcome means for the user, and whether it is what was asked for. */
export const OUTCOMES: Readonly<Record<ActOutcome, readonly [text: string, isDone: boolean]>> = {
  rescheduled: ['have a new due time', true],
  cancelled: ['cancelled', true],
  moved: ['moved', true],
  exists: ['left: the target has a job with this id', false],
  running: ['left: running', false],
  dead: ['left: dead letters', false],
  notFound: ['gone: not found', false],
  changed: ['left: another due time meanwhile', false],
  unknown: ['perhaps: no answer came in time, look at their due times', false],
  leaseLost: ['left: the lease of the move was lost', false],
  occurrence: ['left: occurrences of a schedule', false],
};

/** @param onProgress after each call; answers whether to go on */
export async function actOnJobs(request: JobActRequest, onProgress: (done: number) => boolean): Promise<Report> {
  const results: ActResult[] = [];
  try {
    for (const choice of callsOf(request.chosen)) {
      let cursor: string | undefined;
      do {
        const answer = await call(request, { ...choice, ...(cursor && { cursor }) });
        results.push(...answer.results);
        cursor = answer.cursor;
        if (!onProgress(results.length)) return { results, isPartial: cursor !== undefined };
      } while (cursor !== undefined);
    }
    return { results, isPartial: false };
  } catch (error) {
    return { results, isPartial: true, error };
  }
}

function callsOf(chosen: Chosen): Chosen[] {
  if ('range' in chosen) return [chosen];
  const calls: Chosen[] = [];
  for (let at = 0; at < chosen.ids.length; at += MOST) calls.push({ ids: chosen.ids.slice(at, at + MOST) });
  return calls;
}

function call({ act: name, queue, more }: JobActRequest, choice: object): Promise<JobsActResponse> {
  return act(`jobs/${name}`, { queue, ...choice, ...more } as never);
}

/** How many had which outcome, the most frequent first. */
export function outcomesOf(results: readonly ActResult[]): [ActOutcome, number][] {
  const many = new Map<ActOutcome, number>();
  for (const { outcome } of results) many.set(outcome, (many.get(outcome) ?? 0) + 1);
  return [...many].sort(([, a], [, b]) => b - a);
}
