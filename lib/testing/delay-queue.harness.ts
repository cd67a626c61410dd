import type { INestApplicationContext } from '@nestjs/common';
import { DelayQueueError, InvalidOptionError } from '../delay-queue.errors.js';
import { DelayQueueInstances } from '../delay-queue.instances.js';
import { connectionToken, getDelayQueueToken, optionsToken } from '../delay-queue.tokens.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import { DEFAULT_INSTANCE } from '../handlers/on-delayed.decorator.js';
import { DelayQueueInspector } from '../inspection/delay-queue.inspector.js';
import { parseDuration, parseInstant } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { queueNameOf } from '../job/queue-definition.js';
import type { QueueRef } from '../job/queue-definition.js';
import type { MemoryStore } from '../memory/memory.store.js';
import { performance, setImmediate } from '../real-time.js';
import type { JobSnapshot } from '../redis/job-snapshot.js';
import type { RedisConnection } from '../redis/redis.connection.js';
import { MemoryClient } from '../redis/memory.client.js';
import { VirtualClock } from './virtual-clock.js';

export interface HarnessOptions {
  /** What `forRoot({ name })` was given. Default: the unnamed one. */
  instance?: string;
  /** How long (real time) handlers may run without any of them ending before they are reported. Default `'1s'`. */
  patience?: Duration;
}

/** A test that would never end, or a handler that waits for something that does not come. */
export class HarnessError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_HARNESS', message, { retryable: false });
  }
}

const MOST_RUNS = 10_000;
/** Turns of the event loop without anything to do before it counts as quiet: an enqueue takes two to arrive. */
const QUIET_TURNS = 4;

/**
 * Moves the time of jobs by hand, in an application whose connection is `memory://`. The process's own clocks and timers are
 * left alone, and it does not matter whether a test framework has replaced them.
 *
 * Time moves from due moment to due moment. At each of them everything that is due runs, handlers are awaited in real time,
 * and what they cause runs as well: retries after their backoff, snoozed jobs, jobs that they enqueue.
 */
export class DelayQueueHarness {
  readonly #clock: VirtualClock;
  #runs = 0;

  private constructor(
    private readonly store: MemoryStore,
    private readonly connection: RedisConnection,
    private readonly prefix: string,
    private readonly inspector: DelayQueueInspector,
    private readonly handlerOf: (queue: string) => string | undefined,
    private readonly patienceMs: number,
  ) {
    const { clock } = store;
    this.#clock = clock instanceof VirtualClock ? clock : new VirtualClock(clock.now());
    store.clock = this.#clock;
    store.before = (name, [key, ...pairs]) => {
      if (name === 'ZADD' && key!.endsWith(':running')) this.#runs += pairs.length / 2;
    };
  }

  /**
   * From now on the time of jobs stands still, at what it is.
   *
   * @param app that has booted
   * @throws InvalidOptionError when its connection is not `memory://`
   */
  static of(
    app: INestApplicationContext,
    { instance = DEFAULT_INSTANCE, patience = '1s' }: HarnessOptions = {},
  ): DelayQueueHarness {
    const find = <T>(token: unknown) => app.get<T>(token as never, { strict: false });
    const connection = find<RedisConnection>(connectionToken(instance));
    const client: unknown = connection.commands;
    const store = client instanceof MemoryClient ? client.store : undefined;
    if (!store) {
      throw new InvalidOptionError(
        `DelayQueueHarness.of(app): instance "${instance}" is connected to ${connection.address}. Give forRoot() ` +
          "`connection: 'memory://'`, or use DelayQueueTestingModule.override().",
      );
    }
    const { prefix } = find<ResolvedModuleOptions>(optionsToken(instance));
    const runner = find<DelayQueueInstances>(DelayQueueInstances).runner(instance);
    return new DelayQueueHarness(
      store,
      connection,
      prefix,
      find<DelayQueueInspector>(getDelayQueueToken(instance, DelayQueueInspector)),
      (queue) => (runner?.workers.has(queue) ? runner.handlers.get(queue)?.name : undefined),
      parseDuration(patience, 'patience'),
    );
  }

  get now(): Date {
    return new Date(this.#clock.now());
  }

  /** Sets the time without running anything. To go forward and run what becomes due, use `advance()`. */
  setNow(at: Date | number): void {
    this.#clock.set(parseInstant(at, 'setNow(at)'));
  }

  /**
   * Runs everything that becomes due within this time, in order, and ends at its end.
   *
   * @throws HarnessError naming the handlers that do not end, or after 10,000 runs
   */
  async advance(by: Duration): Promise<void> {
    await this.#runUntil(this.#clock.now() + parseDuration(by, 'advance(by)'), true);
  }

  /** Runs what is due now. Time does not move. @throws HarnessError */
  async runDue(): Promise<void> {
    await this.#runUntil(this.#clock.now(), true);
  }

  /** Runs until nothing waits any more, however late that is; time stays at the last moment that was due. @throws HarnessError */
  async drain(): Promise<void> {
    await this.#runUntil(Infinity, false);
  }

  /** The jobs that wait, the first one due first. */
  async enqueued(queue: QueueRef): Promise<JobSnapshot[]> {
    const [due, delayed] = [await this.#list(queue, 'due'), await this.#list(queue, 'delayed')];
    return [...due, ...delayed];
  }

  deadLetters(queue: QueueRef): Promise<JobSnapshot[]> {
    return this.#list(queue, 'dead');
  }

  async #list(queue: QueueRef, state: 'due' | 'delayed' | 'dead'): Promise<JobSnapshot[]> {
    const all: JobSnapshot[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await this.inspector.list(queueNameOf(queue), state, { limit: 200, ...(cursor && { cursor }) });
      all.push(...page.jobs);
      cursor = page.cursor;
      if (cursor === undefined) return all;
    }
  }

  async #runUntil(end: number, arrive: boolean): Promise<void> {
    this.#runs = 0;
    await this.#settle();
    for (let next = this.#nextDue(end); next !== undefined; next = this.#nextDue(end)) {
      this.#clock.set(next);
      await this.#settle();
    }
    if (arrive) this.#clock.set(end);
  }

  /** Waits until nothing is due and nothing runs. */
  async #settle(): Promise<void> {
    let [quiet, ended, since] = [0, this.#progress(), performance.now()];
    for (let turn = 0; quiet < QUIET_TURNS; turn++) {
      const shards = this.#shards();
      const busy = shards.filter(({ key }) => this.#size(key('running')) + this.#size(key('suspects')) > 0);
      const due = shards.filter(({ key }) => this.#count(key('due'), '-inf', this.#clock.now()) > 0);
      if (turn === 0 || due.length > 0) this.#wake(due.length > 0 ? due : shards);
      quiet = busy.length + due.length > 0 ? 0 : quiet + 1;
      if (this.#runs > MOST_RUNS) throw this.#endless(shards);
      const progress = this.#progress();
      if (progress !== ended) [ended, since] = [progress, performance.now()];
      else if (performance.now() - since > this.patienceMs) throw this.#stuck([...busy, ...due]);
      await new Promise<void>((resolve) => void setImmediate(resolve));
    }
  }

  /** Changes whenever a job is claimed or ends. */
  #progress(): string {
    const running = this.#shards().map(({ key }) => this.#size(key('running')));
    return `${this.#runs} ${running.join(' ')}`;
  }

  /** Through the same messages as any wake-up. */
  #wake(shards: readonly TestShard[]): void {
    for (const { key } of shards) this.store.command('PUBLISH', [this.connection.channel, key('due')]);
  }

  #nextDue(end: number): number | undefined {
    const heads = this.#shards().flatMap(({ key }) => {
      const [, score] = this.store.command('ZRANGE', [key('due'), '0', '0', 'WITHSCORES']) as string[];
      return score === undefined ? [] : [Math.max(Number(score), this.#clock.now())];
    });
    const next = Math.min(...heads);
    return heads.length > 0 && next <= end ? next : undefined;
  }

  /** The shards of queues that have a handler here and are not paused; what others wait for is not our business. */
  #shards(): TestShard[] {
    const [, names] = this.store.command('SCAN', ['0', 'MATCH', `${this.prefix}:{*}:jobs`]) as [string, string[]];
    return names.flatMap((name) => {
      const start = name.slice(0, -'jobs'.length);
      const tag = Buffer.from(start.slice(this.prefix.length + 2, -2), 'latin1').toString('utf8');
      const key = (of: string) => start + of;
      const queue = this.handlerOf(tag) === undefined ? tag.replace(/:\d+$/, '') : tag;
      const handler = this.handlerOf(queue);
      if (handler === undefined || this.store.command('HGET', [key('meta'), 'paused']) === '1') return [];
      return [{ queue, handler, key }];
    });
  }

  #size(key: string): number {
    return this.store.command('ZCARD', [key]) as number;
  }

  #count(key: string, min: string, max: number): number {
    return this.store.command('ZCOUNT', [key, min, String(max)]) as number;
  }

  #stuck(shards: readonly TestShard[]): HarnessError {
    const names = shards.map(({ queue, handler, key }) => {
      const ids = this.store.command('ZRANGE', [key('running'), '0', '4']) as string[];
      return `${handler} of queue "${queue}"${ids.length > 0 ? ` (${ids.join(', ')})` : ''}`;
    });
    return new HarnessError(
      `No handler ended for ${this.patienceMs} ms of real time. Still waiting for ${[...new Set(names)].join(', ')}. ` +
        'A handler that waits on a timer is not helped by advance(): mock what it waits for, or raise `patience`.',
    );
  }

  #endless(shards: readonly TestShard[]): HarnessError {
    const queues = shards.map(({ queue }) => `"${queue}"`).join(', ');
    return new HarnessError(
      `More than ${MOST_RUNS} runs in one go, in queues ${queues}. Do handlers enqueue or snooze without end? Use advance() ` +
        'with a time instead of drain().',
    );
  }
}

interface TestShard {
  readonly queue: string;
  readonly handler: string;
  readonly key: (name: string) => string;
}
