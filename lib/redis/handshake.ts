import type { Redis } from 'ioredis';
import type { ConnectionError } from '../delay-queue.errors.js';
import { clearTimeout, setTimeout } from '../time-and-randomness.js';
import { noDatabase } from './connection-trouble.js';
import type { RedisClient } from './redis.client.js';
import { isTransient } from './redis.errors.js';
import { destroySocket } from './sockets.js';

/** How long a connection is kept whose database cannot be selected: permissions and databases come back with another one. */
const REFUSED_MS = 2_000;

/**
 * What happens on each new socket before anything of ours is sent: the server answers in time, and says that the database is
 * the right one. ioredis selects the database too, but a refused SELECT is an event to it, after which it goes on with
 * database 0. It is asked for on each socket, because another server, or other permissions, may be behind it.
 */
export class Handshake {
  /** Of each client the socket on which its database is known to be selected. */
  readonly #selected = new Map<RedisClient, unknown>();
  readonly #timers = new Map<RedisClient, NodeJS.Timeout>();
  #isOver = false;

  constructor(
    private readonly db: number,
    private readonly address: string,
    private readonly timeoutMs: number,
  ) {}

  /** A socket is open. A server that accepts it and never answers would hold the client in `connect` for ever. */
  begin(client: RedisClient, tooLate: () => void): void {
    clearTimeout(this.#timers.get(client));
    this.#timers.set(client, setTimeout(tooLate, this.timeoutMs).unref());
  }

  /**
   * The server answered.
   *
   * @returns whether the database is selected; a refusal when it cannot be; undefined when this socket does not tell, and another one will
   */
  async selectDatabase(client: RedisClient): Promise<true | ConnectionError | undefined> {
    const stream = socketOf(client);
    if (this.db !== 0) {
      try {
        await (client as Redis).select(this.db);
      } catch (error) {
        if (this.#isOver || socketOf(client) !== stream) return undefined;
        clearTimeout(this.#timers.get(client));
        setTimeout(() => destroySocket({ stream }), REFUSED_MS).unref();
        // What is busy, or ends, says nothing of the database: the next socket is asked.
        return isTransient(error) ? undefined : noDatabase((error as Error).message, this.address, this.db);
      }
      this.#selected.set(client, stream);
    }
    clearTimeout(this.#timers.get(client));
    return true;
  }

  hasDatabase(client: RedisClient): boolean {
    return this.db === 0 || this.#selected.get(client) === socketOf(client);
  }

  /** Nothing is waited for any more: the connection is closed. */
  stop(): void {
    this.#isOver = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }
}

function socketOf(client: RedisClient): unknown {
  return (client as { stream?: unknown }).stream;
}
