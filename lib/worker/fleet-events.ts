import type { DelayQueueLogger } from '../delay-queue.logger.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import { OncePerTurn } from '../once-per-turn.js';
import { encodeNews, fleetKey } from '../redis/fleet.protocol.js';
import type { FleetNews } from '../redis/fleet.protocol.js';
import type { RedisConnection } from '../redis/redis.connection.js';
import { isTransient, typedError } from '../redis/redis.errors.js';

/** Entries on their way: a Redis that is so slow gets no more. */
const MOST_ON_THEIR_WAY = 100;

/**
 * Tells other processes what Redis has confirmed about the jobs of one queue: one entry of a capped stream for all that is learned
 * in one turn of the event loop. It is news and no record: an entry is sent once, and nobody waits for it.
 */
export class FleetEvents {
  #news: FleetNews[] = [];
  readonly #sent = new Set<Promise<unknown>>();
  readonly #soon = new OncePerTurn(() => this.#send());
  #warned = false;

  constructor(
    private readonly connection: RedisConnection,
    private readonly key: string,
    private readonly keep: number,
    private readonly logger: DelayQueueLogger,
  ) {}

  tell(news: FleetNews): void {
    this.#news.push(news);
    this.#soon.schedule();
  }

  /** Sends what is left, and waits until it has arrived. */
  async close(): Promise<void> {
    this.#send();
    await Promise.all(this.#sent);
  }

  #send(): void {
    const news = this.#news;
    if (news.length === 0) return;
    this.#news = [];
    const { commands, processName } = this.connection;
    if (!this.connection.isReady || this.#sent.size >= MOST_ON_THEIR_WAY) return;
    const entry = ['p', processName, 'e', encodeNews(news)];
    const sent = this.connection
      .send(() => commands.xadd(this.key, 'MAXLEN', '~', this.keep, '*', ...entry), this.key)
      .catch((error: unknown) => this.#failed(error))
      .finally(() => this.#sent.delete(sent));
    this.#sent.add(sent);
  }

  #failed(error: unknown): void {
    if (isTransient(error) || this.#warned) return;
    this.#warned = true;
    this.logger.warn(
      `Fleet events are not written, which concerns no job: ${typedError(error, this.key).message} Said once.`,
    );
  }
}

/** Those of the queues that keep events, made when a worker asks for them. */
export class FleetEventsOfQueues {
  readonly #queues = new Map<string, FleetEvents>();

  constructor(
    private readonly connection: RedisConnection,
    private readonly options: Pick<ResolvedModuleOptions, 'prefix' | 'queues'>,
    private readonly logger: DelayQueueLogger,
  ) {}

  /** @returns undefined for a queue that keeps none */
  of(queue: string): FleetEvents | undefined {
    const { prefix, queues } = this.options;
    const keep = queues[queue]?.events?.keep;
    if (keep === undefined) return undefined;
    let events = this.#queues.get(queue);
    if (!events) {
      events = new FleetEvents(this.connection, fleetKey(prefix, queue), keep, this.logger);
      this.#queues.set(queue, events);
    }
    return events;
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#queues.values(), (events) => events.close()));
  }
}
