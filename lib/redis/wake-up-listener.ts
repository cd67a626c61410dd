import { clearInterval, clearTimeout, setInterval, setTimeout } from '../time-and-randomness.js';
import { nodeOf } from './redis.client.js';
import type { RedisClient } from './redis.client.js';
import { isNotPermitted, unknownCommand } from './redis.errors.js';

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
  send<T>(call: () => Promise<T>, key?: string): Promise<T>;
  /** Cuts a client off, which connects anew. */
  replace(client: RedisClient): void;
}

/**
 * Where the wake-ups of this process are received: a client that subscribes to the channel of the process, and tells the
 * workers when a job has become the earliest of its shard. Without wake-ups jobs start late: workers poll every few seconds.
 */
export class WakeUpListener {
  #isSubscribed = false;
  #isRefused = false;
  readonly #waiting = new Set<() => void>();
  readonly #listeners = new Set<(shard: string | undefined) => void>();
  readonly #echoes = new Set<() => void>();
  #checkTimer: NodeJS.Timeout | undefined;
  /** Until SUBSCRIBE is answered: its link may be dead. */
  #lateTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly subscriber: RedisClient,
    private readonly channel: string,
    private readonly connection: WakeUpConnection,
    private readonly warnOnce: (message: string) => void,
  ) {
    subscriber.on('message', (from: string, shard: string) => {
      if (from !== channel) return;
      if (shard !== ECHO) return this.#tell(shard);
      for (const heard of this.#echoes) heard();
    });
  }

  /** Calls back with the shard's `due` key on a wake-up, and with undefined when wake-ups may have been missed. */
  onWake(listener: (shard: string | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves with the first subscription or its refusal, or after `timeoutMs`: polling works without wake-ups. */
  async subscribed(timeoutMs: number): Promise<void> {
    if (this.#isSubscribed || this.#isRefused || this.connection.isClosed) return;
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
    this.#checkTimer = setInterval(() => this.#check(), SUBSCRIBER_CHECK_MS).unref();
    clearTimeout(this.#lateTimer);
    this.#lateTimer = setTimeout(() => this.connection.replace(this.subscriber), this.connection.timeoutMs).unref();
    try {
      await this.subscriber.subscribe(this.channel);
      this.#isRefused = false;
    } catch (error) {
      this.#isRefused = this.#isForbidden(error, 'SUBSCRIBE', 'subscribe to');
      if (!this.#isRefused) return; // It closed again, or was cut off; the next `ready` subscribes.
    } finally {
      clearTimeout(this.#lateTimer);
    }
    if (this.connection.isClosed) return;
    this.#isSubscribed = !this.#isRefused;
    for (const done of this.#waiting) done();
    // Wake-ups that were published before this are lost: every worker reads again.
    this.#tell(undefined);
    if (this.#isSubscribed) void this.#awaitEcho();
  }

  /** The connection of commands is new. Whatever cut it may have cut the subscriber too, without a word. */
  afterOutage(): void {
    this.#tell(undefined);
    if (this.#isSubscribed) void this.#awaitEcho();
  }

  stop(): void {
    clearInterval(this.#checkTimer);
    clearTimeout(this.#lateTimer);
    for (const done of this.#waiting) done();
  }

  /** Nothing comes back where subscribing was refused; the right to it may have been given meanwhile. */
  #check(): void {
    void (this.#isRefused ? this.subscribe() : this.#awaitEcho());
  }

  /**
   * A subscriber sends nothing, so it would never notice a dead link; and on a Cluster a PING goes to another node. So the
   * process sends a message to its own channel, which must come back.
   */
  async #awaitEcho(): Promise<void> {
    const { subscriber, connection } = this;
    if (subscriber.status !== 'ready' || !connection.isReady) return;
    let echo = () => {};
    const heard = new Promise<boolean>((resolve) => (echo = () => resolve(true)));
    this.#echoes.add(echo);
    try {
      // Each node of a Cluster passes it on. It goes to one that is replaced where it keeps silent: the driver would take any, also one that no
      // other call goes to, over a link that nobody knows to be dead.
      const node = nodeOf(connection.commands, this.channel) ?? connection.commands;
      await connection.send(() => node.publish(this.channel, ECHO), this.channel);
      const tooLate = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), connection.timeoutMs).unref());
      if ((await Promise.race([heard, tooLate])) || connection.isClosed) return;
      connection.replace(subscriber);
      this.#tell(undefined);
    } catch (error) {
      // Scripts cannot say that their wake-ups are refused. What is no refusal is trouble of the other connection.
      this.#isForbidden(error, 'PUBLISH', 'publish to');
    } finally {
      this.#echoes.delete(echo);
    }
  }

  /** Whether the server refuses this for good, of which the log is told. */
  #isForbidden(error: unknown, command: string, verb: string): boolean {
    const { address } = this.connection;
    if (isNotPermitted(error)) this.#warn(`The user at ${address} may not ${verb} ${this.channel}`);
    else if (unknownCommand(error)) this.#warn(`Redis at ${address} does not know ${command}`);
    else return false;
    return true;
  }

  #warn(what: string): void {
    this.warnOnce(`${what}: jobs start up to 5 s late. docs/operations.md, "A user of its own", lists what is needed.`);
  }

  #tell(shard: string | undefined): void {
    for (const listener of this.#listeners) listener(shard);
  }
}
