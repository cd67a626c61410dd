import type { INestApplicationContext } from '@nestjs/common';
import { knownAcrossCopies } from '../copies.js';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { getDelayQueueToken } from '../delay-queue.tokens.js';
import { DEFAULT_INSTANCE } from '../handlers/on-delayed.decorator.js';
import { DelayQueueInspector } from '../inspection/delay-queue.inspector.js';
import { parseDuration, parseInstant, shown } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { nearestOption } from '../job/near-names.js';
import { queueNameOf } from '../job/queue-definition.js';
import type { QueueRef } from '../job/queue-definition.js';
import { limitsText } from '../job/queue-limits.js';
import { queueNamesKey } from '../redis/keys.js';
import type { JobSnapshot } from '../redis/job-snapshot.js';
import type { RedisConnection } from '../redis/redis.connection.js';
import { performance, setImmediate } from '../time-and-randomness.js';
import type { DelayQueueRunner } from '../worker/delay-queue.runner.js';
import { runnerOf, storeOf } from './application.js';
import { endless, stuck } from './endless.js';
import { Hanging } from './hanging.js';
import { HarnessError } from './harness.error.js';
import { listed, listedWaiting } from './listing.js';
import { momentAfter } from './moment-after.js';
import { TestShards, testWorkers } from './test-shards.js';
import type { TestStore } from './test-store.js';
import { TestWorker } from './test-worker.js';
import { Watch } from './watch.js';
import type { SeenRun } from './watch.js';

export interface HarnessOptions {
  /** What `forRoot({ name })` was given. Default: the unnamed one. */
  instance?: string;
  /** How long (real time) handlers may run without any of them ending before they are reported. At least 1 ms. Default `'1s'`. */
  stallTimeout?: Duration;
}

/** One for each instance of an application: two of them would take each other's runs. */
const made = new WeakMap<DelayQueueRunner, DelayQueueHarness>();
const MOST_RUNS = 10_000;
/** At one moment of the time of jobs, beside ten for each job that waited at once: far fewer than a second has. */
const MOST_RUNS_AT_ONCE = 1_000;
const STALL_TIMEOUT_MS = 1_000;
/** Turns of the event loop without anything to do before it counts as quiet: an enqueue takes two to arrive. */
const QUIET_TURNS = 4;
/** A longer turn counts as no more: where others have the processor, or a handler computes, nobody hangs. */
const MOST_MS_A_TURN = 5;
/** The least time, ms, in which a due job must have been started; jobs in quarantine wait a moment by the process's clock. */
const START_WITHIN_MS = 3_000;

/**
 * Moves the time of jobs by hand, in an application of `DelayQueueTestingModule`. The process's own clocks and timers are
 * left alone, and it does not matter whether a test framework has replaced them.
 *
 * Time moves from moment to moment at which something is due: a job, a retry after its backoff, a snoozed job, a lease that
 * nobody renews, the timeout of a handler that does not end. At each of them everything that is due runs, what handlers
 * enqueue included, and handlers are awaited in real time.
 */
export class DelayQueueHarness {
  readonly #shards: TestShards;
  readonly #watch = new Watch();
  /** What was asked for last. One thing at a time: two that move time at once would both be wrong. */
  #work: Promise<unknown> = Promise.resolve();
  #hasRun = false;
  /** Runs until time stood still last, and the most jobs that have waited in one shard since. */
  #countedBefore = 0;
  #mostWaiting = 0;

  private constructor(
    private readonly store: TestStore,
    private readonly connection: RedisConnection,
    private readonly runner: DelayQueueRunner,
    private readonly inspector: DelayQueueInspector,
    private stallTimeoutMs: number,
  ) {
    this.#shards = new TestShards(runner, store);
    const watch = this.#watch;
    runner.probe.begins = (job) => watch.begins(job);
    runner.probe.decided = (job, settlement) => watch.decided(job, settlement);
  }

  /**
   * From now on the time of jobs stands still, at what it is. On a Redis it goes on, because nobody can stop its clock.
   * Asked again it answers the same harness.
   *
   * @param app that has booted
   * @throws InvalidOptionError when it is connected to a Redis that was not given to the testing module
   * @throws UnknownInstanceError when it has no `forRoot()` of this name
   * @throws HarnessError before `app.init()`, and after `app.close()`
   */
  static of(
    app: INestApplicationContext,
    { instance = DEFAULT_INSTANCE, stallTimeout }: HarnessOptions = {},
  ): DelayQueueHarness {
    const runner = runnerOf(app, instance);
    let harness = made.get(runner);
    if (!harness) {
      const { connection } = runner.shards;
      if (connection.isClosed) throw closed();
      const inspector = app.get<DelayQueueInspector>(getDelayQueueToken(instance, DelayQueueInspector), {
        strict: false,
      });
      harness = new DelayQueueHarness(
        storeOf(app, connection, instance),
        connection,
        runner,
        inspector,
        STALL_TIMEOUT_MS,
      );
      made.set(runner, harness);
    }
    if (stallTimeout !== undefined) harness.stallTimeoutMs = parseDuration(stallTimeout, 'stallTimeout', { min: 1 });
    return harness;
  }

  get now(): Date {
    return new Date(this.store.now());
  }

  /**
   * Sets the time without running anything. To go forward and run what becomes due, use `advance()`.
   *
   * Schedules that handlers declare begin at this time if nothing was run before. Later they have missed what lies between.
   */
  async setNow(at: Date | number): Promise<void> {
    const to = parseInstant(at, 'setNow(at)');
    await this.#use(async () => {
      await this.#move(to - this.store.now());
      if (!this.#hasRun && !this.connection.isInterrupted) await this.runner.tickers.declareAnew();
    });
  }

  /**
   * Runs everything that becomes due within this time, in order, and ends at its end.
   * @param by as everywhere, or years of the calendar: `'1y'` ends at this day and time of the next year, in UTC
   * @throws HarnessError naming the handlers that do not end, or that took 4 s of real time to run out of their timeouts; or after
   * 10,000 runs; at one moment sooner, where jobs make jobs without end
   */
  async advance(by: Duration): Promise<void> {
    const after = momentAfter(by, 'advance(by)');
    await this.#use(() => this.#runUntil(after(this.store.now()), true));
  }

  /** Runs what is due now. Time does not move. @throws HarnessError */
  async runDue(): Promise<void> {
    await this.#use(() => this.#runUntil(this.store.now(), false));
  }

  /**
   * Runs until nothing waits any more, however late that is; time stays at the last moment that was due. Schedules make no
   * further occurrences meanwhile: they have no end.
   *
   * @throws HarnessError
   */
  async drain(): Promise<void> {
    await this.#use(() => this.#runUntil(Infinity, false));
  }

  /** The jobs that wait, the first one due first. */
  enqueued(queue: QueueRef): Promise<JobSnapshot[]> {
    return listedWaiting(this.inspector, queue);
  }

  /** The jobs that a worker holds, whether their handlers have begun or not. @internal */
  claimed(queue: QueueRef): Promise<JobSnapshot[]> {
    return listed(this.inspector, queue, 'running');
  }

  deadLetters(queue: QueueRef): Promise<JobSnapshot[]> {
    return listed(this.inspector, queue, 'dead');
  }

  /** Every run of this application since the harness was made, the first one first. */
  runs(queue: QueueRef): readonly Readonly<SeenRun>[] {
    const name = queueNameOf(queue, 'runs(queue)');
    return this.#watch.runs.filter((run) => run.queue === name);
  }

  /**
   * Lets the next runs of a queue fail without calling the handler.
   *
   * @param error as if the handler had thrown it; a DiscardJob or SnoozeJob does what it does there
   * @param times runs that fail. Default 1
   * @throws InvalidOptionError; HarnessError for a queue without a handler
   */
  failNext(queue: QueueRef, error: unknown = new Error('Failed by the test.'), times = 1): void {
    const name = queueNameOf(queue, 'failNext(queue)');
    assertHandled(this.runner.handlers, name);
    if (!Number.isSafeInteger(times) || times < 1) {
      throw new InvalidOptionError(`failNext(queue, error, times): ${shown(times)} is not a whole number from 1 on.`);
    }
    this.#watch.fail(name, error, times);
  }

  /**
   * As if the process had been killed, and another one had taken its place. What its handlers do from now on changes
   * nothing, and their signals are aborted; when `advance()` comes to the end of the lease, the job runs again.
   *
   * @throws HarnessError when the application was closed, or is about to be
   */
  async crashWorker(): Promise<void> {
    // Nobody would end the worker that takes the place.
    if (this.runner.draining) throw closed();
    this.runner.replaceWorkers((shard) => new TestWorker(shard).crash());
    await turn();
  }

  /** As if Redis had gone: calls fail as in an outage, though within a fraction of a second, and workers wait. */
  async disconnect(): Promise<void> {
    this.connection.interrupt();
    this.runner.shards.durable.connection?.interrupt();
    await turn();
  }

  /** Redis is back, with everything that it had. */
  async reconnect(): Promise<void> {
    await this.connection.resume();
    await this.runner.shards.durable.connection?.resume();
  }

  /** Removes all jobs of all queues: for a Redis that outlives the test. */
  async clear(): Promise<void> {
    await this.#use(async () => {
      const shards = await this.#shards.all();
      for (const { store } of shards) await this.store.command('UNLINK', ...store.keys.all);
      await this.store.command('DEL', queueNamesKey(this.runner.options.prefix));
      await this.#shards.declaredAnew();
      for (const { store } of shards) {
        const limits = this.runner.workers.get(store.queue)?.settings.limits;
        if (limits) await store.call('limit', [limitsText(limits), 'c']);
      }
    });
  }

  /** Epoch ms by which the due times of jobs count. @internal */
  get serverNow(): number {
    return this.store.serverNow();
  }

  /** Whether the clock of the store stands still between calls. @internal */
  get standsStill(): boolean {
    return this.store.standsStill;
  }

  /** @throws HarnessError when the application was closed */
  #use(work: () => Promise<void>): Promise<void> {
    const begin = async () => {
      if (this.connection.isClosed) throw closed();
      await this.store.use(async () => {
        if (!this.connection.isInterrupted) await this.#shards.declared();
        await work();
      });
    };
    const attempt = () =>
      begin().catch((error: unknown) => {
        // Closed meanwhile: what a call met then tells nothing of where it came from.
        throw this.connection.isClosed ? closed() : error;
      });
    const done = this.#work.then(attempt, attempt);
    this.#work = done.catch(() => undefined);
    return done;
  }

  async #runUntil(end: number, arrive: boolean): Promise<void> {
    const { store } = this;
    this.#hasRun = true;
    this.#standStill();
    const most = this.#watch.counted + MOST_RUNS;
    // Without an end the occurrences of a schedule would have none.
    const ticks = end < Infinity && !this.connection.isInterrupted;
    const hanging = new Hanging(this.#shards, this.stallTimeoutMs);
    for (;;) {
      if (ticks) await this.#shards.tick();
      const quiet = await this.#settle(most);
      const left = end - store.now();
      const timeout = quiet ? Infinity : this.#nextTimeout();
      const hopeless = timeout === Infinity || timeout > left;
      const error = quiet ? undefined : await (hopeless ? stuck(this.#shards, this.stallTimeoutMs) : hanging.waited());
      if (error) {
        // What hangs will not end while the application is closed either.
        this.runner.probe.drainMs = this.stallTimeoutMs;
        throw error;
      }
      const moment = this.connection.isInterrupted ? Infinity : await this.#shards.nextMoment(ticks);
      // While a handler is stuck, what is due and finds no slot is no moment to go to.
      const wait = Math.max(0, moment - store.serverNow());
      const next = quiet || wait > 0 ? Math.min(wait, timeout) : timeout;
      if (next > left || next === Infinity) break;
      await this.#move(next);
    }
    if (arrive) await this.#move(Math.max(0, end - store.now()));
    if (this.connection.isInterrupted) return;
    await this.#shards.sweep();
    await this.#settle(most);
  }

  #standStill(): void {
    this.#countedBefore = this.#watch.counted;
    this.#mostWaiting = 0;
  }

  async #move(ms: number): Promise<void> {
    if (ms > 0) this.#standStill();
    const shards = await this.#shards.all();
    if (!this.store.standsStill) this.connection.movedMs += ms;
    if (ms !== 0)
      await this.store.move(
        ms,
        shards.map(({ store, kept }) => ({ keys: store.keys.all, kept })),
      );
    if (ms > 0) {
      this.runner.gate.fastForward(ms);
      for (const worker of [...this.#workers(), ...this.runner.pullers.flatMap(testWorkers)]) worker.fastForward(ms);
    }
    if (!this.connection.isInterrupted) await this.#shards.takeBack();
  }

  /** Waits until nothing is due and nothing runs. @returns false when handlers do not end */
  async #settle(most: number): Promise<boolean> {
    let [quiet, last, since, turns] = [0, this.#progress(), performance.now(), 0];
    for (const worker of this.#workers()) worker.begin(this.standsStill);
    while (quiet < QUIET_TURNS) {
      const offline = this.connection.isInterrupted;
      const waiting = offline ? [] : await this.#shards.waiting();
      for (const { worker } of waiting) if (!worker!.isAsking) worker!.wake();
      const workers = this.#workers();
      if (waiting.length === 0) for (const worker of workers) worker.flush();
      const runs = workers.some(({ isRunning }) => isRunning);
      const busy = offline ? runs : workers.some(({ isBusy, isAsking }) => isBusy || isAsking);
      quiet = busy || waiting.length > 0 ? 0 : quiet + 1;
      if (this.#watch.counted > most) throw endless(this.#watch.runs, MOST_RUNS, 'in one go');
      this.#mostWaiting = Math.max(this.#mostWaiting, ...waiting.map(({ due }) => due));
      const atOnce = MOST_RUNS_AT_ONCE + 10 * this.#mostWaiting;
      if (this.#watch.counted - this.#countedBefore > atOnce) throw endless(this.#watch.runs, atOnce, 'at one moment');
      const progress = this.#progress();
      const limitMs = runs ? this.stallTimeoutMs : Math.max(this.stallTimeoutMs, START_WITHIN_MS);
      if (progress !== last) [last, since, turns] = [progress, performance.now(), 0];
      else if (++turns * MOST_MS_A_TURN > limitMs && performance.now() - since > limitMs) return false;
      await turn();
    }
    return true;
  }

  /** Changes whenever a run begins or ends. */
  #progress(): string {
    return `${this.#watch.begun} ${this.#watch.ended}`;
  }

  #workers(): TestWorker[] {
    return [...this.runner.workers.values()].flatMap(testWorkers);
  }

  /** ms until the first of what runs has run out of time. What was spent on waiting for it counts where time goes on by itself. */
  #nextTimeout(): number {
    const now = this.store.standsStill ? undefined : performance.now();
    return Math.max(1, Math.ceil(Math.min(...this.#workers().map((worker) => worker.timeLeft(now)))));
  }
}

knownAcrossCopies({ DelayQueueHarness });

function closed(): HarnessError {
  return new HarnessError('The application was closed. Await what the harness does before.');
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** @throws HarnessError */
function assertHandled(handlers: DelayQueueRunner['handlers'], name: string): void {
  if (handlers.get(name)) return;
  const known = handlers.all().map((handler) => handler.queue);
  const meant = nearestOption(name, known);
  const hint = meant === undefined ? '' : ` Is it "${meant}"?`;
  throw new HarnessError(`failNext(queue): no handler here is for queue "${name}".${hint}`);
}
