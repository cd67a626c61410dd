import type { DelayQueueHealth } from '../health/delay-queue.health.js';
import { HistoryReader } from '../history/history-reader.js';
import type { DelayQueueInspector } from '../inspection/delay-queue.inspector.js';
import { ShardCalls } from '../inspection/shard-calls.js';
import type { InstanceContext } from '../instance/instance-context.js';
import type { DelayQueueProducer } from '../producer/delay-queue.producer.js';
import { queueNameOf } from '../job/queue-definition.js';
import { parseCounts } from '../redis/counts.protocol.js';
import type { ShardCounts } from '../redis/counts.protocol.js';
import { ShardCountError } from '../delay-queue.errors.js';
import { typedError } from '../redis/redis.errors.js';
import type { ShardStore } from '../redis/shard-store.js';
import { OneAtATime } from './one-at-a-time.js';
import type { PrivateParts } from './private-parts.js';
import { QueueStates } from './reads/queue-states.js';

/** What an instance is read and changed by. */
export interface InstanceSource {
  readonly name: string;
  readonly context: InstanceContext;
  readonly inspector: DelayQueueInspector;
  readonly health: DelayQueueHealth;
  readonly producer: DelayQueueProducer;
}

/** How long the names of the queues are believed. */
const NAMES_VALID_MS = 5_000;

/** One instance, as the dashboard looks at it. */
export class InstanceView {
  readonly name: string;
  readonly context: InstanceContext;
  readonly inspector: DelayQueueInspector;
  readonly health: DelayQueueHealth;
  readonly producer: DelayQueueProducer;
  readonly history: HistoryReader;
  readonly calls: ShardCalls;
  readonly states: QueueStates;
  /** Answers that cost Redis much, and that several tabs may ask for. */
  readonly shared = new OneAtATime();

  constructor(
    { name, context, inspector, health, producer }: InstanceSource,
    /** What is shown of payloads and errors. */
    readonly privateParts: PrivateParts,
  ) {
    this.name = name;
    this.context = context;
    this.inspector = inspector;
    this.health = health;
    this.producer = producer;
    this.history = new HistoryReader(context);
    this.calls = new ShardCalls(context);
    this.states = new QueueStates(this);
  }

  /** Sorted. */
  queueNames(): Promise<readonly string[]> {
    return this.shared.value('names', NAMES_VALID_MS, () => this.inspector.queues());
  }

  /** Was it ever used? One that was made a moment ago is asked for again. */
  async isKnown(queue: string): Promise<boolean> {
    return (await this.queueNames()).includes(queue) || (await this.inspector.queues()).includes(queue);
  }

  /**
   * What each shard of a queue holds, also of a queue for which this process has another number of shards.
   *
   * @throws InvalidQueueError, UnavailableError, StoredDataError, LayoutError
   */
  async countsOf(queue: string): Promise<readonly ShardCounts[]> {
    const look = (stores: readonly ShardStore[]) =>
      Promise.all(stores.map(async (store) => parseCounts(await store.call('counts', []))));
    try {
      return await look(this.context.stores(queueNameOf(queue))).catch((error: unknown) => {
        const typed = typedError(error, `queue "${queue}"`);
        if (typed instanceof ShardCountError) return look(this.context.storesFor(queue, typed.stored));
        throw error;
      });
    } catch (error) {
      throw typedError(error, `the look at queue "${queue}"`);
    }
  }
}
