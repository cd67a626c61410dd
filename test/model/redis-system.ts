import { Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  DelayQueueConsumer,
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  fixed,
  getDelayQueueToken,
} from '../../lib/index.js';
import type { ClaimedJob } from '../../lib/index.js';
import { later } from '../helpers/later.js';
import { Proxy } from '../helpers/proxy.js';
import { callsOf } from '../helpers/script-calls.js';
import { World } from '../helpers/world.js';
import { HOUR } from './system.js';
import type { Side, Stored, System } from './system.js';
import { BACKOFF } from './workers.js';

const WRITES = (['enqueue', 'cancel', 'reschedule', 'requeueDead', 'remove', 'step', 'extend'] as const).map(callsOf);

/**
 * One Nest application over a real Redis: the unnamed instance is the producer, and each named one is a process of its
 * own, with its own connections, which may go through proxies that lose answers.
 */
export class RedisSystem implements System {
  queue = '';
  readonly producer: DelayQueueProducer;
  readonly inspector: DelayQueueInspector;
  readonly consumers: readonly DelayQueueConsumer[];
  #began = 0;
  /** By how much stored times were moved into the past. */
  #shift = 0;

  private constructor(
    private readonly world: World,
    private readonly app: INestApplicationContext,
    processes: number,
    /** The producer's first. */
    private readonly proxies: readonly Proxy[],
  ) {
    this.producer = app.get(DelayQueueProducer);
    this.inspector = app.get(DelayQueueInspector);
    this.consumers = Array.from({ length: processes }, (_, n) =>
      app.get<DelayQueueConsumer>(getDelayQueueToken(`process ${n}`, DelayQueueConsumer)),
    );
  }

  /** @param lossy answers can be lost; each way through a proxy doubles the work of a call */
  static async open(processes: number, { lossy = false } = {}): Promise<RedisSystem> {
    const world = await World.open();
    const proxies: Proxy[] = [];
    for (let n = 0; lossy && n <= processes; n++) proxies.push(await Proxy.before(world.url));
    const forRoot = (_: unknown, n: number) =>
      DelayQueueModule.forRoot({
        ...(n > 0 && { name: `process ${n - 1}` }),
        connection: proxies[n]?.url ?? world.url,
        prefix: world.prefix,
        shutdownHooksWarning: false,
        drainTimeout: 0,
        defaults: { attempts: 3, backoff: fixed(BACKOFF * HOUR) },
      });
    @Module({ imports: Array.from({ length: processes + 1 }, forRoot) })
    class ModelModule {}
    const app = await NestFactory.createApplicationContext(ModelModule, { logger: false, abortOnError: false });
    return new RedisSystem(world, app, processes, proxies);
  }

  async begin(): Promise<void> {
    this.queue = `model-${queues++}`;
    this.#shift = 0;
    this.#began = await this.world.now();
  }

  async advance(ms: number, held: readonly ClaimedJob[]): Promise<void> {
    await later(this.world, this.queue, ms);
    // What release() puts a job back to.
    for (const { job } of held) job.dueAt.setTime(job.dueAt.getTime() - ms);
    this.#shift += ms;
  }

  since(time: Date | number): number {
    return Number(time) + this.#shift - this.#began;
  }

  moment(sinceMs: number): number {
    return sinceMs - this.#shift + this.#began;
  }

  loseNext(side: Side, what: 'answer' | 'request'): void {
    const proxy = this.proxies[side === 'producer' ? 0 : side + 1]!;
    let sent = false;
    proxy.judge = (direction, chunk) => {
      if (direction === 'reply' && !sent) return 'pass';
      if (direction === 'request' && (sent || !WRITES.some((calls) => calls(chunk)))) return 'pass';
      if (direction === 'request') sent = true;
      if (direction === 'request' && what === 'answer') return 'pass';
      proxy.judge = () => 'pass';
      return 'cut';
    };
  }

  async expireLease(id: string): Promise<void> {
    const { redis } = this.world;
    const claim = (await redis.zscore(this.#key('running'), id))!;
    const deadline = Number(await redis.zscore(this.#key('leases'), claim));
    await redis.zadd(this.#key('leases'), 'XX', (await this.world.now()) - 1 + (deadline % 1), claim);
  }

  async stored(): Promise<Stored> {
    const pipeline = this.world.redis.pipeline().time();
    for (const index of ['due', 'running', 'suspects', 'dead']) {
      pipeline.zrange(this.#key(index), '0', '-1', 'WITHSCORES');
    }
    const [time, due, running, suspects, dead] = (await pipeline.exec())!.map(([, answer]) => answer as string[]);
    const scores = (flat: string[]) =>
      flat.flatMap((id, n) => (n % 2 === 0 ? [[id, Number(flat[n + 1])] as const] : []));
    const times = (flat: string[]) => new Map(scores(flat).map(([id, ms]) => [id, this.since(ms)]));
    return {
      now: this.since(Number(time![0]) * 1000 + Math.floor(Number(time![1]) / 1000)),
      due: times(due!),
      running: new Map(scores(running!)),
      suspects: times(suspects!),
      dead: times(dead!),
    };
  }

  problems(): Promise<string[]> {
    return this.world.problems(this.queue);
  }

  loseNothing(): void {
    for (const proxy of this.proxies) proxy.judge = () => 'pass';
  }

  async end(): Promise<void> {
    this.loseNothing();
    await this.world.redis.unlink(...this.world.shardKeys(this.queue).fixed);
  }

  async close(): Promise<void> {
    await this.app.close();
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
    await this.world.close();
  }

  #key(name: string): string {
    return this.world.key(this.queue, name);
  }
}

let queues = 0;
