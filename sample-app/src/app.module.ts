import { Module, ValidationPipe } from '@nestjs/common';
import { APP_PIPE } from '@nestjs/core';
import { DelayQueueModule } from 'nestjs-delay-queue';
import { DashboardModule } from './dashboard/dashboard.module.js';
import { HealthModule } from './health/health.module.js';
import { MetricsModule } from './metrics/metrics.module.js';
import { PaymentsModule } from './payments/payments.module.js';

@Module({
  imports: [
    PaymentsModule,
    HealthModule,
    MetricsModule,
    DashboardModule,
    // Last, so that its workers drain before anything that their handlers use is shut down.
    DelayQueueModule.forRootAsync({
      useFactory: () => ({
        connection: process.env['REDIS_URL'] || 'redis://127.0.0.1:6379',
        prefix: process.env['DELAY_QUEUE_PREFIX'] || undefined,
      }),
    }),
  ],
  providers: [
    {
      // Global pipes run around job handlers too, so this checks the bodies of requests and the payloads of jobs.
      provide: APP_PIPE,
      useValue: new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true }),
    },
  ],
})
export class AppModule {}
