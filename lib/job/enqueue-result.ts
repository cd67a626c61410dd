import type { JobState } from '../redis/letters.js';

/** What `enqueue()` did. */
export interface EnqueueResult {
  id: string;
  queue: string;
  /** When the job may start, by the server's clock. */
  dueAt: Date;
  outcome: 'created' | 'kept' | 'replaced' | 'rescheduled';
  /** State of the job that was found under the id; of a new one, its own. */
  state: JobState;
  /** What `durability` reached, at least what was asked for; absent when nothing was. */
  durability?: { readonly replicas: number } | { readonly fsync: true };
}
