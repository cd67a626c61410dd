import { Module } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { DelayQueueInstances, DelayQueueInstancesModule } from '../instance/delay-queue.instances.js';
import { DelayQueueEvents } from './delay-queue.events.js';

/** Import it where `DelayQueueEvents` is injected. */
@Module({
  imports: [DelayQueueInstancesModule],
  providers: [
    {
      provide: DelayQueueEvents,
      useFactory: (modules: ModuleRef, instances: DelayQueueInstances) => new DelayQueueEvents(modules, instances),
      inject: [ModuleRef, DelayQueueInstances],
    },
  ],
  exports: [DelayQueueEvents],
})
export class DelayQueueEventsModule {}
