import { Module } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { DelayQueueInstances, DelayQueueInstancesModule } from '../instance/delay-queue.instances.js';
import { DelayQueueHistory } from './delay-queue.history.js';

/** Counts of each minute and the list of live processes, of all instances. Import it once, in the root module. */
@Module({
  imports: [DelayQueueInstancesModule],
  providers: [
    {
      provide: DelayQueueHistory,
      useFactory: (modules: ModuleRef, instances: DelayQueueInstances) => new DelayQueueHistory(modules, instances),
      inject: [ModuleRef, DelayQueueInstances],
    },
  ],
  exports: [DelayQueueHistory],
})
export class DelayQueueHistoryModule {}
