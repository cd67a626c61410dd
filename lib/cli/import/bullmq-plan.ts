import { exponential, fixed } from '../../job/backoff.js';
import type { Backoff } from '../../job/backoff.js';
import type { EnqueueOptions } from '../../job/enqueue-options.js';
import { parseInstant } from '../../job/duration.js';
import { assertJobId } from '../../job/job-id.js';
import { assertQueueName } from '../../job/queue-name.js';
import { losesDigits } from '../make/lost-digits.js';
import type { BullJob } from './bullmq-source.js';

/** Why a job stays in BullMQ. */
export type Reason = 'scheduler' | 'flow' | 'unreadable' | 'digits' | 'id' | 'queueName' | 'conflict' | 'refused';

export const REASONS: Readonly<Record<Reason, string>> = {
  scheduler: 'of a job scheduler: make a schedule() of it, and remove the scheduler',
  flow: 'of a flow',
  unreadable: 'without data that can be read',
  digits: 'with a whole number in the data that would lose digits here',
  id: 'with an id that no job may have here',
  queueName: 'with a name that makes no name of a queue',
  conflict: 'with an id under which the queue here has another job: --id-prefix makes others',
  refused: 'that the queue here refuses, as it does with too large a payload',
};

export interface Target {
  /** May hold `{name}`, which stands for the name of the job. */
  readonly queue: string;
  readonly idPrefix: string;
}

/** What an import does with a job. */
export interface Plan {
  readonly job: BullJob;
  readonly queue: string;
  readonly id: string;
  readonly payload: unknown;
  readonly options: Pick<EnqueueOptions, 'attempts' | 'backoff'>;
  readonly dueAt: number;
  /** Kept with the job on its way, so that an import that goes on does the same. */
  readonly note: string;
}

export function planOf(job: BullJob, target: Target): Plan | Reason {
  if (job.ofScheduler) return 'scheduler';
  if (job.ofFlow) return 'flow';
  const queue = target.queue.replaceAll('{name}', () => job.name);
  const id = target.idPrefix + job.id;
  if (refuses(() => assertQueueName(queue))) return 'queueName';
  if (refuses(() => assertJobId(id))) return 'id';
  return planned(job, queue, id);
}

/** What is left to do with a job that is parked here. */
export type Release = Pick<Plan, 'job' | 'queue' | 'id' | 'dueAt'>;

/** From the note alone: whatever became of the job in BullMQ meanwhile. */
export function releaseOf(job: BullJob, note: string): Release {
  const [queue, id, dueAt] = JSON.parse(note) as [string, string, number | null];
  // JSON has no word for a time that is none. The job is here by now, and is not left to the year 2100.
  return { job, queue, id, dueAt: dueAt ?? 0 };
}

/** The same plan again for a job that was taken before. */
export function plannedAgain(job: BullJob, note: string): Plan | Reason {
  const { queue, id, dueAt } = releaseOf(job, note);
  const plan = planned(job, queue, id);
  return typeof plan === 'string' ? plan : { ...plan, dueAt, note };
}

function planned(job: BullJob, queue: string, id: string): Plan | Reason {
  const { data, opts, timestamp, delay, dueAt, attemptsMade } = job;
  try {
    const { attempts, backoff } = (JSON.parse(opts) ?? {}) as { attempts?: unknown; backoff?: unknown };
    const paced = backoffOf(backoff);
    // Checked here: a job whose due time is refused only when it is parked would hold up the import, and each one after it.
    const due = parseInstant(Math.max(0, dueAt ?? timestamp + delay), 'due');
    const payload: unknown = JSON.parse(data);
    if (losesDigits(data)) return 'digits';
    return {
      job,
      queue,
      id,
      payload,
      options: {
        attempts: attemptsLeft(attempts, attemptsMade),
        ...(paced && { backoff: paced }),
      },
      dueAt: due,
      note: JSON.stringify([queue, id, due]),
    };
  } catch {
    return 'unreadable';
  }
}

/** There a job has one attempt unless it says more. */
function attemptsLeft(attempts: unknown, made: number): number {
  const left = Math.floor(Number(attempts ?? 1) - made);
  return Number.isNaN(left) ? 1 : Math.min(1_000, Math.max(1, left));
}

/** Undefined for one of the application's own, and for one that is refused here: then that of the queue here counts. */
function backoffOf(value: unknown): Backoff | undefined {
  const { type, delay } = (typeof value === 'number' ? { type: 'fixed', delay: value } : (value ?? {})) as {
    type?: unknown;
    delay?: unknown;
  };
  if (typeof delay !== 'number' || !(delay > 0)) return undefined;
  try {
    return type === 'exponential' ? exponential(delay) : type === 'fixed' ? fixed(delay) : undefined;
  } catch {
    return undefined;
  }
}

function refuses(check: () => unknown): boolean {
  try {
    check();
    return false;
  } catch {
    return true;
  }
}
