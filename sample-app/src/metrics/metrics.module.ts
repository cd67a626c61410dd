import { Module } from '@nestjs/common';
import { DelayQueueMetricsModule } from 'nestjs-delay-queue/metrics';
import { MetricsController } from './metrics.controller.js';

@Module({
  imports: [DelayQueueMetricsModule.forRoot()],
  controllers: [MetricsController],
})
export class MetricsModule {}
