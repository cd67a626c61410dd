import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { DelayQueueModule } from 'nestjs-delay-queue';
import { DelayQueueHealthModule } from 'nestjs-delay-queue/terminus';
import { HealthController } from './health.controller.js';
import { OrdersController } from './orders.controller.js';
import { OrdersService } from './orders.service.js';

@Module({
  imports: [
    TerminusModule,
    DelayQueueHealthModule,
    DelayQueueModule.forRoot({ connection: process.env['REDIS_URL'] ?? 'redis://localhost:6379' }),
  ],
  controllers: [OrdersController, HealthController],
  providers: [OrdersService],
})
export class AppModule {}
