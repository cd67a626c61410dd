import { Module } from '@nestjs/common';
import { DelayQueueEvents } from './delay-queue.events.js';

/** Import it where `DelayQueueEvents` is injected. */
@Module({ providers: [DelayQueueEvents], exports: [DelayQueueEvents] })
export class DelayQueueEventsModule {}
