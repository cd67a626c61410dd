export { DelayQueueMetrics } from './delay-queue.metrics.js';
export { DelayQueueMetricsModule } from './delay-queue.metrics.module.js';
export type { DelayQueueMetricsOptions } from './delay-queue.metrics.module.js';
