export { DelayQueueHealthIndicator } from './delay-queue.health-indicator.js';
export { DelayQueueHealthModule } from './delay-queue.health.module.js';
