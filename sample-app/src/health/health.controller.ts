import { Controller, Get } from '@nestjs/common';
import { HealthCheck, HealthCheckService } from '@nestjs/terminus';
import type { HealthCheckResult } from '@nestjs/terminus';
import { DelayQueueHealthIndicator } from 'nestjs-delay-queue/terminus';

@Controller('health')
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly delayQueue: DelayQueueHealthIndicator,
  ) {}

  /** 503 when Redis is gone, or when a check that is due has waited for a minute. */
  @Get()
  @HealthCheck()
  check(): Promise<HealthCheckResult> {
    return this.health.check([() => this.delayQueue.isHealthy('delay_queue', { lag: { down: '1m' } })]);
  }
}
