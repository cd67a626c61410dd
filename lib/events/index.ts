export { DelayQueueEvents } from './delay-queue.events.js';
export type { DelayQueueEvent, DelayQueueEventName, FleetOptions } from './delay-queue.events.js';
export type { FleetEvent } from './fleet-reader.js';
export { DelayQueueEventsModule } from './delay-queue.events.module.js';
export type { EventIterator } from './event-iterator.js';
export type { EventStream, IterateOptions } from './event-stream.js';
