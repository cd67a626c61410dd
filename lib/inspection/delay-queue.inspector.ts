import { REQUEUE_DEFAULTS } from '../defaults.js';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { resolveEnqueueDefaults } from '../delay-queue.options.js';
import { readOptions } from '../job/option-rules.js';
import { assertJobId } from '../job/job-id.js';
import { isQueueDefinition, queueNameOf } from '../job/queue-definition.js';
import type { QueueRef } from '../job/queue-definition.js';
import { queueNamesKey } from '../redis/keys.js';
import type { JobState } from '../redis/letters.js';
import { parseSnapshot } from '../redis/job-snapshot.js';
import type { JobSnapshot } from '../redis/job-snapshot.js';
import { typedError } from '../redis/redis.errors.js';
import type { ScheduleListOptions, SchedulePage } from '../recurring/schedule-list.js';
import type { ReshardResult } from '../shards/resharding.js';
import { madeByRoot } from '../instance/made-by-root.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { onlyGroup } from '../instance/job-shards.js';
import type { GroupOption } from '../instance/job-shards.js';
import { BulkActs } from './bulk-acts.js';
import {
  chosenIds,
  CHUNK,
  PURGE_RULES,
  REMOVE_DEAD_RULES,
  REMOVE_RULES,
  REQUEUE_RULES,
  RESHARD_RULES,
} from './inspector-options.js';
import type {
  ListOptions,
  PurgeOptions,
  RemoveDeadOptions,
  RequeueDraft,
  RequeueOptions,
  ReshardDraft,
  ReshardOptions,
} from './inspector-options.js';
import type { QueueLimits } from '../job/queue-limits.js';
import type { MovedFrom, MoveResult } from './job-mover.js';
import { readJobPage } from './job-pages.js';
import { LimitCalls } from './limit-calls.js';
import type { GroupsOptions, QueueGroup, StoredLimits } from './limit-calls.js';
import { sum, sumCounts, sumTotals } from './queue-counts.js';
import type { QueueCounts, QueueTotals } from './queue-counts.js';
import { PURGED_STATES, ShardCalls } from './shard-calls.js';
import { readTimeline } from './timeline.js';
import type { Timeline, TimelineOptions } from './timeline.js';

export type ListedState = JobState;

/** Reads queues and repairs them. Jobs run without it. */
export class DelayQueueInspector {
  /** Cancels, reschedules, runs now or moves many jobs: by their ids, or those that are due in a range. */
  readonly bulk: BulkActs;
  readonly #calls: ShardCalls;

  /** @internal */
  constructor(private readonly shards: InstanceContext) {
    this.#calls = new ShardCalls(madeByRoot(shards, 'DelayQueueInspector'));
    this.bulk = new BulkActs(shards, (queue, ids, target, shard) => this.#move(queue, ids, target, { shard }));
  }

  /** For a queue with shards the sum over its shards. The queue counts as paused if one shard is. */
  async counts(queue: QueueRef): Promise<QueueCounts> {
    return sumCounts(await this.#calls.counts(queueNameOf(queue)));
  }

  /** Counters since the first job. They survive a restart if the jobs do. */
  async totals(queue: QueueRef): Promise<QueueTotals> {
    return sumTotals((await this.#calls.counts(queueNameOf(queue), 'totals')).map(({ totals }) => totals));
  }

  /** A page of schedules, those first that need more occurrences first. One may come twice when it moves on meanwhile. */
  async listSchedules(queue: QueueRef, options: ScheduleListOptions = {}): Promise<SchedulePage> {
    const { listSchedules } = await import('../recurring/schedule-list.js');
    return listSchedules(this.shards, queueNameOf(queue, 'listSchedules(queue)'), options);
  }

  /**
   * How many jobs fall due when, counted in at most 120 buckets; retries and snoozed jobs count like all others.
   *
   * @throws InvalidOptionError, InvalidDelayError
   */
  async timeline(queue: QueueRef, options: TimelineOptions = {}): Promise<Timeline> {
    return readTimeline(this.shards, queueNameOf(queue), options);
  }

  /** Names of all queues that a producer or a worker ever used under this prefix. */
  async queues(): Promise<string[]> {
    const { connection, options } = this.shards;
    try {
      await connection.whenReady();
      const key = queueNamesKey(options.prefix);
      const names = await connection.send(() => connection.commands.smembers(key), key);
      return names.sort();
    } catch (error) {
      throw typedError(error, 'queues()');
    }
  }

  /**
   * One page of the jobs in one state, ordered by due time; running jobs by claim, dead and completed jobs by the time
   * of their end. A job that keeps its place is listed exactly once, whatever happens to others between two pages. A
   * job that moves meanwhile (rescheduled, extended, dead again) may be listed twice or missed. A page ends at `limit`
   * jobs or at about 1 MiB of stored text, and has at least one job. The last page has no cursor.
   */
  async list(
    queue: QueueRef,
    state: ListedState,
    options: ListOptions = {},
  ): Promise<{ jobs: JobSnapshot[]; cursor?: string }> {
    const name = queueNameOf(queue);
    const page = await readJobPage(this.shards, this.#calls, name, state, options);
    const maxAttempts = this.shards.attemptsOf(queue);
    const jobs = page.jobs.map(([id, ...raw]) => parseSnapshot(id, name, raw, maxAttempts, this.shards.payloads));
    return page.cursor === undefined ? { jobs } : { jobs, cursor: page.cursor };
  }

  /**
   * Makes dead letters due again, the oldest first, in bounded chunks.
   *
   * @returns how many were requeued, and how many dead letters remain
   */
  async requeueDead(
    queue: QueueRef,
    ids: readonly string[] | 'all',
    options: RequeueOptions = {},
  ): Promise<{ requeued: number; remaining: number }> {
    const name = queueNameOf(queue);
    const rules = readOptions(
      options,
      REQUEUE_RULES,
      { ...REQUEUE_DEFAULTS } as RequeueDraft,
      (option) => `requeueDead({ ${option} })`,
    );
    const { delay, resetAttempts, limit, before, reason, spread, group } = rules;
    const chosen = chosenIds(ids, 'requeueDead', rules);
    const remaining = (await this.#calls.counts(name, 'requeueDead')).map(({ dead }) => dead);
    const total = Math.min(limit, chosen?.length ?? sum(remaining));
    let requeued = 0;
    for (const [shard, ids] of await this.#calls.byShard('requeueDead', name, chosen, group)) {
      let behind = '';
      for (let at = 0; requeued < total;) {
        const most = Math.min(CHUNK, total - requeued);
        const chunk = ids?.slice(at, at + most) ?? [];
        if (ids && chunk.length === 0) break;
        at += chunk.length;
        const args = [delay, resetAttempts ? 1 : 0, spread, before, reason, behind, requeued, total, most, ...chunk];
        const answer = await this.shards.ofShard(name, shard).run('requeueDead', chunk[0] ?? 'all', args);
        const [, moved, , left, last = ''] = /^(\d+) (\d+) (\d+)(?: ([^]+))?$/.exec(answer)!;
        requeued += Number(moved);
        behind = last;
        remaining[shard] = Number(left);
        if (!ids && last === '') break;
      }
    }
    return { requeued, remaining: sum(remaining) };
  }

  /** Removes dead letters for good. */
  async removeDead(
    queue: QueueRef,
    ids: readonly string[] | 'all',
    options: RemoveDeadOptions = {},
  ): Promise<{ removed: number; remaining: number }> {
    const rules = readOptions(
      options,
      REMOVE_DEAD_RULES,
      { limit: Infinity } as { limit: number; group?: string },
      (option) => `removeDead({ ${option} })`,
    );
    const chosen = chosenIds(ids, 'removeDead', rules);
    const name = queueNameOf(queue);
    const remaining = (await this.#calls.counts(name, 'removeDead')).map(({ dead }) => dead);
    const shards = await this.#calls.byShard('removeDead', name, chosen, rules.group);
    for (const id of chosen ?? []) this.shards.forgetDoubts(name, id);
    // No more than there were, or a queue whose jobs go on dying would keep the call for ever.
    const most = chosen ? rules.limit : Math.min(rules.limit, sum(remaining));
    const { removed, left } = await this.#calls.remove(name, 'x', shards, most);
    for (const [shard, count] of left) remaining[shard] = count;
    return { removed, remaining: sum(remaining) };
  }

  /** No process claims jobs of this queue until `resume()`. Running handlers go on. */
  async pause(queue: QueueRef): Promise<void> {
    await this.#calls.set(queueNameOf(queue), 'pause', '1');
  }

  async resume(queue: QueueRef): Promise<void> {
    await this.#calls.set(queueNameOf(queue), 'pause', '0', 'resume');
  }

  /**
   * Every enqueue to this queue, from every process, fails with `PublishingPausedError` until `resumePublishing()`.
   * Stored jobs go on, with their retries and replacements; cancel, reschedule and runNow work.
   */
  async pausePublishing(queue: QueueRef): Promise<void> {
    await this.#calls.set(queueNameOf(queue), 'pausePublishing', '1');
  }

  async resumePublishing(queue: QueueRef): Promise<void> {
    await this.#calls.set(queueNameOf(queue), 'pausePublishing', '0', 'resumePublishing');
  }

  /**
   * Removes waiting and dead jobs, or kept completed ones, in bounded steps: as many as there were. Running jobs stay. A job that is
   * enqueued meanwhile may go instead of one that is due later. Occurrences that a schedule has made ahead stay, too: it goes on at its next time.
   *
   * @param options states: which ones; default waiting and dead
   */
  async purge(queue: QueueRef, options: PurgeOptions = {}): Promise<{ removed: number }> {
    const name = queueNameOf(queue);
    const { states } = readOptions(
      options,
      PURGE_RULES,
      { states: ['waiting', 'dead'] },
      (option) => `purge({ ${option} })`,
    );
    let removed = 0;
    const shards = await this.#calls.counts(name, 'purge');
    if (states.includes('waiting')) this.shards.forgetDoubts(name);
    for (const [shard, { delayed, due, dead, completed }] of shards.entries()) {
      const most = { waiting: delayed + due, dead, completed };
      for (const state of PURGED_STATES) {
        if (states.includes(state)) removed += await this.#calls.purge(name, state, [shard], most[state]);
      }
    }
    return { removed };
  }

  /**
   * Moves waiting jobs (delayed or due) to another queue. There they keep id, due time, expiry, payload, options,
   * context and time of enqueue, and have all their attempts. The schema of the target checks the payload only before
   * its handler. Works while either queue is paused.
   *
   * The call may be interrupted anywhere: while it moves, a job is held under a lease (state `running`). If the lease
   * ends, after ten times `commandTimeout` but at least 30 s, the job is back in its queue and no attempt is used. If
   * the target has it by then as well, it runs in both. Called again with the same ids, it continues.
   *
   * @param options `group`: the one in which all these jobs are
   * @returns one result for each id, in the order of `ids`; an id that is given twice has one
   * @throws InvalidOptionError, InvalidIdError, InvalidQueueError before anything is sent
   * @throws QueueFullError, PublishingPausedError, RedisFullError of the target; jobs that fitted have been moved, the
   *   others are back in their queue
   * @throws UnavailableError; if it is unknown whether the target has a job, the job stays held until its lease ends. Also when no replica
   *   of another node of a Cluster had the job in time: then it is back in its queue. Where the target came to that node only meanwhile
   *   (`maybeAccepted`), it may be in both
   */
  async move(
    queue: QueueRef,
    ids: readonly string[],
    target: QueueRef,
    options?: GroupOption,
  ): Promise<{ results: MoveResult[] }> {
    return this.#move(queue, ids, target, { group: onlyGroup(options, 'move(queue, ids, target, options)') });
  }

  async #move(
    queue: QueueRef,
    ids: readonly string[],
    target: QueueRef,
    where: MovedFrom,
  ): Promise<{ results: MoveResult[] }> {
    const from = queueNameOf(queue, 'move(queue)');
    const to = this.shards.nameOf(target, 'move(target)');
    if (from === to) throw new InvalidOptionError(`move("${from}", ids, target): the target is the queue itself.`);
    if (!Array.isArray(ids)) throw new InvalidOptionError('move(queue, ids, target): give an array of ids.');
    const chosen = ids.map((id) => assertJobId(id, 'move(queue, ids)'));
    const definition = isQueueDefinition(target) ? target : this.shards.definitionOf(to);
    const { maxSize } = resolveEnqueueDefaults({ queue: to, definition, module: this.shards.options });
    const { JobMover } = await import('./job-mover.js');
    return { results: await new JobMover(this.shards, from, to, maxSize).move(chosen, where) };
  }

  /**
   * Sets all limits of a queue, for all processes, from their next step on; what runs is not stopped. What applications say at boot does
   * not change them until `setLimits(queue, 'config')`, which puts at once those in their place that the application with limits said which
   * booted last: if it said none, there are no limits.
   *
   * @param limits undefined: no limits
   */
  async setLimits(queue: QueueRef, limits: QueueLimits | 'config' | undefined): Promise<void> {
    await new LimitCalls(this.shards, queueNameOf(queue)).set(limits);
  }

  /** The limits that hold; durations are ms. */
  async limits(queue: QueueRef): Promise<StoredLimits> {
    return new LimitCalls(this.shards, queueNameOf(queue)).read();
  }

  /**
   * One page of the groups that have jobs. Those that have a turn between two pages may be missed or come twice. A page may be short, or
   * empty, and have a cursor all the same.
   */
  async groups(queue: QueueRef, options: GroupsOptions = {}): Promise<{ groups: QueueGroup[]; cursor?: string }> {
    return new LimitCalls(this.shards, queueNameOf(queue)).groups(options);
  }

  /**
   * Changes the number of shards of a queue, without losing or doubling a job. The queue is shut meanwhile: running
   * jobs may end, no job starts, `enqueue()` fails with a retryable error. Afterwards processes with another number are
   * refused. If the call fails or is killed, call it again: it continues where it stopped.
   *
   * @param options to: 1 to 256. from: refuses when the queue has another number. wait: how long running jobs may take
   *   to end; default `'1m'`
   * @returns the numbers, and how many jobs changed their shard
   * @throws ShardCountError, retryable, when jobs still run after `wait`: then nothing has changed
   */
  async reshard(queue: QueueRef, options: ReshardOptions): Promise<ReshardResult> {
    const name = queueNameOf(queue);
    const naming = (option: string) => `reshard("${name}", { ${option} })`;
    const { to, from, waitMs } = readOptions(options, RESHARD_RULES, { waitMs: 60_000 } as ReshardDraft, naming);
    if (to === undefined) throw new InvalidOptionError(`${naming('to')}: is missing.`);
    const { connection, options: module } = this.shards;
    const { Resharding } = await import('../shards/resharding.js');
    const { Handover } = await import('../producer/handover.js');
    const handover = new Handover(connection, this.shards.durable, module);
    try {
      return await new Resharding(connection, module.prefix, name, handover).run({ from, to, waitMs });
    } catch (error) {
      throw typedError(error, `reshard("${name}")`);
    }
  }

  /**
   * Deletes a whole queue: all its shards, kept completed jobs, uniqueness windows, counters, a pause, and its name in
   * `queues()`. Processes that use the queue make it anew: a worker that waits for its jobs at once, a producer with
   * its next enqueue. Stop those processes first to be rid of the queue.
   *
   * @param options force: deletes the queue with the jobs that it holds. Running handlers are not stopped: their
   *   signals abort and their outcomes no longer count, as after a lost lease
   * @returns how many jobs were deleted
   * @throws QueueNotEmptyError without `force` when jobs wait, run or are dead; nothing was deleted
   */
  async remove(queue: QueueRef, options: { force?: boolean } = {}): Promise<{ removed: number }> {
    const name = queueNameOf(queue, 'remove(queue)');
    const { force } = readOptions(options, REMOVE_RULES, { force: false }, (option) => `remove({ ${option} })`);
    const { QueueRemover } = await import('./queue-remover.js');
    try {
      return { removed: await new QueueRemover(this.shards, name).run(force) };
    } catch (error) {
      throw typedError(error, `remove("${name}")`);
    }
  }
}
