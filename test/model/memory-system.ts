import type { INestApplicationContext } from '@nestjs/common';
import { connectionToken } from '../../lib/delay-queue.tokens.js';
import { DEFAULT_INSTANCE } from '../../lib/handlers/on-delayed.decorator.js';
import { limitedSource, scriptSource } from '../../lib/lua/scripts.js';
import { MemoryStore } from '../../lib/memory/memory.store.js';
import type { RedisConnection } from '../../lib/redis/redis.connection.js';
import { VirtualClock } from '../../lib/testing/virtual-clock.js';
import { World } from '../helpers/world.js';
import { instanceOf, sidesOf, StoreSystem, WRITES } from './store-system.js';
import type { Side } from './system.js';

const SOURCES = new Set(WRITES.flatMap((name) => [scriptSource(name, true), limitedSource(name, true)]));

const SESSION_AT = 15;

/**
 * On a store in memory. Its clock stands still and is set, as the test kit does it: so every time is exact, and all of what
 * one sequence does between two advances happens in one millisecond.
 */
export class MemorySystem extends StoreSystem {
  readonly clockStands = true;
  readonly #clock: VirtualClock;
  #loss: { readonly connection: RedisConnection; readonly what: 'answer' | 'request' } | undefined;

  private constructor(world: World, app: INestApplicationContext, processes: number, store: MemoryStore) {
    super(world, app, processes);
    this.#clock = new VirtualClock(store.clock.now());
    store.clock = this.#clock;
    const run = store.script.bind(store);
    store.script = (source, keys, args) => {
      const loss = this.#loss;
      // The session bears the name of its process.
      const isLost = loss && SOURCES.has(source) && keys[SESSION_AT]!.includes(`:${loss.connection.processName}.`);
      if (!isLost) return run(source, keys, args);
      this.#loss = undefined;
      const reply = loss.what === 'answer' ? run(source, keys, args) : null;
      const { commands } = loss.connection;
      commands.disconnect();
      setImmediate(() => {
        // The library connects again by itself, if later: it may do so now for a loss before this one.
        if (commands.status === 'end') void commands.connect();
      });
      return reply;
    };
  }

  static async open(processes: number): Promise<MemorySystem> {
    const world = await World.open('memory://');
    const app = await StoreSystem.boot(
      world,
      sidesOf(processes).map(() => world.url),
    );
    return new MemorySystem(world, app, processes, MemoryStore.named(world.url));
  }

  /** The same, but each queue is one that uses limits, without having any. */
  static async openWithLimits(processes: number): Promise<MemorySystem> {
    const system = await MemorySystem.open(processes);
    system.withLimits = true;
    return system;
  }

  async advance(ms: number): Promise<void> {
    this.#clock.set(this.#clock.now() + ms);
    // As if somebody had looked all the time: otherwise this is a jump of the clock, after which no lease is believed over.
    const meta = this.key('meta');
    const { redis } = this.world;
    if (await redis.hexists(meta, 'seenAt')) await redis.hset(meta, 'seenAt', this.#clock.now());
    this.fastForward(ms);
  }

  loseNext(side: Side, what: 'answer' | 'request'): void {
    const connection = this.app.get<RedisConnection>(connectionToken(instanceOf(side) ?? DEFAULT_INSTANCE));
    this.#loss = { connection, what };
  }

  loseNothing(): void {
    this.#loss = undefined;
  }
}
