import type { InstanceContext } from '../instance/instance-context.js';
import { isTransient } from '../redis/redis.errors.js';
import type { Tally } from '../tally/tally.js';
import { performance } from '../time-and-randomness.js';
import { BusyTime } from './busy-time.js';
import { KEPT_MS, MINUTE_MS, minuteKey } from './history.keys.js';
import { countsOf, newCounts } from './minute-counts.js';
import type { Busy, MinuteCounts } from './minute-counts.js';
import { serverTime } from './server-time.js';

/** What was counted in a span of time, until it is written. */
interface Span {
  /** The middle of it; monotonic ms. */
  readonly at: number;
  readonly queues: ReadonlyMap<string, MinuteCounts>;
}

const NOT_BUSY: Busy = { ms: 0, claimed: 0, edgeMs: 0, edgeClaimed: 0 };

/** While Redis is away: what is older is given up. */
const MOST_SPANS = 60;

/**
 * Adds what this process has counted to the minutes of all processes. Each number is written once or, when its answer is lost,
 * perhaps not at all: history may lack something, and counts nothing twice.
 */
export class HistoryWriter {
  readonly #written = new Map<string, MinuteCounts>();
  readonly #busy = new Map<string, BusyTime>();
  readonly #waiting: Span[] = [];
  #since = performance.now();
  #lookedAt = performance.now();

  constructor(
    private readonly context: InstanceContext,
    private readonly tally: Tally,
    /** Are all slots of a queue taken? */
    private readonly isFull: (queue: string) => boolean,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** Once a second. */
  look(): void {
    const now = performance.now();
    const elapsed = now - this.#lookedAt;
    this.#lookedAt = now;
    for (const { instance, queue, tally } of this.tally.all()) {
      if (instance !== this.context.options.name) continue;
      const busy = this.#busy.get(queue);
      if (busy) busy.look(tally, this.isFull(queue), elapsed);
      else this.#busy.set(queue, new BusyTime(tally));
    }
  }

  /** Cuts off what was counted since it was called before: that belongs to one minute. */
  cut(): void {
    const now = performance.now();
    const queues = new Map<string, MinuteCounts>();
    for (const { instance, queue, tally } of this.tally.all()) {
      // Queues beyond the bound of the tally are counted together, under a name that no queue has.
      if (instance !== this.context.options.name || queue.includes('{')) continue;
      const counts = countsOf(tally, this.#busy.get(queue) ?? NOT_BUSY);
      const fresh = newCounts(counts, this.#written.get(queue));
      if (!fresh) continue;
      this.#written.set(queue, counts);
      queues.set(queue, fresh);
    }
    if (queues.size > 0) this.#waiting.push({ at: (this.#since + now) / 2, queues });
    if (this.#waiting.length > MOST_SPANS) this.#waiting.shift();
    this.#since = now;
  }

  /** Writes what was cut off, unless Redis is away: then later. Never rejects. */
  async write(): Promise<void> {
    const { connection } = this.context;
    if (this.#waiting.length === 0 || !connection.isReady) return;
    try {
      const now = await serverTime(connection);
      const read = performance.now();
      for (let span = this.#waiting.shift(); span; span = this.#waiting.shift()) {
        const minute = Math.floor((now - (read - span.at)) / MINUTE_MS);
        await Promise.all(Array.from(span.queues, ([queue, counts]) => this.#add(queue, minute, counts)));
      }
    } catch (error) {
      if (!isTransient(error)) this.failed(error);
    }
  }

  async #add(queue: string, minute: number, counts: MinuteCounts): Promise<void> {
    const { connection, options } = this.context;
    const { commands } = connection;
    const key = minuteKey(options.prefix, queue, minute);
    const calls = Object.entries(counts).map(([field, count]) =>
      connection.send(() => commands.hincrby(key, field, count), key),
    );
    calls.push(connection.send(() => commands.pexpire(key, KEPT_MS), key));
    await Promise.all(calls);
  }
}
