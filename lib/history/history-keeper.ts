import { DelayQueueLogger } from '../delay-queue.logger.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { isTransient, typedError } from '../redis/redis.errors.js';
import type { Tally } from '../tally/tally.js';
import { clearInterval, clearTimeout, random, setInterval, setTimeout } from '../time-and-randomness.js';
import type { DelayQueueRunner } from '../worker/delay-queue.runner.js';
import { ALIVE_MS, MINUTE_MS, processesKey, processKey } from './history.keys.js';
import { HistoryWriter } from './history-writer.js';
import { describeProcess } from './process-record.js';
import { serverTime } from './server-time.js';

const LOOK_EVERY_MS = 1_000;
const SHOW_EVERY_MS = ALIVE_MS / 3;
/** Processes must not all write at the same moment. */
const SCATTERED_OVER_MS = 5_000;
/** Of processes that are gone, at each showing. */
const MOST_FORGOTTEN = 50;

/** Keeps the history of one instance of this process: three timers, and a few commands every 15 seconds and every minute. */
export class HistoryKeeper {
  readonly #writer: HistoryWriter;
  readonly #logger: DelayQueueLogger;
  readonly #timers: NodeJS.Timeout[] = [];
  #minute: NodeJS.Timeout | undefined;
  #scattered: NodeJS.Timeout | undefined;
  #warned = false;
  #stopped = false;

  constructor(
    private readonly context: InstanceContext,
    tally: Tally,
    private readonly runner: () => DelayQueueRunner | undefined,
  ) {
    this.#logger = DelayQueueLogger.of(context.options.name);
    const isFull = (queue: string) => {
      const worker = runner()?.workers.get(queue);
      return worker !== undefined && worker.running >= worker.concurrency * worker.batchSize;
    };
    this.#writer = new HistoryWriter(context, tally, isFull, (error) => this.#warn(error));
  }

  start(): void {
    this.#timers.push(
      setInterval(() => this.#writer.look(), LOOK_EVERY_MS).unref(),
      setInterval(() => void this.show(), SHOW_EVERY_MS).unref(),
    );
    void this.show();
    this.#awaitMinute(undefined);
  }

  /** Writes what is left, and takes the process out of the list. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#minute);
    clearTimeout(this.#scattered);
    this.#writer.look();
    // At once: where Redis is silent, closing waits no longer than one call.
    await Promise.all([this.flush(), this.#leave()]);
  }

  /** Ends the present span and writes it: as at the end of a minute. */
  async flush(): Promise<void> {
    this.#writer.cut();
    await this.#writer.write();
  }

  /** Tells what this process is and does. Never rejects. */
  async show(): Promise<void> {
    const { connection, options } = this.context;
    const { commands } = connection;
    if (!connection.isReady) return;
    try {
      const now = await serverTime(connection);
      const { name, text } = describeProcess(this.context, this.runner(), now);
      const [key, all] = [processKey(options.prefix, name), processesKey(options.prefix)];
      const silent = await connection.send(
        () => commands.zrange(all, '-inf', `(${now - ALIVE_MS}`, 'BYSCORE', 'LIMIT', 0, MOST_FORGOTTEN),
        all,
      );
      if (this.#stopped) return;
      // It may have been silent itself.
      const gone = silent.filter((other) => other !== name);
      await Promise.all([
        connection.send(() => commands.set(key, text, 'PX', ALIVE_MS), key),
        connection.send(() => commands.zadd(all, now, name), all),
        gone.length > 0 && connection.send(() => commands.zrem(all, ...gone), all),
      ]);
    } catch (error) {
      if (!isTransient(error)) this.#warn(error);
    }
  }

  async #leave(): Promise<void> {
    const { connection, options } = this.context;
    const { commands, processName } = connection;
    if (!connection.isReady) return;
    const [key, all] = [processKey(options.prefix, processName), processesKey(options.prefix)];
    await Promise.all([
      connection.send(() => commands.unlink(key), key),
      connection.send(() => commands.zrem(all, processName), all),
    ]).catch(() => undefined);
  }

  /** Cuts at the end of each minute of Redis' clock, and writes a little later. */
  #awaitMinute(now: number | undefined): void {
    if (this.#stopped) return;
    const wait = now === undefined ? 0 : MINUTE_MS - (now % MINUTE_MS);
    this.#minute = setTimeout(() => {
      if (now !== undefined) {
        this.#writer.cut();
        this.#scattered = setTimeout(() => void this.#writer.write(), random() * SCATTERED_OVER_MS).unref();
      }
      void this.#time().then((time) => this.#awaitMinute(time));
    }, wait).unref();
  }

  /** Of Redis; while it is away, a minute ends when a minute has passed. */
  async #time(): Promise<number> {
    return serverTime(this.context.connection).catch(() => 0);
  }

  /** Once, because it would be said each minute. */
  #warn(error: unknown): void {
    if (this.#warned) return;
    this.#warned = true;
    const { message } = typedError(error, 'the history of this process');
    this.#logger.warn(`History is not written, which concerns no job: ${message} Said once.`);
  }
}
