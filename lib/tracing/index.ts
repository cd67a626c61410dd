export { DelayQueueTracingModule } from './delay-queue.tracing.module.js';
