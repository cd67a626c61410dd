import { Controller, Get, Header } from '@nestjs/common';
import { DelayQueueMetrics } from 'nestjs-delay-queue/metrics';

@Controller('metrics')
export class MetricsController {
  constructor(private readonly metrics: DelayQueueMetrics) {}

  @Get()
  @Header('content-type', 'text/plain; version=0.0.4; charset=utf-8')
  scrape(): Promise<string> {
    return this.metrics.registry.metrics();
  }
}
