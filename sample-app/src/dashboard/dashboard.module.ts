import { Module } from '@nestjs/common';
import { DelayQueueDashboardModule } from 'nestjs-delay-queue/dashboard';
import { DelayQueueHistoryModule } from 'nestjs-delay-queue/history';
import { OperatorGuard } from './operator.guard.js';

@Module({
  imports: [
    DelayQueueHistoryModule, // for lateness, processes and the forecast
    DelayQueueDashboardModule.forRoot({ path: 'delay-queue', guards: [OperatorGuard], environment: 'sample' }),
  ],
})
export class DashboardModule {}
