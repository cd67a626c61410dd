export { DelayQueueDashboardModule } from './delay-queue.dashboard.module.js';
export type {
  DashboardPlace,
  DelayQueueDashboardOptions,
  DelayQueueDashboardRootAsyncOptions,
  DelayQueueDashboardRootOptions,
} from './dashboard-options.js';
export type { AccessLevel, DashboardAccess } from './access.js';
export type { ShownJob } from './private-parts.js';
export { DASHBOARD_ACT_CHANNEL } from './act-log.js';
export type { DashboardActMessage } from './act-log.js';
