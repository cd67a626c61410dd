export { DelayQueueOtelMetricsModule } from './delay-queue.otel-metrics.module.js';
export type { DelayQueueOtelMetricsOptions } from './delay-queue.otel-metrics.module.js';
