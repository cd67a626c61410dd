import { InvalidOptionError } from '../delay-queue.errors.js';
import { resolveEnqueueDefaults } from '../delay-queue.options.js';
import { parseDuration, parseInstant } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { integer, oneOf, readOptions } from '../job/enqueue-options.js';
import type { OptionRules } from '../job/enqueue-options.js';
import type { DeadReason } from '../job/error-record.js';
import { assertJobId } from '../job/job-id.js';
import { isQueueDefinition, queueNameOf } from '../job/queue-definition.js';
import type { QueueRef } from '../job/queue-definition.js';
import { queueNamesKey } from '../redis/keys.js';
import { parseSnapshot } from '../redis/job-snapshot.js';
import type { JobSnapshot } from '../redis/job-snapshot.js';
import { typedError } from '../redis/redis.errors.js';
import type { ProducerShards } from '../producer/producer-shards.js';
import { JobMover } from './job-mover.js';
import type { MoveResult } from './job-mover.js';

export interface QueueCounts {
  delayed: number;
  due: number;
  running: number;
  dead: number;
  /** Completed jobs that `keepCompleted` keeps; those that were ever completed are counted by `totals()`. */
  completed: number;
  paused: boolean;
  /** Every enqueue is refused, see `pausePublishing()`. */
  publishingPaused: boolean;
  /** Age of the oldest due job that nobody has claimed, ms; 0 without one. */
  lagMs: number;
  nextDueAt: Date | undefined;
}

export interface QueueTotals {
  enqueued: number;
  completed: number;
  /** Runs that ended in failure or timeout. */
  failed: number;
  retried: number;
  dead: number;
  expired: number;
  /** When counting began: the first job of the queue. */
  since: Date | undefined;
}

export type ListedState = 'delayed' | 'due' | 'running' | 'dead' | 'completed';

export interface ListOptions {
  /** Earliest due time; of dead letters time of death, of completed jobs that of their completion. */
  from?: Date | number;
  to?: Date | number;
  /** Jobs per page: 1 to 200. Default 50. */
  limit?: number;
  /** What the page before gave. */
  cursor?: string;
}

export interface RequeueOptions {
  /** Due that much later. Default: now. */
  delay?: Duration;
  /** Gives them all their attempts again. Default true; otherwise they get one more run. */
  resetAttempts?: boolean;
  /** Most to requeue. Default: all. */
  limit?: number;
  /** Only those that died before. */
  before?: Date | number;
  reason?: DeadReason;
  /** Spreads them evenly over this time, so that they do not all run at once. */
  spread?: Duration;
}

const LETTERS: Record<ListedState, string> = { delayed: 'l', due: 'd', running: 'r', dead: 'x', completed: 'c' };
const CHUNK = 200;
const REASONS = ['exhausted', 'discarded', 'leaseLost', 'undecodable', 'invalid', 'expired'] as const;

/** Looks into queues, and mends them. Nothing in it is needed for jobs to run. */
export class DelayQueueInspector {
  /** @internal */
  constructor(private readonly shards: ProducerShards) {}

  async counts(queue: QueueRef): Promise<QueueCounts> {
    const numbers = await this.#numbers(queue);
    const [now, delayed, due, running, dead, , paused, oldest, next] = numbers;
    return {
      delayed: delayed!,
      due: due!,
      running: running!,
      dead: dead!,
      completed: numbers[19]!,
      paused: paused === 1,
      publishingPaused: numbers[18] === 1,
      lagMs: oldest! < 0 ? 0 : now! - oldest!,
      nextDueAt: oldest! >= 0 ? new Date(oldest!) : next! >= 0 ? new Date(next!) : undefined,
    };
  }

  /** Counters since the first job; they survive restarts as the jobs do. */
  async totals(queue: QueueRef): Promise<QueueTotals> {
    const [enqueued, completed, failed, retried, dead, expired, since] = (await this.#numbers(queue)).slice(10, 17);
    return {
      enqueued: enqueued!,
      completed: completed!,
      failed: failed!,
      retried: retried!,
      dead: dead!,
      expired: expired!,
      since: since! > 0 ? new Date(since!) : undefined,
    };
  }

  /** Names of all queues that a producer or a worker ever used under this prefix. */
  async queues(): Promise<string[]> {
    const { connection, options } = this.shards;
    try {
      await connection.whenReady();
      const names = await connection.send(() => connection.commands.smembers(queueNamesKey(options.prefix)));
      return names.sort();
    } catch (error) {
      throw typedError(error, 'queues()');
    }
  }

  /** One page of the jobs in one state: by due time; running ones by claim, dead and completed ones by when that was. */
  async list(
    queue: QueueRef,
    state: ListedState,
    options: ListOptions = {},
  ): Promise<{ jobs: JobSnapshot[]; cursor?: string }> {
    const name = queueNameOf(queue);
    oneOf(state, ['delayed', 'due', 'running', 'dead', 'completed'], 'list(queue, state)');
    const { from, to, limit, cursor } = readOptions(
      options,
      LIST_RULES,
      { limit: 50 } as ListDraft,
      (option) => `list({ ${option} })`,
    );
    if (state === 'running' && (from !== undefined || to !== undefined)) {
      throw new InvalidOptionError(
        "list('running', { from, to }): running jobs are listed by claim and have no range.",
      );
    }
    const [score, skip] = cursor ?? ['-', 0];
    const args = [LETTERS[state], from ?? '-', to ?? '-', score, skip, limit];
    const raw = (await this.#call(name, 'list', args)) as string[];
    const jobs: JobSnapshot[] = [];
    for (let i = 0; i < raw.length; i += 5) {
      const [id, ...fields] = raw.slice(i, i + 5) as [string, ...string[]];
      jobs.push(
        parseSnapshot(id, name, [LETTERS[state], ...fields], this.shards.attemptsOf(name), this.shards.payloads),
      );
    }
    if (jobs.length < limit) return { jobs };
    const scores = raw.filter((_, index) => index % 5 === 1);
    const last = scores.at(-1)!;
    let same = scores.filter((other) => other === last).length;
    if (last === score) same += skip;
    return { jobs, cursor: `${last}:${same}` };
  }

  /**
   * Makes dead letters due again, the oldest first, in bounded chunks.
   *
   * @returns how many, and how many dead letters remain
   */
  async requeueDead(
    queue: QueueRef,
    ids: readonly string[] | 'all',
    options: RequeueOptions = {},
  ): Promise<{ requeued: number; remaining: number }> {
    const name = queueNameOf(queue);
    const chosen = chosenIds(ids, 'requeueDead');
    const rules = readOptions(
      options,
      REQUEUE_RULES,
      { ...REQUEUE_DEFAULTS },
      (option) => `requeueDead({ ${option} })`,
    );
    const { delay, resetAttempts, limit, before, reason, spread } = rules;
    let remaining = (await this.#numbers(name))[4]!;
    const total = Math.min(limit, chosen?.length ?? remaining);
    let requeued = 0;
    let skipped = 0;
    for (let at = 0; requeued < total;) {
      const chunk = chosen?.slice(at, at + Math.min(CHUNK, total - requeued)) ?? [];
      if (chosen && chunk.length === 0) break;
      at += chunk.length;
      const most = Math.min(CHUNK, total - requeued);
      const args = [delay, resetAttempts ? 1 : 0, spread, before, reason, skipped, requeued, total, most, ...chunk];
      const answer = await this.shards.of(name).run('requeueDead', chunk[0] ?? 'all', args);
      const [moved, looked, left] = answer.split(' ').map(Number) as [number, number, number];
      requeued += moved;
      skipped += looked - moved;
      remaining = left;
      if (!chosen && looked === 0) break;
    }
    return { requeued, remaining };
  }

  /** Removes dead letters for good. */
  async removeDead(
    queue: QueueRef,
    ids: readonly string[] | 'all',
    options: { limit?: number } = {},
  ): Promise<{ removed: number; remaining: number }> {
    const chosen = chosenIds(ids, 'removeDead');
    const rules: OptionRules<{ limit?: number }, { limit: number }> = {
      limit: (draft, value, field) => {
        draft.limit = integer(value, 1, Number.MAX_SAFE_INTEGER, field);
      },
    };
    const { limit } = readOptions(options, rules, { limit: Infinity }, (option) => `removeDead({ ${option} })`);
    return this.#remove(queueNameOf(queue), 'x', chosen, limit);
  }

  /** Stops the claiming of this queue by every process, until `resume()`. Running handlers are not stopped. */
  async pause(queue: QueueRef): Promise<void> {
    await this.#call(queueNameOf(queue), 'pause', ['1']);
  }

  async resume(queue: QueueRef): Promise<void> {
    await this.#call(queueNameOf(queue), 'pause', ['0']);
  }

  /**
   * Refuses every enqueue to this queue, by every process, until `resumePublishing()`: `PublishingPausedError`. Jobs that
   * are stored go on, retries and replacements of running ones included; cancel, reschedule and runNow work.
   */
  async pausePublishing(queue: QueueRef): Promise<void> {
    await this.#call(queueNameOf(queue), 'pausePublishing', ['1']);
  }

  async resumePublishing(queue: QueueRef): Promise<void> {
    await this.#call(queueNameOf(queue), 'pausePublishing', ['0']);
  }

  /**
   * Removes waiting and dead jobs, or what is kept of completed ones, in bounded steps. Running ones are left alone, and so
   * is what comes in meanwhile.
   *
   * @param options states: which ones; default waiting and dead
   */
  async purge(
    queue: QueueRef,
    options: { states?: readonly ('waiting' | 'dead' | 'completed')[] } = {},
  ): Promise<{ removed: number }> {
    const name = queueNameOf(queue);
    const rules: OptionRules<typeof options, { states: readonly string[] }> = {
      states: (draft, value, field) => {
        if (!Array.isArray(value))
          throw new InvalidOptionError(`${field}: must be an array of 'waiting', 'dead' and 'completed'.`);
        draft.states = value.map((state) => oneOf(state, ['waiting', 'dead', 'completed'], field));
      },
    };
    const { states } = readOptions(options, rules, { states: ['waiting', 'dead'] }, (option) => `purge({ ${option} })`);
    let removed = 0;
    const numbers = await this.#numbers(name);
    const [, delayed, due, , dead] = numbers;
    if (states.includes('waiting')) removed += (await this.#remove(name, 'w', undefined, delayed! + due!)).removed;
    if (states.includes('dead')) removed += (await this.#remove(name, 'x', undefined, dead!)).removed;
    if (states.includes('completed')) removed += (await this.#remove(name, 'c', undefined, numbers[19]!)).removed;
    return { removed };
  }

  /**
   * Moves waiting jobs (delayed or due) to another queue, where they keep id, due time, expiry, payload, options, context and
   * time of enqueue, and have all their attempts. The payload is not run through the schema of the target: its handler
   * does that. Also while either queue is paused.
   *
   * Safe to be cut anywhere: until its queue has let go of it a job is held under a lease (state `running`); when that
   * ends, at most five times `commandTimeout` or 30 s later, it is there again, uncharged. If the target has it by then as
   * well, both run. Called again with the same ids it goes on.
   *
   * @returns what became of each id, once each, in their order
   * @throws InvalidOptionError, InvalidIdError, InvalidQueueError before anything is sent
   * @throws QueueFullError, PublishingPausedError, RedisFullError of the target; the jobs are back where they were, those
   *   that fitted have been moved
   * @throws UnavailableError; jobs of which it is not known whether the target has them stay held until their lease ends
   */
  async move(queue: QueueRef, ids: readonly string[], target: QueueRef): Promise<{ results: MoveResult[] }> {
    const from = queueNameOf(queue, 'move(queue)');
    const to = this.shards.nameOf(target, 'move(target)');
    if (from === to) throw new InvalidOptionError(`move("${from}", ids, target): the target is the queue itself.`);
    if (!Array.isArray(ids)) throw new InvalidOptionError('move(queue, ids, target): give an array of ids.');
    const chosen = ids.map((id) => assertJobId(id, 'move(queue, ids)'));
    const definition = isQueueDefinition(target) ? target : this.shards.definitionOf(to);
    const { maxSize } = resolveEnqueueDefaults({ queue: to, definition, module: this.shards.options });
    return { results: await new JobMover(this.shards, from, to, maxSize).move(chosen) };
  }

  async #remove(queue: string, state: 'w' | 'x' | 'c', ids: readonly string[] | undefined, limit: number) {
    let removed = 0;
    let remaining = 0;
    for (let at = 0; ;) {
      const most = Math.min(CHUNK, limit - removed);
      const chunk = ids?.slice(at, at + most) ?? [];
      if (most <= 0 || (ids && chunk.length === 0)) break;
      at += chunk.length;
      const answer = await this.shards.of(queue).run('remove', chunk[0] ?? 'all', [state, most, -1, ...chunk]);
      const [gone, left] = answer.split(' ').map(Number) as [number, number];
      removed += gone;
      remaining = left;
      if (!ids && gone === 0) break;
    }
    return { removed, remaining };
  }

  async #numbers(queue: QueueRef): Promise<number[]> {
    return (await this.#call(queueNameOf(queue), 'counts', [])) as number[];
  }

  async #call(
    queue: string,
    script: 'counts' | 'list' | 'pause' | 'pausePublishing',
    args: (string | number)[],
  ): Promise<unknown> {
    try {
      return await this.shards.store(queue).call(script, args);
    } catch (error) {
      throw typedError(error, `${script} of queue "${queue}"`);
    }
  }
}

function chosenIds(ids: readonly string[] | 'all', method: string): readonly string[] | undefined {
  if (ids === 'all') return undefined;
  if (!Array.isArray(ids)) throw new InvalidOptionError(`${method}(queue, ids): give an array of ids, or 'all'.`);
  return ids.map((id) => assertJobId(id, `${method}(queue, ids)`));
}

interface ListDraft {
  from?: number;
  to?: number;
  limit: number;
  cursor?: [score: string, skip: number];
}

const LIST_RULES: OptionRules<ListOptions, ListDraft> = {
  from: (draft, value, field) => {
    draft.from = parseInstant(value, field);
  },
  to: (draft, value, field) => {
    draft.to = parseInstant(value, field);
  },
  limit: (draft, value, field) => {
    draft.limit = integer(value, 1, CHUNK, field);
  },
  cursor: (draft, value, field) => {
    const parts = /^(-?[\d.e+]+|-?inf):(\d{1,9})$/.exec(String(value));
    if (!parts) throw new InvalidOptionError(`${field}: is not what list() gave as cursor.`);
    draft.cursor = [parts[1]!, Number(parts[2])];
  },
};

const REQUEUE_DEFAULTS = { delay: 0, resetAttempts: true, limit: Infinity, before: -1, reason: '', spread: 0 };

const REQUEUE_RULES: OptionRules<RequeueOptions, typeof REQUEUE_DEFAULTS> = {
  delay: (draft, value, field) => {
    draft.delay = parseDuration(value, field);
  },
  resetAttempts: (draft, value, field) => {
    if (typeof value !== 'boolean') throw new InvalidOptionError(`${field}: must be true or false.`);
    draft.resetAttempts = value;
  },
  limit: (draft, value, field) => {
    draft.limit = integer(value, 1, Number.MAX_SAFE_INTEGER, field);
  },
  before: (draft, value, field) => {
    draft.before = parseInstant(value, field);
  },
  reason: (draft, value, field) => {
    draft.reason = oneOf(value, REASONS, field);
  },
  spread: (draft, value, field) => {
    draft.spread = parseDuration(value, field);
  },
};
