import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { DelayQueueHealthModule } from 'nestjs-delay-queue/terminus';
import { HealthController } from './health.controller.js';

@Module({
  imports: [TerminusModule, DelayQueueHealthModule],
  controllers: [HealthController],
})
export class HealthModule {}
