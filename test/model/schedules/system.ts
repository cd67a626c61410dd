import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DelayQueueConsumer, DelayQueueInspector, DelayQueueModule, DelayQueueProducer } from '../../../lib/index.js';
import type { JobSnapshot, ScheduleSnapshot } from '../../../lib/index.js';
import { channelName } from '../../../lib/delay-queue.channels.js';
import type { OccurrencesSkippedMessage } from '../../../lib/delay-queue.channels.js';
import { DelayQueueLogger } from '../../../lib/delay-queue.logger.js';
import { connectionToken } from '../../../lib/delay-queue.tokens.js';
import { DEFAULT_INSTANCE } from '../../../lib/handlers/on-delayed.decorator.js';
import { Ticker } from '../../../lib/recurring/ticker.js';
import type { RedisConnection } from '../../../lib/redis/redis.connection.js';
import { RestWatch } from '../../../lib/redis/rest-watch.js';
import { runnerOf } from '../../../lib/testing/application.js';
import { DelayQueueHarness, DelayQueueTestingModule } from '../../../lib/testing/index.js';
import { World } from '../../helpers/world.js';

const HOUR = 3_600_000;
/**
 * In memory time begins here: which times a cron expression has, and where within its jitter one is due, hang on the clock, and what has failed
 * once has to fail again when it is replayed.
 */
const BEGINNING = Date.UTC(2030, 0, 1);
const SKIPPED = channelName('occurrencesSkipped');

/** What is stored of a queue, as the public calls tell it. Times are those of schedules. */
export interface StoredSchedules {
  readonly schedules: readonly ScheduleSnapshot[];
  /** id -> due time */
  readonly waiting: ReadonlyMap<string, number>;
  readonly running: readonly string[];
  readonly dead: readonly string[];
  readonly skipped: number;
  readonly completed: number;
  /** How many occurrences do not count for `maxSize`. */
  readonly ahead: number;
}

/**
 * The library over one store, with time that is moved by the test kit. Schedules are looked after when `tick()` is called, never
 * between: a process does so when its timer says.
 */
export class ScheduleSystem {
  queue = '';
  readonly producer: DelayQueueProducer;
  readonly inspector: DelayQueueInspector;
  readonly consumer: DelayQueueConsumer;
  /** In memory: time goes by in `advance()` only. */
  readonly clockStands: boolean;
  /** What the events of this queue said was left out. */
  readonly told: OccurrencesSkippedMessage[] = [];
  readonly #harness: DelayQueueHarness;
  readonly #connection: RedisConnection;
  #ticker!: Ticker;
  readonly #listen = (message: unknown) => {
    const skipped = message as OccurrencesSkippedMessage;
    if (skipped.queue === this.queue) this.told.push(skipped);
  };

  private constructor(
    private readonly world: World,
    private readonly app: INestApplicationContext,
  ) {
    this.producer = app.get(DelayQueueProducer);
    this.inspector = app.get(DelayQueueInspector);
    this.consumer = app.get(DelayQueueConsumer);
    this.#harness = DelayQueueHarness.of(app);
    this.#connection = app.get<RedisConnection>(connectionToken(DEFAULT_INSTANCE));
    this.clockStands = world.url.startsWith('memory://');
    subscribe(SKIPPED, this.#listen);
  }

  static async open(): Promise<ScheduleSystem> {
    const world = await World.open();
    // A pull goes through all that is left out: on a loaded machine that takes a while.
    const root = { prefix: world.prefix, shutdownHooksWarning: false, drainTimeout: 0, commandTimeout: 60_000 };
    @Module({ imports: [DelayQueueModule.forRoot({ ...root, connection: world.url })] })
    class ModelModule {}
    const builder = Test.createTestingModule({ imports: [ModelModule] });
    DelayQueueTestingModule.override(builder, { redis: world.url });
    const app = await (await builder.setLogger(false as never).compile()).init();
    const system = new ScheduleSystem(world, app);
    if (system.clockStands) await system.#harness.setNow(BEGINNING);
    return system;
  }

  /** A queue that was never used before, at a moment with the same distance from full hours. @returns that moment */
  async begin(phaseMs: number): Promise<number> {
    this.queue = `scheduled-${queues++}`;
    this.told.length = 0;
    const runner = runnerOf(this.app, DEFAULT_INSTANCE);
    const stores = runner.shards.stores(this.queue);
    const logger = DelayQueueLogger.of(DEFAULT_INSTANCE);
    const watch = new RestWatch(runner.shards.connection, logger);
    this.#ticker = new Ticker(this.queue, stores, logger, watch, undefined, false);
    // Where one is there no other one is started, and this one has no timer.
    runner.tickers.all.set(this.queue, this.#ticker);
    const at = Math.ceil(this.now / HOUR) * HOUR + phaseMs;
    await this.#harness.setNow(at);
    return at;
  }

  get #meta(): string {
    return runnerOf(this.app, DEFAULT_INSTANCE).shards.stores(this.queue)[0]!.keys.meta;
  }

  get now(): number {
    return this.#harness.now.getTime();
  }

  async advance(ms: number): Promise<void> {
    await this.#harness.setNow(this.now + ms);
  }

  /** A process looks whether schedules need more occurrences. */
  async tick(): Promise<void> {
    await this.#ticker.tick();
  }

  async stored(): Promise<StoredSchedules> {
    const [{ schedules }, totals, [delayed, due, running, dead], ahead] = await Promise.all([
      this.producer.listSchedules(this.queue),
      this.inspector.totals(this.queue),
      Promise.all((['delayed', 'due', 'running', 'dead'] as const).map((state) => this.#list(state))),
      this.world.redis.hget(this.#meta, 'ahead'),
    ]);
    const ids = (jobs: JobSnapshot[]) => jobs.map(({ id }) => id).sort();
    return {
      schedules,
      waiting: new Map([...delayed!, ...due!].map(({ id, dueAt }) => [id, dueAt.getTime() + this.#connection.movedMs])),
      running: ids(running!),
      dead: ids(dead!),
      skipped: totals.skipped,
      completed: totals.completed,
      ahead: Number(ahead),
    };
  }

  async #list(state: 'delayed' | 'due' | 'running' | 'dead'): Promise<JobSnapshot[]> {
    const jobs: JobSnapshot[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await this.inspector.list(this.queue, state, { limit: 200, ...(cursor && { cursor }) });
      jobs.push(...page.jobs);
      if ((cursor = page.cursor) === undefined) return jobs;
    }
  }

  /** Forgets the queue. */
  async end(): Promise<void> {
    await this.#ticker.stop();
    runnerOf(this.app, DEFAULT_INSTANCE).tickers.all.delete(this.queue);
    await this.#harness.clear();
  }

  async close(): Promise<void> {
    unsubscribe(SKIPPED, this.#listen);
    await this.app.close();
    await this.world.close();
  }
}

let queues = 0;
