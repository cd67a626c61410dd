import { clearInterval, clearTimeout, setInterval, setTimeout } from '../time-and-randomness.js';
import type { RedisClient } from './redis.client.js';

/** How long a subscriber may be silent before it is asked whether it still lives. */
const SUBSCRIBER_CHECK_MS = 10_000;
/** The message of a process to its own channel; wake-ups carry the name of a key. */
const ECHO = '';

/** The connection that a listener belongs to. */
export interface WakeUpConnection {
  readonly commands: RedisClient;
  readonly address: string;
  readonly timeoutMs: number;
  readonly isReady: boolean;
  readonly isClosed: boolean;
  send<T>(call: () => Promise<T>): Promise<T>;
  /** Cuts a client off, which connects anew. */
  replace(client: RedisClient): void;
}

/**
 * Where the wake-ups of this process are received: a client that subscribes to the channel of the process, and tells the
 * workers when a job has become the earliest of its shard. Without wake-ups jobs start late: workers poll every few seconds.
 */
export class WakeUpListener {
  #isSubscribed = false;
  readonly #waiting = new Set<() => void>();
  readonly #listeners = new Set<(shard: string | undefined) => void>();
  #echo: (() => void) | undefined;
  #checkTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly subscriber: RedisClient,
    private readonly channel: string,
    private readonly connection: WakeUpConnection,
    private readonly warnOnce: (message: string) => void,
  ) {
    subscriber.on('message', (from: string, shard: string) => {
      if (from !== channel) return;
      if (shard === ECHO) this.#echo?.();
      else this.#tell(shard);
    });
  }

  /** Calls back with the shard's `due` key on a wake-up, and with undefined when wake-ups may have been missed. */
  onWake(listener: (shard: string | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves with the first subscription, or after `timeoutMs`: polling works without wake-ups. */
  async subscribed(timeoutMs: number): Promise<void> {
    if (this.#isSubscribed || this.connection.isClosed) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      this.#waiting.add(done);
    });
  }

  /** The subscriber can be used, on a new socket. */
  async subscribe(): Promise<void> {
    if (this.connection.isClosed) return;
    clearInterval(this.#checkTimer);
    this.#checkTimer = setInterval(() => void this.#checkSubscriber(), SUBSCRIBER_CHECK_MS).unref();
    try {
      await this.subscriber.subscribe(this.channel);
    } catch (error) {
      if (!/NOPERM/.test((error as Error).message)) return; // It closed again; the next `ready` subscribes.
      this.warnOnce(
        `The user at ${this.connection.address} may not subscribe to ${this.channel}: jobs start up to 5 s late.`,
      );
    }
    if (this.connection.isClosed) return;
    this.#isSubscribed = true;
    for (const done of this.#waiting) done();
    // Wake-ups that were published before this are lost: every worker reads again.
    this.#tell(undefined);
  }

  /** The connection of commands is new. Whatever cut it may have cut the subscriber too, without a word. */
  afterOutage(): void {
    this.#tell(undefined);
    void this.#checkSubscriber();
  }

  stop(): void {
    clearInterval(this.#checkTimer);
    for (const done of this.#waiting) done();
  }

  /**
   * A subscriber sends nothing, so it would never notice a dead link; and on a Cluster a PING goes to another node. So the
   * process sends a message to its own channel, which must come back.
   */
  async #checkSubscriber(): Promise<void> {
    const { subscriber, connection } = this;
    if (subscriber.status !== 'ready' || !connection.isReady) return;
    const heard = new Promise<boolean>((resolve) => (this.#echo = () => resolve(true)));
    try {
      await connection.send(() => connection.commands.publish(this.channel, ECHO));
    } catch {
      return; // Trouble of the other connection, or publishing is not permitted.
    }
    const tooLate = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), connection.timeoutMs).unref());
    if ((await Promise.race([heard, tooLate])) || connection.isClosed) return;
    connection.replace(subscriber);
    this.#tell(undefined);
  }

  #tell(shard: string | undefined): void {
    for (const listener of this.#listeners) listener(shard);
  }
}
