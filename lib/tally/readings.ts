import { DelayQueueLogger } from '../delay-queue.logger.js';
import type { ModuleRef } from '@nestjs/core';
import type { DelayQueueInstances } from '../instance/delay-queue.instances.js';
import { connectionToken, getDelayQueueToken } from '../delay-queue.tokens.js';
import { DelayQueueInspector } from '../inspection/delay-queue.inspector.js';
import type { QueueCounts } from '../inspection/queue-counts.js';
import { clearTimeout, performance, setTimeout } from '../time-and-randomness.js';
import type { RedisConnection } from '../redis/redis.connection.js';
import { readServerFacts } from '../redis/server-check.js';

/** A scrape is answered within this time, whatever Redis does; Prometheus gives up after ten seconds. */
const LIMIT_MS = 2_000;
const MOST_QUEUES = 200;

/** What Redis says of one instance; empty when it did not say it in time. */
export interface Reading {
  readonly instance: string;
  readonly up: boolean;
  readonly memory: { readonly used: number; readonly max: number } | undefined;
  readonly queues: readonly { readonly queue: string; readonly counts: QueueCounts }[];
}

/** Reads Redis at a scrape: once for all metrics, and never while an earlier reading still runs. */
export class Readings {
  readonly #looks = new Map<string, Promise<Reading>>();
  readonly #logger = new DelayQueueLogger('DelayQueueMetrics');
  readonly #warned = new Set<string>();

  constructor(
    private readonly modules: ModuleRef,
    private readonly instances: DelayQueueInstances,
  ) {}

  /** Never rejects. */
  async all(): Promise<Reading[]> {
    return Promise.all([...this.instances.names].map((instance) => this.#inTime(instance)));
  }

  /** Seconds since the claim loop of each queue of this process was last answered. */
  *loops(): Iterable<{ instance: string; queue: string; age: number }> {
    const now = performance.now();
    for (const instance of this.instances.names) {
      for (const [queue, { lastAnswerAt }] of this.instances.runner(instance)?.workers ?? []) {
        yield { instance, queue, age: (now - lastAnswerAt) / 1_000 };
      }
    }
  }

  async #inTime(instance: string): Promise<Reading> {
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<Reading>((resolve) => {
      timer = setTimeout(() => resolve(nothing(instance)), LIMIT_MS);
    });
    try {
      return await Promise.race([this.#look(instance), limit]);
    } finally {
      clearTimeout(timer);
    }
  }

  #look(instance: string): Promise<Reading> {
    let look = this.#looks.get(instance);
    if (!look) {
      look = this.#read(instance)
        .catch(() => nothing(instance))
        .finally(() => this.#looks.delete(instance));
      this.#looks.set(instance, look);
    }
    return look;
  }

  async #read(instance: string): Promise<Reading> {
    const connection = this.modules.get<RedisConnection>(connectionToken(instance), { strict: false });
    if (!connection.isReady) return nothing(instance);
    const inspector = this.modules.get<DelayQueueInspector>(getDelayQueueToken(instance, DelayQueueInspector), {
      strict: false,
    });
    // A server that does not permit INFO can still be up.
    const facts = readServerFacts(connection).catch(() => undefined);
    const looks = this.#chosen(instance, await inspector.queues()).map(async (queue) => {
      // One spoilt queue, or one with another number of shards, says nothing of the others.
      const counts = await inspector.counts(queue).catch(() => undefined);
      return counts && { queue, counts };
    });
    const queues = (await Promise.all(looks)).filter((look) => look !== undefined);
    const server = await facts;
    return { instance, up: true, queues, memory: server && { used: server.usedMemory, max: server.maxMemory } };
  }

  /** Queues that this process works on come first, all of them: their number is bounded by the code that names them. */
  #chosen(instance: string, known: readonly string[]): string[] {
    const own = [...(this.instances.runner(instance)?.workers.keys() ?? [])];
    const all = [...new Set([...own, ...known])];
    if (all.length <= MOST_QUEUES) return all;
    const chosen = all.slice(0, Math.max(own.length, MOST_QUEUES));
    if (chosen.length < all.length && !this.#warned.has(instance)) {
      this.#warned.add(instance);
      this.#logger.warn(
        `Instance "${instance}" has ${all.length} queues: gauges tell of ${chosen.length} of them. Said once.`,
      );
    }
    return chosen;
  }
}

function nothing(instance: string): Reading {
  return { instance, up: false, memory: undefined, queues: [] };
}
