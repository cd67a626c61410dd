import type { InstanceContext } from '../instance/instance-context.js';
import { queueNameOf } from '../job/queue-definition.js';
import type { QueueRef } from '../job/queue-definition.js';
import { readActOptions, readChoice, readTimes } from './bulk-options.js';
import type { ActDraft, BulkActOptions, BulkCancelOptions, Choice, JobChoice, NewTimes } from './bulk-options.js';
import type { BulkActPage, BulkCancelOutcome, BulkMoveOutcome, BulkRescheduleOutcome } from './bulk-results.js';
import type { BulkWalk } from './bulk-walk.js';
import type { MoveResult } from './job-mover.js';

/** @internal As `move()`, of jobs of one shard: groups in others may have jobs of the same ids. */
export type Move = (
  queue: QueueRef,
  ids: readonly string[],
  target: QueueRef,
  shard: number,
) => Promise<{ results: MoveResult[] }>;

/**
 * Changes many waiting jobs: up to 1,000 ids, or those due in a range, 1,000 in a call. Jobs in quarantine have no due
 * time, so no range has them. Each 200 jobs of a shard are changed at once and each job once, however often the call
 * reaches Redis; when it fails after some of them, it returns their results and a cursor, and the next call says why.
 * When the first jobs fail it throws what the single calls throw.
 *
 * All of them throw InvalidOptionError, InvalidDelayError, InvalidIdError and InvalidQueueError before anything is sent.
 */
export class BulkActs {
  /** @internal */
  constructor(
    private readonly shards: InstanceContext,
    private readonly mover: Move,
  ) {}

  /** As `producer.cancel()`. Of a range the jobs that are due first go first. */
  async cancel(
    queue: QueueRef,
    choice: JobChoice,
    options: BulkCancelOptions = {},
  ): Promise<BulkActPage<BulkCancelOutcome>> {
    const { walk, options: read } = await this.#begin('cancel', queue, choice, options);
    return walk.cancel(read.running);
  }

  /**
   * As `producer.reschedule()`, or later by a time that is the same for all: `{ by: '1h' }`. An error after which a job
   * may have been changed (`maybeAccepted`) is the one case in which a repeat with `by` could move it twice. Where others
   * of the call have results, the outcome of such a job is `'unknown'`, and the cursor is behind it.
   */
  async reschedule(
    queue: QueueRef,
    choice: JobChoice,
    to: NewTimes,
    options: BulkActOptions = {},
  ): Promise<BulkActPage<BulkRescheduleOutcome>> {
    const times = readTimes(to, (option) => `bulk.reschedule(queue, choice, { ${option} })`);
    const { walk } = await this.#begin('reschedule', queue, choice, options);
    return walk.reschedule(times);
  }

  /** As `producer.runNow()`: jobs that are due already keep their place. */
  async runNow(
    queue: QueueRef,
    choice: JobChoice,
    options: BulkActOptions = {},
  ): Promise<BulkActPage<BulkRescheduleOutcome>> {
    const { walk } = await this.#begin('runNow', queue, choice, options);
    return walk.runNow();
  }

  /**
   * As `move()`. A dry run does not ask the target, so it answers `'moved'` for each waiting job. A job of the range that
   * is rescheduled while the call runs may be moved all the same. Occurrences of schedules are not moved.
   */
  async move(
    queue: QueueRef,
    choice: JobChoice,
    target: QueueRef,
    options: BulkActOptions = {},
  ): Promise<BulkActPage<BulkMoveOutcome>> {
    queueNameOf(target, 'bulk.move(target)');
    const { walk } = await this.#begin('move', queue, choice, options);
    return walk.move((ids, shard) => this.mover(queue, ids, target, shard));
  }

  async #begin(
    act: string,
    ref: QueueRef,
    chosen: JobChoice,
    given: BulkActOptions,
  ): Promise<{ walk: BulkWalk; options: ActDraft }> {
    const queue = queueNameOf(ref, `bulk.${act}(queue)`);
    const choice: Choice = readChoice(chosen, (option) => `bulk.${act}(queue, { ${option} })`);
    const naming = (option: string) => `bulk.${act}(queue, ..., { ${option} })`;
    const options = readActOptions(given, choice, naming, act === 'cancel');
    // An application that never mends anything never loads this.
    const { BulkWalk } = await import('./bulk-walk.js');
    return { walk: new BulkWalk(this.shards, { queue, act, choice, options, field: naming('cursor') }), options };
  }
}
