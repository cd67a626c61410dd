import type { Redis } from 'ioredis';
import { performance } from '../time-and-randomness.js';
import type { RedisClient } from '../redis/redis.client.js';
import { MOVE_TIME } from './move-time.js';
import type { MovedShard, TestStore } from './test-store.js';

/** A real Redis: nobody can set its clock, so that what is stored is moved into the past instead. */
export class RedisTestStore implements TestStore {
  readonly standsStill = false;
  /** Of the server's clock before this process's one, which is not asked: fake timers may have replaced it. */
  #ahead = performance.timeOrigin;
  #moved = 0;
  #client: Redis | undefined;

  constructor(private readonly ofTheApplication: RedisClient) {}

  serverNow(): number {
    return Math.floor(performance.now() + this.#ahead);
  }

  now(): number {
    return this.serverNow() + this.#moved;
  }

  /** Over a connection of its own, which an outage of the application's does not concern and nobody has to close. */
  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.#client) return work();
    const client = (this.ofTheApplication as Redis).duplicate();
    client.on('error', () => undefined);
    try {
      await client.connect();
      this.#client = client;
      const [seconds, micros] = await client.time();
      this.#ahead = Number(seconds) * 1000 + Number(micros) / 1000 - performance.now();
      return await work();
    } finally {
      this.#client = undefined;
      client.disconnect();
    }
  }

  async command(name: string, ...args: string[]): Promise<unknown> {
    const reply = await this.#client!.call(name, ...args);
    // Newer protocols answer members and scores in pairs.
    return Array.isArray(reply) ? reply.flat().map(String) : reply;
  }

  async move(ms: number, shards: readonly MovedShard[]): Promise<void> {
    this.#moved += ms;
    for (const { keys, kept } of shards) {
      await this.#client!.eval(MOVE_TIME, keys.length, ...keys, ms, ...kept.map(String));
    }
  }
}
