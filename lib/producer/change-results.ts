import type { ChangeReply } from '../redis/change.protocol.js';
import type { JobState } from '../redis/letters.js';

export interface ChangeResult<Outcome extends string> {
  id: string;
  queue: string;
  outcome: Outcome;
  /** State that the job was found in, before it was changed; undefined without one. */
  state: JobState | undefined;
}
export type CancelResult = ChangeResult<'cancelled' | 'running' | 'dead' | 'notFound'>;
export type RescheduleResult = ChangeResult<'rescheduled' | 'running' | 'dead' | 'notFound'> & {
  /** The new due time, when it was rescheduled. */
  dueAt?: Date;
};

export type UpdateResult = ChangeResult<'updated' | 'running' | 'dead' | 'notFound'> & {
  /** When the job is due, as before; when it was updated. */
  dueAt?: Date;
};

export type SignalResult = ChangeResult<'signalled' | 'running' | 'dead' | 'notFound'> & {
  /** When the job is due: now, or sooner if it was due already; when it was signalled. */
  dueAt?: Date;
};

/** Only a changed job has a new due time. */
export function changed<Outcome extends string>(
  queue: string,
  id: string,
  { outcome, state, dueAt }: ChangeReply<Outcome>,
): ChangeResult<Outcome | 'running' | 'dead' | 'notFound'> & { dueAt?: Date } {
  const result = { id, queue, outcome, state };
  return dueAt === undefined ? result : { ...result, dueAt: new Date(dueAt) };
}

/** No job has the id. */
export function isNotFound({ outcome }: { outcome: string }): boolean {
  return outcome === 'notFound';
}
