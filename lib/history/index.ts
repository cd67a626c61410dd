export { DelayQueueHistory } from './delay-queue.history.js';
export type { OfInstance } from './delay-queue.history.js';
export { DelayQueueHistoryModule } from './delay-queue.history.module.js';
export type { Forecast, ForecastOptions, ForecastPeak } from './forecast.js';
export type { HistoryCounts, HistoryMinute, HistoryOptions, QueueHistory } from './history-reader.js';
export { LATENESS_BOUNDS_MS } from './lateness.js';
export type { Lateness } from './lateness.js';
export type { LiveProcess, ProcessQueue } from './process-record.js';
