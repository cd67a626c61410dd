import type { DelayQueueLogger } from '../delay-queue.logger.js';
import { isNotPermitted, unknownCommand } from './redis.errors.js';
import { partsOf, readChanges } from './read-changes.js';
import type { RedisConnection } from './redis.connection.js';
import { clearTimeout, performance, setTimeout } from '../time-and-randomness.js';

/** With the time for the look and for the step after it less than 5 s: for so long at most a lost wake-up goes unnoticed. */
const LOOK_EVERY_MS = 4_000;
/** A clock that differs by more from what it should be was moved. */
const CLOCK_ERROR_MS = 1_000;

/** The right to read may be given meanwhile. */
const REFUSED_FOR_MS = 60_000;

/** Who rests until its shard changes. */
export interface Resting {
  /** The shard's key of changes. */
  readonly key: string;
  /** What it held in the answer after which this one rests. */
  held: string;
  /** By how much the server's clock was ahead of the monotonic one, ms. */
  ahead: number;
  /** Something changed, or nobody knows. */
  stir(): void;
  /** A look that left at `sentAt` (monotonic ms) found all as it was. */
  unchanged(sentAt: number): void;
}

/**
 * Looks at the shards of which nothing is expected, for all queues of an instance at a time. Scripts change a key of the shard when
 * they give workers something to do (lib/lua/shared/changed.lua), so a look is one MGET, and only who rests at a key that
 * changed sends a step. docs/decisions/0031-idle-queues.md has the reasons.
 */
export class RestWatch {
  readonly #resting = new Set<Resting>();
  #timer: NodeJS.Timeout | undefined;
  /** Until then (monotonic ms) nobody asks again what was refused. */
  #refusedUntil = -Infinity;
  #hasWarned = false;
  /** Keys of which a look has had no answer yet: a node of a Cluster that hangs holds up no others. */
  readonly #asked = new Set<string>();
  /** Monotonic ms at which the last look began. */
  #lookedAt = -Infinity;

  constructor(
    private readonly connection: RedisConnection,
    private readonly logger: DelayQueueLogger,
  ) {}

  /** The user may read the keys. */
  get isUsable(): boolean {
    return performance.now() >= this.#refusedUntil;
  }

  add(one: Resting): void {
    this.#resting.add(one);
    this.#arm();
  }

  has(one: Resting): boolean {
    return this.#resting.has(one);
  }

  delete(one: Resting): void {
    this.#resting.delete(one);
    if (this.#resting.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(): void {
    if (this.#timer || this.#resting.size === 0) return;
    const next = this.#lookedAt + LOOK_EVERY_MS - performance.now();
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        void this.look();
      },
      next > 0 ? next : LOOK_EVERY_MS,
    );
    this.#timer.unref();
  }

  /** Never rejects. */
  async look(): Promise<void> {
    const { connection } = this;
    this.#lookedAt = performance.now();
    if (!connection.isClosed) this.#arm();
    // After an outage everybody is woken in any case.
    if (!connection.isReady) return;
    const byKey = new Map<string, Resting[]>();
    for (const one of this.#resting) {
      if (this.#asked.has(one.key)) continue;
      const others = byKey.get(one.key);
      if (others) others.push(one);
      else byKey.set(one.key, [one]);
    }
    const times = new Map<object, Promise<number>>();
    await Promise.all(partsOf(connection, byKey.keys()).map((keys) => this.#lookAt(keys, byKey, times)));
  }

  async #lookAt(keys: string[], byKey: ReadonlyMap<string, Resting[]>, times: Map<object, Promise<number>>) {
    const sentAt = performance.now();
    for (const key of keys) this.#asked.add(key);
    try {
      const { held, serverNow } = await readChanges(this.connection, keys, times);
      const ahead = serverNow - performance.now();
      for (const [at, key] of keys.entries()) {
        for (const one of byKey.get(key)!) {
          if (!this.#resting.has(one)) continue;
          if (held[at] === one.held && Math.abs(ahead - one.ahead) <= CLOCK_ERROR_MS) one.unchanged(sentAt);
          else one.stir();
        }
      }
    } catch (error) {
      if (isNotPermitted(error) || unknownCommand(error)) this.#refused();
      for (const key of keys) for (const one of byKey.get(key)!) if (this.#resting.has(one)) one.stir();
    } finally {
      for (const key of keys) this.#asked.delete(key);
    }
  }

  #refused(): void {
    this.#refusedUntil = performance.now() + REFUSED_FOR_MS;
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.logger.warn(
      `Redis at ${this.connection.address} refuses MGET: idle queues are polled one by one. docs/operations.md, "A user of its own", lists what is needed.`,
    );
  }
}
