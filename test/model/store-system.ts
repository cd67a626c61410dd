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
import { runnerOf } from '../../lib/testing/application.js';
import { eachItsOwnProcess } from '../helpers/processes.js';
import type { World } from '../helpers/world.js';
import { HOUR } from './system.js';
import type { Side, Stored, System } from './system.js';
import { BACKOFF } from './workers.js';

/** Scripts that change something: what is lost on the way to them, or back, matters. */
export const WRITES = [
  'enqueue',
  'cancel',
  'reschedule',
  'signal',
  'update',
  'requeueDead',
  'remove',
  'step',
  'extend',
] as const;

/** The name of the instance behind a side; the producer is the unnamed one. */
export function instanceOf(side: Side): string | undefined {
  return side === 'producer' ? undefined : `process ${side}`;
}

/** The producer and so many processes. */
export function sidesOf(processes: number): Side[] {
  return ['producer', ...Array.from({ length: processes }, (_, n) => n)];
}

/**
 * One Nest application over some store: the unnamed instance is the producer, and each named one is a process of its own,
 * with its own connections. What is stored is read through the client of the world.
 */
export abstract class StoreSystem implements System {
  queue = '';
  readonly producer: DelayQueueProducer;
  readonly inspector: DelayQueueInspector;
  readonly consumers: readonly DelayQueueConsumer[];
  #began = 0;
  /** By how much stored times were moved into the past. */
  protected shift = 0;
  protected withLimits = false;

  protected constructor(
    protected readonly world: World,
    protected readonly app: INestApplicationContext,
    processes: number,
  ) {
    this.producer = app.get(DelayQueueProducer);
    this.inspector = app.get(DelayQueueInspector);
    this.consumers = Array.from({ length: processes }, (_, n) =>
      app.get<DelayQueueConsumer>(getDelayQueueToken(instanceOf(n), DelayQueueConsumer)),
    );
  }

  /** @param connections of each side, the producer's first */
  protected static boot(world: World, connections: readonly string[]): Promise<INestApplicationContext> {
    const forRoot = (connection: string, n: number) =>
      DelayQueueModule.forRoot({
        ...(n > 0 && { name: instanceOf(n - 1) }),
        connection,
        prefix: world.prefix,
        shutdownHooksWarning: false,
        drainTimeout: 0,
        defaults: { attempts: 3, backoff: fixed(BACKOFF * HOUR) },
      });
    @Module({ imports: connections.map(forRoot) })
    class ModelModule {}
    return eachItsOwnProcess(() =>
      NestFactory.createApplicationContext(ModelModule, { logger: false, abortOnError: false }),
    );
  }

  abstract readonly clockStands: boolean;
  abstract advance(ms: number, held: readonly ClaimedJob[]): Promise<void>;
  abstract loseNext(side: Side, what: 'answer' | 'request'): void;
  abstract loseNothing(): void;

  /** Pauses in claiming, which processes measure by their own clocks. */
  protected fastForward(ms: number): void {
    for (let n = 0; n < this.consumers.length; n++) {
      runnerOf(this.app, instanceOf(n)!).gate.fastForward(ms);
    }
  }

  async begin(): Promise<void> {
    this.queue = `model-${queues++}`;
    this.shift = 0;
    this.#began = await this.world.now();
    if (this.withLimits) await this.world.redis.hset(this.key('meta'), 'needs', 'limits');
  }

  since(time: Date | number): number {
    return Number(time) + this.shift - this.#began;
  }

  moment(sinceMs: number): number {
    return sinceMs - this.shift + this.#began;
  }

  async expireLease(id: string): Promise<void> {
    const { redis } = this.world;
    const claim = (await redis.zscore(this.key('running'), id))!;
    const deadline = Number(await redis.zscore(this.key('leases'), claim));
    await redis.zadd(this.key('leases'), 'XX', (await this.world.now()) - 1 + (deadline % 1), claim);
  }

  async stored(): Promise<Stored> {
    const together = this.world.together().time();
    for (const index of ['due', 'running', 'quarantine', 'dead', 'leases']) {
      together.zrange(this.key(index), '0', '-1', 'WITHSCORES');
    }
    together.hgetall(this.key('attempts'));
    const answers = (await together.exec())!.map(([, answer]) => answer as string[]);
    const [time, due, running, quarantine, dead, leases] = answers;
    const records = Object.entries(answers[6] as unknown as Record<string, string>);
    const scores = (flat: string[]) =>
      flat.flatMap((id, n) => (n % 2 === 0 ? [[id, Number(flat[n + 1])] as const] : []));
    const times = (flat: string[]) => new Map(scores(flat).map(([id, ms]) => [id, this.since(ms)]));
    return {
      now: this.since(Number(time![0]) * 1000 + Math.floor(Number(time![1]) / 1000)),
      due: times(due!),
      running: new Map(scores(running!)),
      leases: new Map(scores(leases!).map(([token, deadline]) => [Number(token), deadline % 1 !== 0])),
      charged: new Map(records.map(([id, record]) => [id, Number(record.split(' ')[0])])),
      quarantine: times(quarantine!),
      dead: times(dead!),
    };
  }

  problems(): Promise<string[]> {
    return this.world.problems(this.queue);
  }

  async end(): Promise<void> {
    this.loseNothing();
    await this.world.redis.unlink(...this.world.shardKeys(this.queue).all);
  }

  async close(): Promise<void> {
    await this.app.close();
    await this.world.close();
  }

  protected key(name: string): string {
    return this.world.key(this.queue, name);
  }
}

let queues = 0;
