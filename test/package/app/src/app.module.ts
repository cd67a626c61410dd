import { Controller, Get, Injectable, Module } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { type DelayedJob, DelayQueueModule, OnDelayed } from 'nestjs-delay-queue';
import { DelayQueueHistoryModule } from 'nestjs-delay-queue/history';
import { DelayQueueMetricsModule } from 'nestjs-delay-queue/metrics';
import { DelayQueueOtelMetricsModule } from 'nestjs-delay-queue/otel-metrics';
import { DelayQueueHealthIndicator, DelayQueueHealthModule } from 'nestjs-delay-queue/terminus';
import { DelayQueueTracingModule } from 'nestjs-delay-queue/tracing';

export interface Greeting {
  readonly text: string;
}

@Injectable()
export class GreetingHandler {
  private resolve!: (seen: { id: string; text: string }) => void;
  readonly seen = new Promise<{ id: string; text: string }>((resolve) => (this.resolve = resolve));

  @OnDelayed('package.greeting')
  greet(payload: Greeting, job: DelayedJob): void {
    this.resolve({ id: job.id, text: payload.text });
  }
}

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly delayQueue: DelayQueueHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.delayQueue.isHealthy('delay_queue')]);
  }
}

@Module({
  imports: [
    TerminusModule,
    DelayQueueHealthModule,
    DelayQueueHistoryModule,
    DelayQueueMetricsModule.forRoot(),
    DelayQueueOtelMetricsModule.forRoot(),
    DelayQueueTracingModule,
    DelayQueueModule.forRoot({ connection: process.env.REDIS_URL, prefix: process.env.PREFIX }),
  ],
  controllers: [HealthController],
  providers: [GreetingHandler],
})
export class AppModule {}
