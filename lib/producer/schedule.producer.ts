import { InvalidDelayError, InvalidOptionError } from '../delay-queue.errors.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { parseInstant } from '../job/duration.js';
import { boolean, readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import type { PayloadOf, QueueRef } from '../job/queue-definition.js';
import { ScheduleCalls } from '../recurring/schedule-calls.js';
import type { ScheduleResult } from '../recurring/schedule-calls.js';
import { listSchedules } from '../recurring/schedule-list.js';
import type { ScheduleListOptions, SchedulePage } from '../recurring/schedule-list.js';
import { assertOwnScheduleId, assertScheduleId } from '../recurring/schedule-options.js';
import type { ScheduleOptions, ScheduleTimes } from '../recurring/schedule-options.js';
import type { JobPlanner } from './job-planner.js';

export interface UnscheduleResult {
  id: string;
  queue: string;
  outcome: 'removed' | 'notFound';
  /** Occurrences that had not begun and went with it. */
  occurrences: number;
}

export interface SchedulePauseResult {
  id: string;
  queue: string;
  /** `'kept'`: it was so already. */
  outcome: 'paused' | 'resumed' | 'kept' | 'notFound';
  next: Date | undefined;
}

const UNSCHEDULE_RULES: OptionRules<{ running?: boolean }, { running: boolean }> = {
  running: (draft, value, field) => {
    draft.running = boolean(value, field);
  },
};

/** Recurring jobs: the part of the producer that makes, changes and lists schedules. */
export abstract class ScheduleProducer {
  readonly #calls: ScheduleCalls;
  readonly #context: InstanceContext;

  /** @internal */
  protected constructor(context: InstanceContext, planner: JobPlanner) {
    this.#context = context;
    this.#calls = new ScheduleCalls(context, planner);
  }

  /**
   * Makes a schedule, or changes the one with this id: then its occurrences that have not begun are made anew. An equal one
   * stays as it is. The first occurrences are stored when the promise resolves.
   *
   * @param id 1 to 200 printable characters without braces, not beginning with @
   * @param times `{ cron, timeZone }` or `{ every }`
   * @throws InvalidOptionError, InvalidDelayError, InvalidIdError and the payload errors of `enqueue()`, before anything is sent
   * @throws PublishingPausedError, RedisFullError, UnavailableError, ClosedError
   */
  async schedule<const Q extends QueueRef>(
    queue: Q,
    id: string,
    times: ScheduleTimes,
    payload: PayloadOf<Q>,
    options: ScheduleOptions = {},
  ): Promise<ScheduleResult> {
    const name = this.#context.nameOf(queue, 'schedule(queue)');
    assertOwnScheduleId(id, 'schedule(queue, id)');
    const naming = (option: string) => `schedule("${name}", { ${option} })`;
    const wanted = { queue, id, times, payload, options, owner: 'call', naming } as const;
    return this.#calls.put(name, id, await this.#calls.check(wanted));
  }

  /**
   * Removes a schedule and its occurrences that have not begun. A run goes on, unless `running` is set: then it is cancelled
   * as by `cancel(queue, id, { running: true })`.
   */
  async unschedule(queue: QueueRef, id: string, options: { running?: boolean } = {}): Promise<UnscheduleResult> {
    const name = this.#known(queue, id, 'unschedule');
    const naming = (option: string) => `unschedule("${name}", "${id}", { ${option} })`;
    const { running } = readOptions(options, UNSCHEDULE_RULES, { running: false }, naming);
    const removed = await this.#calls.remove(name, id, running);
    return { id, queue: name, outcome: removed === undefined ? 'notFound' : 'removed', occurrences: removed ?? 0 };
  }

  /** A page of schedules, those first that need more occurrences first. One may come twice when it moves on meanwhile. */
  async listSchedules<const Q extends QueueRef>(
    queue: Q,
    options: ScheduleListOptions = {},
  ): Promise<SchedulePage<PayloadOf<Q>>> {
    const name = this.#context.nameOf(queue, 'listSchedules(queue)');
    return (await listSchedules(this.#context, name, options)) as SchedulePage<PayloadOf<Q>>;
  }

  /** The schedule makes no more occurrences, and those that have not begun go. It stays paused when it is declared again. */
  async pauseSchedule(queue: QueueRef, id: string): Promise<SchedulePauseResult> {
    return this.#pause(queue, id, true);
  }

  /** The schedule goes on from now. What would have occurred meanwhile is not made up for. */
  async resumeSchedule(queue: QueueRef, id: string): Promise<SchedulePauseResult> {
    return this.#pause(queue, id, false);
  }

  /**
   * One more occurrence now, also of a paused schedule; `overlap` holds for it.
   *
   * @returns the id of its job; undefined when there is no such schedule
   */
  async triggerSchedule(queue: QueueRef, id: string): Promise<string | undefined> {
    return this.#calls.trigger(this.#known(queue, id, 'triggerSchedule'), id);
  }

  /**
   * Runs the schedule for a stretch of the past: an occurrence for each of its times in it, due now, at most 1,000. They may
   * run beside each other. One that is stored already stays. It is not atomic: the error of one that failed half-way says how many are
   * stored, and a repeat with the same `from` and `to` goes on behind them.
   *
   * @returns how many times the stretch has; undefined when there is no such schedule
   * @throws InvalidOptionError, InvalidDelayError
   */
  async backfillSchedule(
    queue: QueueRef,
    id: string,
    stretch: { from: Date | number; to: Date | number },
  ): Promise<number | undefined> {
    const name = this.#known(queue, id, 'backfillSchedule');
    const { from, to, ...others } = stretch ?? {};
    if (Object.keys(others).length > 0) {
      throw new InvalidOptionError('backfillSchedule(queue, id, { from, to }): there are no other options.');
    }
    const begin = parseInstant(from, 'backfillSchedule({ from })');
    const end = parseInstant(to, 'backfillSchedule({ to })');
    if (end < begin) throw new InvalidDelayError('backfillSchedule({ from, to }): `to` is before `from`.');
    return this.#calls.backfill(name, id, begin, end);
  }

  async #pause(queue: QueueRef, id: string, paused: boolean): Promise<SchedulePauseResult> {
    const name = this.#known(queue, id, paused ? 'pauseSchedule' : 'resumeSchedule');
    const done = await this.#calls.pause(name, id, paused);
    const outcome = !done ? 'notFound' : !done.changed ? 'kept' : paused ? 'paused' : 'resumed';
    return { id, queue: name, outcome, next: done?.next };
  }

  /** Also of a schedule that is declared in code. */
  #known(queue: QueueRef, id: string, call: string): string {
    assertScheduleId(id, `${call}(queue, id)`);
    return this.#context.nameOf(queue, `${call}(queue)`);
  }
}
