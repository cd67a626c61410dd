import { channels } from '../delay-queue.channels.js';
import type { ConnectionError } from '../delay-queue.errors.js';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import { readable } from '../job/duration.js';
import { clearTimeout, performance, setTimeout } from '../time-and-randomness.js';
import { driverMessage, examine, refusalOf } from './connection-trouble.js';
import { ENDING, OutageLog } from './outage-log.js';
import { skipReadyCheck } from './redis.client.js';
import type { RedisClient } from './redis.client.js';

/** How long a server may say nothing to a new client before the watch asks why. */
const FIRST_SILENCE_MS = 500;
/** The same after a connection that worked: an outage is likelier than another language. */
const SILENCE_MS = 1_000;
/** A server that did not answer is not examined more often. */
const EXAMINED_AGAIN_MS = 10_000;

/** The connection that is watched. */
export interface WatchedConnection {
  readonly instance: string;
  readonly address: string;
  readonly commands: RedisClient;
  readonly isReady: boolean;
  readonly isClosed: boolean;
  readonly isInterrupted: boolean;
  readonly isInMemory: boolean;
  /** The application is closing, and the connection will be closed soon. */
  readonly isEnding: boolean;
}

/**
 * Watches a connection: when an outage begins and ends, its reason, and whether waiting can help. It logs when an outage begins
 * and when it ends, and publishes both.
 */
export class ConnectionWatch {
  /** Why nothing can be sent, as far as it is known. */
  #trouble: string | undefined;
  /** The same, when no waiting helps. */
  #refusal: ConnectionError | undefined;
  /** Rejects the boot that waits for the connection. */
  #failBoot: ((why: Error) => void) | undefined;
  #outageSince: number | undefined;
  /** Until a write succeeds: connections come and go meanwhile, because only a new one can find a new master. */
  #refusing = false;
  #wasReady = false;
  /** The driver closes the connection of commands, because it asked for INFO in vain; on the next one it does not ask. */
  #withoutInfo = false;
  #firstLook: NodeJS.Timeout | undefined;
  #examinedAt = -Infinity;
  #examining: Promise<void> | undefined;
  readonly #warned = new Set<string>();
  readonly #logger: DelayQueueLogger;
  readonly #outages: OutageLog;

  constructor(
    private readonly connection: WatchedConnection,
    private readonly db: number,
    /** Says nothing: another connection to the same server is watched too. */
    private readonly isSilent: boolean,
  ) {
    this.#logger = DelayQueueLogger.of(connection.instance);
    this.#outages = new OutageLog(this.#logger, connection.address);
  }

  /** Why the connection cannot be used until settings or the server are changed, if that is known. */
  get refusal(): ConnectionError | undefined {
    return this.#refusal;
  }

  /** The last error of the driver, as long as it cannot connect. */
  get driverSaid(): string | undefined {
    return this.#trouble;
  }

  get trouble(): string {
    return this.#refusal?.message ?? this.#trouble ?? 'not connected';
  }

  /** The clients begin to connect. */
  start(): void {
    this.#firstLook ??= setTimeout(() => void this.#examine(), FIRST_SILENCE_MS).unref();
  }

  /** @throws ConnectionError at once when no waiting helps; what `stop()` was given, when the connection is closed */
  async whileBooting(usable: Promise<void>): Promise<void> {
    try {
      await Promise.race([usable, new Promise((_, reject) => (this.#failBoot = reject))]);
    } finally {
      this.#failBoot = undefined;
    }
  }

  /** The connection is closed, and nothing is logged about it any more. */
  stop(why: Error): void {
    clearTimeout(this.#firstLook);
    this.#outages.stop();
    // The driver's `connect()` never ends for a Cluster that was closed between its first answer and `ready`.
    this.#failBoot?.(why);
  }

  /** Commands can be sent. */
  ready(): void {
    this.#wasReady = true;
    if (!this.#refusing) this.#recovered();
  }

  /** The socket of commands closed. */
  commandsClosed(): void {
    if (this.#withoutInfo) this.#withoutInfo = false;
    else this.#unreachable('is not reachable (the connection closed)');
  }

  /** An error of the driver while it connects. Each client may be refused for itself. */
  driverFailed(client: RedisClient, error: Error): void {
    const { commands, address } = this.connection;
    if (skipReadyCheck(client, error)) {
      this.#withoutInfo ||= client === commands;
      return;
    }
    const refusal = refusalOf(error, address, this.db);
    if (refusal) return this.refused(client, refusal);
    if (client !== commands) return;
    this.#trouble = driverMessage(error);
    this.#unreachable(`is not reachable (${this.#trouble})`);
  }

  /** A call was refused because of the state of the server: it is read-only, loads its data, is busy. */
  callRefused(what: string): void {
    this.#outage(what);
    this.#refusing = true;
  }

  /** A call that writes succeeded. */
  written(): void {
    if (this.#refusing) this.#recovered();
  }

  /** Waiting does not help. This is logged once in each outage, even if the outage was logged before. */
  refused(client: RedisClient, refusal: ConnectionError): void {
    const { connection } = this;
    if (connection.isClosed || this.#refusal?.message === refusal.message) return;
    if (this.#failBoot || !connection.isReady) this.#refusal = refusal;
    if (this.#failBoot) return this.#failBoot(refusal); // the boot throws it
    if (this.isSilent) return;
    if (client !== connection.commands && connection.isReady) {
      return this.warnOnce(`${refusal.message} Without wake-ups jobs start up to 5 s late.`);
    }
    this.#lost(refusal.message);
    this.#outages.loggedOtherwise();
    this.#logger.error(`${refusal.message} ${connection.isEnding ? ENDING : 'Retrying; jobs wait.'}`);
  }

  warnOnce(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#logger.warn(message);
  }

  /**
   * The server may be there and speak another language, as with TLS against a plain port. Before any connection has
   * worked the server is examined first, and the outage is logged afterwards: otherwise the log would name a
   * consequence before its cause.
   */
  #unreachable(what: string): void {
    const away = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(this.#trouble ?? '');
    if (away || this.#wasReady) this.#outage(what);
    if (away) return;
    if (!this.#wasReady) void this.#examine().then(() => this.connection.isReady || this.#outage(what));
    else if (performance.now() - this.#outageSince! > SILENCE_MS) void this.#examine();
  }

  /** Once in a while, because it needs connections of its own. */
  async #examine(): Promise<void> {
    const { connection } = this;
    if (this.#examining) return this.#examining;
    if (connection.isClosed || connection.isReady || connection.isInMemory || connection.isInterrupted) return;
    if (this.#refusal) return;
    if (performance.now() - this.#examinedAt < EXAMINED_AGAIN_MS) return;
    this.#examinedAt = performance.now();
    this.#examining = examine(connection.commands, connection.address)
      .catch(() => undefined) // It was to find a better reason; without one, that of the driver holds.
      .then((refusal) => {
        if (refusal && !connection.isReady) this.refused(connection.commands, refusal);
      })
      .finally(() => (this.#examining = undefined));
    await this.#examining;
  }

  #outage(what: string): void {
    if (this.#outageSince !== undefined || this.connection.isClosed || this.isSilent) return;
    this.#lost(what);
    const isBoot = this.#failBoot !== undefined;
    this.#outages.begins(what, this.connection.isEnding, isBoot && process.env['NODE_ENV'] === 'test');
  }

  #lost(reason: string): void {
    if (this.#outageSince !== undefined) return;
    this.#outageSince = performance.now();
    const { instance, address } = this.connection;
    if (channels.connectionLost.hasSubscribers) channels.connectionLost.publish({ instance, address, reason });
  }

  #recovered(): void {
    this.#refusing = false;
    this.#refusal = undefined;
    this.#trouble = undefined;
    if (this.#outageSince === undefined) return;
    const outageMs = performance.now() - this.#outageSince;
    this.#outageSince = undefined;
    const { instance, address } = this.connection;
    if (channels.connectionRestored.hasSubscribers)
      channels.connectionRestored.publish({ instance, address, outageMs });
    this.#outages.ends(readable(outageMs));
  }
}
