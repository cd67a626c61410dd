import type { DelayQueueLogger } from '../delay-queue.logger.js';
import type { HandlerOptions } from '../handlers/handler.js';
import type { InstanceContext } from '../instance/instance-context.js';
import type { QueueRef } from '../job/queue-definition.js';
import { unknownOption } from '../job/option-rules.js';
import { isQueueDefinition } from '../job/queue-definition.js';
import { JobPlanner } from '../producer/job-planner.js';
import type { RestWatch } from '../redis/rest-watch.js';
import { ScheduleCalls } from './schedule-calls.js';
import { CODE_SCHEDULE, REPEAT_OPTIONS, resolveSchedule } from './schedule-options.js';
import { decodeRecord } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';
import { findSchedule } from './schedule-search.js';
import { settleMoves } from './schedule-settling.js';
import { Ticker } from './ticker.js';

/** A handler, as far as its schedule is concerned. */
export interface RepeatingHandler {
  readonly queue: string;
  readonly name: string;
  readonly options: HandlerOptions;
  readonly definition: unknown;
}

/** The tickers of one process: one for each queue that it works on. */
export class Tickers {
  readonly all = new Map<string, Ticker>();
  readonly #calls: ScheduleCalls;
  /** Those that say what schedule in code their queue has, and what they say. */
  readonly #declaring = new Map<Ticker, () => Promise<void>>();
  /** The last one of a queue that was stopped, until nothing of it is on its way. */
  readonly #stopping = new Map<string, Promise<void>>();

  constructor(
    private readonly context: InstanceContext,
    private readonly logger: DelayQueueLogger,
    private readonly watch: RestWatch,
  ) {
    this.#calls = new ScheduleCalls(context, new JobPlanner(context.options, context));
  }

  /** @throws InvalidOptionError, InvalidDelayError and the payload errors, when the handler declares a schedule that cannot be */
  async check(handler: RepeatingHandler): Promise<void> {
    if (handler.options.repeat) await this.#recordOf(handler);
  }

  /**
   * What can be told at once, and without an answer of Redis: the expression, the zone and the payload are checked when it is declared.
   *
   * @throws InvalidOptionError, InvalidDelayError
   */
  refuse(handler: RepeatingHandler): void {
    if (!handler.options.repeat) return;
    const { times, options, naming } = repeatOf(handler);
    resolveSchedule(times, options, naming);
  }

  /**
   * @param declares the queue's schedule in code is what this handler says of it; who pulls a queue says nothing
   * @param madeAnew called when what was stored of the queue was lost
   */
  start(handler: RepeatingHandler, declares: boolean, madeAnew: () => void): void {
    const { queue, options } = handler;
    const running = this.all.get(queue);
    if (running && (!declares || this.#declaring.has(running))) return;
    if (running) this.stop(queue);
    const before = this.#stopping.get(queue);
    const begin = declares ? () => this.#declare(handler, before) : undefined;
    const isUrgent = options.repeat !== undefined;
    const { context, logger, watch } = this;
    const settle = (id: string) => settleMoves(context, 'schedule', queue, id);
    const ticker = new Ticker(queue, context.stores(queue), logger, watch, begin, isUrgent, madeAnew, settle);
    if (begin) this.#declaring.set(ticker, begin);
    this.all.set(queue, ticker);
    ticker.start();
  }

  stop(queue: string): void {
    const ticker = this.all.get(queue);
    if (!ticker) return;
    const stopping = Promise.all([ticker.stop(), this.#stopping.get(queue)]).then(() => {
      if (this.#stopping.get(queue) === stopping) this.#stopping.delete(queue);
    });
    this.#stopping.set(queue, stopping);
    this.#declaring.delete(ticker);
    this.all.delete(queue);
  }

  /**
   * As if the schedules that handlers declare were declared now for the first time: the test kit has set the clock. One that was
   * paused, triggered or backfilled since stays as it is, because that would be lost.
   */
  async declareAnew(): Promise<void> {
    for (const [queue, ticker] of this.all) {
      const declare = this.#declaring.get(ticker);
      if (!declare || !(await this.#isUntouched(queue))) continue;
      await this.#calls.remove(queue, CODE_SCHEDULE, false);
      await declare();
    }
  }

  async #isUntouched(queue: string): Promise<boolean> {
    const { stored } = await findSchedule(this.context, 'schedule', queue, CODE_SCHEDULE);
    const state = stored && decodeRecord(stored.text)?.state;
    return state?.paused === false && state.triggered === undefined && state.backfills === undefined;
  }

  async stopAll(): Promise<void> {
    await Promise.all([...Array.from(this.all.values(), (ticker) => ticker.stop()), ...this.#stopping.values()]);
  }

  /**
   * The queue gets the schedule of its handler, or loses the one that an earlier handler had.
   *
   * @param before what an earlier handler declares, which would stand in the end if it came later
   */
  async #declare(handler: RepeatingHandler, before?: Promise<void>): Promise<void> {
    await before;
    const { queue, options } = handler;
    if (options.repeat) await this.#calls.put(queue, CODE_SCHEDULE, await this.#recordOf(handler));
    else await this.#calls.remove(queue, CODE_SCHEDULE, false);
  }

  #recordOf(handler: RepeatingHandler): Promise<ScheduleRecord> {
    const { queue, definition } = handler;
    return this.#calls.check({
      queue: (isQueueDefinition(definition) ? definition : queue) as QueueRef,
      id: CODE_SCHEDULE,
      owner: 'code',
      ...repeatOf(handler),
    });
  }
}

/** @throws InvalidOptionError for an option that does not exist */
function repeatOf({ queue, name, options }: RepeatingHandler) {
  const { cron, timeZone, every, payload = null, ...others } = { ...options.repeat } as Record<string, unknown>;
  const times = {
    ...(cron !== undefined && { cron }),
    ...(timeZone !== undefined && { timeZone }),
    ...(every !== undefined && { every }),
  };
  const naming = (option: string) => `@OnDelayed("${queue}", { repeat: { ${option} } }) on ${name}`;
  const unknown = Object.keys(others).find((option) => !REPEAT_OPTIONS.includes(option));
  if (unknown !== undefined) throw unknownOption(unknown, REPEAT_OPTIONS, naming);
  return { times, payload, options: others, naming };
}
