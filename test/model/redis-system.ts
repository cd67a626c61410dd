import type { INestApplicationContext } from '@nestjs/common';
import type { ClaimedJob } from '../../lib/index.js';
import { later } from '../helpers/later.js';
import { Proxy } from '../helpers/proxy.js';
import { callsOf } from '../helpers/script-calls.js';
import { World } from '../helpers/world.js';
import { sidesOf, StoreSystem, WRITES } from './store-system.js';
import type { Side } from './system.js';

const CALLS = WRITES.map((script) => callsOf(script));

/** On a real Redis, where nobody sets the clock: what is stored is moved. Answers are lost by proxies before it. */
export class RedisSystem extends StoreSystem {
  readonly clockStands = false;

  private constructor(
    world: World,
    app: INestApplicationContext,
    processes: number,
    /** The producer's first. */
    private readonly proxies: readonly Proxy[],
  ) {
    super(world, app, processes);
  }

  /** @param lossy answers can be lost; each way through a proxy doubles the work of a call */
  static async open(processes: number, lossy: boolean): Promise<RedisSystem> {
    const world = await World.open();
    const sides = sidesOf(processes);
    const proxies = lossy ? await Promise.all(sides.map(() => Proxy.before(world.url))) : [];
    const connections = sides.map((_, n) => proxies[n]?.url ?? world.url);
    return new RedisSystem(world, await StoreSystem.boot(world, connections), processes, proxies);
  }

  async advance(ms: number, held: readonly ClaimedJob[]): Promise<void> {
    await later(this.world, this.queue, ms);
    // What release() puts a job back to. Each read of it is a Date of its own, so the job gets another one to read.
    for (const { job } of held)
      Object.defineProperty(job, 'dueAt', { value: new Date(job.dueAt.getTime() - ms), configurable: true });
    this.shift += ms;
    this.fastForward(ms);
  }

  loseNext(side: Side, what: 'answer' | 'request'): void {
    const proxy = this.proxies[side === 'producer' ? 0 : side + 1]!;
    let sent = false;
    proxy.judge = (direction, chunk) => {
      if (direction === 'reply' && !sent) return 'pass';
      if (direction === 'request' && (sent || !CALLS.some((calls) => calls(chunk)))) return 'pass';
      if (direction === 'request') sent = true;
      if (direction === 'request' && what === 'answer') return 'pass';
      proxy.judge = () => 'pass';
      return 'cut';
    };
  }

  loseNothing(): void {
    for (const proxy of this.proxies) proxy.judge = () => 'pass';
  }

  override async close(): Promise<void> {
    await this.app.close();
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
    await this.world.close();
  }
}
