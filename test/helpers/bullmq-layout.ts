import type { Redis } from 'ioredis';

export interface BullmqJob {
  readonly id: string;
  readonly name?: string;
  readonly data?: unknown;
  /** Ms from now; without it the job waits in the list. */
  readonly delay?: number;
  readonly opts?: Record<string, unknown>;
  readonly fields?: Record<string, string>;
  readonly priority?: number;
}

/** Writes jobs as BullMQ 5 and 6 store them, and runs them as its workers do. */
export class BullmqLayout {
  constructor(
    private readonly redis: Redis,
    readonly prefix: string,
    readonly queue: string,
  ) {}

  key(name: string): string {
    return `${this.prefix}:${this.queue}:${name}`;
  }

  async add(jobs: readonly BullmqJob[], now: number): Promise<void> {
    for (let at = 0; at < jobs.length; at += 2_000) {
      const pipeline = this.redis.pipeline();
      pipeline.hset(this.key('meta'), 'opts.maxLenEvents', '10000', 'version', 'bullmq:6.7.0');
      for (const job of jobs.slice(at, at + 2_000)) {
        const { id, name = 'job', data = id, delay = 0, opts = {}, fields = {}, priority } = job;
        pipeline.hset(this.key(id), {
          name,
          data: JSON.stringify(data),
          opts: JSON.stringify({ attempts: 0, ...opts }),
          timestamp: now,
          delay,
          priority: priority ?? 0,
          ...fields,
        });
        if (delay > 0) pipeline.zadd(this.key('delayed'), String(BigInt(now + delay) * 4_096n), id);
        else if (priority !== undefined) pipeline.zadd(this.key('prioritized'), priority * 2 ** 32, id);
        else pipeline.lpush(this.key('wait'), id);
      }
      await pipeline.exec();
    }
  }

  /** Takes the next waiting job and is done with it, as a worker does; its id. */
  async runOne(): Promise<string | undefined> {
    const script = `local id = redis.call('RPOP', KEYS[1]) if id then redis.call('DEL', KEYS[2] .. id) end return id`;
    return ((await this.redis.eval(script, 2, this.key('wait'), this.key(''))) as string | null) ?? undefined;
  }

  /** What is left: keys but those that hold no job. */
  async left(): Promise<string[]> {
    const keys = await this.redis.keys(`${this.prefix}:${this.queue}:*`);
    return keys.map((key) => key.slice(this.key('').length)).filter((name) => !['meta', 'marker'].includes(name));
  }
}
