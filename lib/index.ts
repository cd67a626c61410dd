export { DelayQueueModule } from './delay-queue.module.js';
export type {
  DelayQueueOptionsFactory,
  DelayQueueRootAsyncOptions,
  DelayQueueRootOptions,
} from './delay-queue.module.js';
export type {
  DeadLetterOptions,
  DelayQueueModuleOptions,
  FleetEventsOptions,
  QueueSettings,
} from './delay-queue.options.js';
export type { ClusterConnection, ConnectionOption, RedisInstance } from './redis/connection-option.js';
export { getDelayQueueToken, InjectDelayQueue } from './delay-queue.tokens.js';
export * from './delay-queue.errors.js';
export { DelayQueueExceptionFilter } from './http/delay-queue.exception-filter.js';

export { DelayQueueProducer } from './producer/delay-queue.producer.js';
export type {
  CancelResult,
  ChangeResult,
  RescheduleResult,
  SignalResult,
  UpdateResult,
} from './producer/change-results.js';
export type { SchedulePauseResult, UnscheduleResult } from './producer/schedule.producer.js';
export type { ScheduleResult } from './recurring/schedule-calls.js';
export type { ScheduleListOptions, SchedulePage, ScheduleSnapshot } from './recurring/schedule-list.js';
export type {
  CronTimes,
  EveryTimes,
  OccurrenceOptions,
  ScheduleOptions,
  ScheduleTimes,
} from './recurring/schedule-options.js';
export type { BulkOptions } from './producer/bulk-enqueue.js';
export type { EnqueueResult } from './job/enqueue-result.js';
export { DelayQueue, getQueueToken, InjectQueue } from './producer/delay-queue.js';
export type { QueueInjection, QueueOf } from './producer/delay-queue.js';
export { currentJob } from './job/current-job.js';
export type { ContextProvider } from './job/current-job.js';
export type { EnqueueOptions, OnDead, OnDuplicate } from './job/enqueue-options.js';
export { defineQueue } from './job/queue-definition.js';
export type {
  DelayQueues,
  HandledPayloadOf,
  KeepCompletedOptions,
  PayloadOf,
  QueueDefaults,
  QueueDefinition,
  QueueName,
  QueueOptions,
  QueueRef,
} from './job/queue-definition.js';
export type { GroupOption } from './instance/job-shards.js';
export type { GroupLimits, QueueLimits, RateLimit } from './job/queue-limits.js';
export type { DelayQueueTypes, Given } from './job/payload-types.js';
export type { StandardSchema } from './job/schema.js';
export type { LocalTime } from './job/wall-clock.js';
export type { Duration } from './job/duration.js';
export type { Durability, ReplicaDurability } from './job/durability.js';
export type { CodecOption, PayloadCodec } from './job/payload-codec.js';
export { exponential, fixed, steps } from './job/backoff.js';
export type { Backoff, ExponentialBackoff, ExponentialOptions, FixedBackoff, StepsBackoff } from './job/backoff.js';
export { DelayedJob } from './job/delayed-job.js';
export type { JobSchedule } from './job/delayed-job.js';
export type { MissedPolicy, OverlapPolicy } from './job/occurrence-header.js';
export type { DeadReason } from './job/error-record.js';
export type { JobSnapshot } from './redis/job-snapshot.js';
export type { JobState } from './redis/letters.js';

export { BatchJob } from './handlers/batch-job.js';
export type { BatchOptions } from './handlers/batch-options.js';
export type { HandlerDecorator } from './handlers/handler-types.js';
export { OnDelayed } from './handlers/on-delayed.decorator.js';
export { Job, JobPayload } from './handlers/job-params.decorator.js';
export type { JobPayloadOptions } from './handlers/job-params.decorator.js';
export type { GlobalEnhancers } from './handlers/global-enhancers.js';
export type { HandlerOptions, RepeatOptions } from './handlers/handler.js';
export { DiscardJob, SnoozeJob } from './handlers/outcomes.js';
export type { SnoozeOptions } from './handlers/outcomes.js';
export {
  DELAY_QUEUE_CONTEXT,
  DelayQueueBatchRequest,
  DelayQueueRequest,
  getDelayedJob,
  getDelayedJobs,
  isDelayQueueContext,
} from './handlers/delay-queue-context.js';

export { DelayQueueConsumer } from './consumer/delay-queue.consumer.js';
export type { PullOptions } from './consumer/delay-queue.consumer.js';
export type { ClaimedJob } from './consumer/claimed-job.js';
export type { DelayQueueMiddleware } from './handlers/middleware.js';
export { DelayQueueRegistry } from './worker/delay-queue.registry.js';
export type { BatchHandlerFunction, HandlerFunction } from './worker/delay-queue.registry.js';
export { DelayQueueInspector } from './inspection/delay-queue.inspector.js';
export type { MoveOutcome, MoveResult } from './inspection/job-mover.js';
export type { ListedState } from './inspection/delay-queue.inspector.js';
export type { QueueCounts, QueueTotals } from './inspection/queue-counts.js';
export type { BulkActs } from './inspection/bulk-acts.js';
export type {
  BulkActPage,
  BulkActResult,
  BulkCancelOutcome,
  BulkMoveOutcome,
  BulkRescheduleOutcome,
} from './inspection/bulk-results.js';
export type { BulkActOptions, BulkCancelOptions, JobChoice, NewTimes } from './inspection/bulk-options.js';
export type { Timeline, TimelineOptions } from './inspection/timeline.js';
export type { GroupsOptions, QueueGroup, StoredLimits } from './inspection/limit-calls.js';
export type { ListOptions, RemoveDeadOptions, RequeueOptions, ReshardOptions } from './inspection/inspector-options.js';
export type { ReshardResult } from './shards/resharding.js';

export { DelayQueueHealth } from './health/delay-queue.health.js';
export type { DelayQueueHealthResult, HealthStatus, QueueHealth } from './health/delay-queue.health.js';
export type { HealthThresholds } from './health/thresholds.js';
