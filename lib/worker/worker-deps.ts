import type { DelayQueueLogger } from '../delay-queue.logger.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import type { JobTracer } from '../delay-queue.tracer.js';
import type { ResolvedHandlerSettings } from '../handlers/handler-settings.js';
import type { Handler } from '../handlers/handler.js';
import type { Payloads } from '../job/payloads.js';
import type { StandardSchema } from '../job/schema.js';
import type { ShardStore } from '../redis/shard-store.js';
import type { FleetEvents } from './fleet-events.js';
import type { IsolationGate } from './isolation/isolation-gate.js';
import type { Probe } from './probe.js';
import type { RestWatch } from '../redis/rest-watch.js';
import type { SlotPool } from './slot-pool.js';

/** The parts that the worker of one shard uses. */
export interface ShardWorkerDeps {
  handler: Handler;
  settings: ResolvedHandlerSettings;
  store: ShardStore;
  /** Of the queue: its shards share it. */
  pool: SlotPool;
  /** Of the process. */
  gate: IsolationGate;
  /** Of the instance. */
  rest: RestWatch;
  deadLetters: ResolvedModuleOptions['deadLetters'];
  /** Default true. */
  heartbeats?: boolean;
  /** Jobs may be claimed before a slot is free. */
  prefetch: boolean;
  commandTimeoutMs: number;
  payloads: Payloads;
  contextProvider: ResolvedModuleOptions['contextProvider'];
  tracer?: JobTracer | undefined;
  /** Of a queue that keeps events for other processes. */
  fleet?: FleetEvents | undefined;
  schema: StandardSchema | undefined;
  probe: Probe;
  logger: DelayQueueLogger;
}
