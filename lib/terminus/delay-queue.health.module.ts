import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { DelayQueueInstancesModule } from '../instance/delay-queue.instances.js';
import { DelayQueueHealthIndicator } from './delay-queue.health-indicator.js';

/** Import it where the health controller lives. */
@Module({
  imports: [TerminusModule, DelayQueueInstancesModule],
  providers: [DelayQueueHealthIndicator],
  exports: [DelayQueueHealthIndicator],
})
export class DelayQueueHealthModule {}
