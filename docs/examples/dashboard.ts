// An application with a dashboard, and load that makes it worth a look: `npm run example -- dashboard` serves it until Ctrl-C.
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import {
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  JobPayload,
  OnDelayed,
  SnoozeJob,
} from 'nestjs-delay-queue';
import { DelayQueueDashboardModule } from 'nestjs-delay-queue/dashboard';
import { DelayQueueHistoryModule } from 'nestjs-delay-queue/history';
import { redis } from './redis.js';
import { until } from './until.js';

interface Payment {
  readonly order: number;
  readonly amount: string;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

@Injectable()
export class Shop {
  constructor(private readonly producer: DelayQueueProducer) {}

  /** One in eight fails, one in ten is not known yet; each that is done brings another order. */
  @OnDelayed('payment.check', { attempts: 1, concurrency: 20 })
  async check(@JobPayload() { order }: Payment): Promise<void> {
    if (order % 24 === 0) throw new RangeError(`Order ${order} was paid twice`);
    if (order % 8 === 0) throw new GatewayTimeout(order);
    if (order % 10 === 1) throw new SnoozeJob(5 * MINUTE);
    await this.order(order + 1_000, 10_000 + (order % 50) * 1_000);
  }

  @OnDelayed('payment.refund', { attempts: 1 })
  refund(@JobPayload() { order }: Payment): void {
    if (order % 3 === 0) throw new TypeError(`Order ${order} has no payment that could be refunded`);
  }

  @OnDelayed('mail.reminder')
  remind(): void {}

  @OnDelayed('mail.digest', { repeat: { cron: '0 7 * * *', timeZone: 'Europe/Berlin' } })
  digest(): void {}

  async order(order: number, delay: number): Promise<void> {
    const payment = { order, amount: `${(order % 200) + 1}.90`, currency: 'EUR', customer: { id: `c-${order % 91}` } };
    await this.producer.enqueue('payment.check', payment, { id: `order-${order}`, delay, onDuplicate: 'keep' });
  }
}

class GatewayTimeout extends Error {
  override name = 'GatewayTimeout';

  constructor(order: number) {
    super(`The payment gateway did not answer within ${5_000 + order} ms`);
  }
}

@Module({
  imports: [
    DelayQueueModule.forRoot(redis),
    DelayQueueHistoryModule,
    // For all who can reach it: so this example listens on its own machine alone. An application says who may come in: `guards`,
    // or `access`, which is asked for each request.
    DelayQueueDashboardModule.forRoot({ path: 'delay-queue', access: 'unprotected', environment: 'example' }),
  ],
  providers: [Shop],
})
export class AppModule {}

/** Jobs that are due now, jobs all over the next day, more of them by day than by night, and two peaks. */
export async function run(app: INestApplicationContext, orders = 200) {
  const [shop, producer, inspector] = [app.get(Shop), app.get(DelayQueueProducer), app.get(DelayQueueInspector)];
  const parts = Array.from({ length: orders }, (_, n) => n / orders);
  await Promise.all([
    ...parts.map((part, n) => shop.order(n, 26 * HOUR * (part + Math.sin(part * 12) / 14 + 0.01))),
    ...parts.slice(0, orders / 5).map((part, n) => shop.order(10_000 + n, 7 * HOUR + part * 30 * MINUTE)),
    ...parts.slice(0, 36).map((_, n) => shop.order(24_000 + 8 * n, 0)), // all of which fail
  ]);
  const evening = Date.now() + 17 * HOUR;
  const letters = parts.map((part, order) => ({ payload: { order }, at: new Date(evening + part * part * 2 * HOUR) }));
  await producer.enqueueMany('mail.reminder', letters);
  const refunds = Array.from({ length: 30 }, (_, order) => ({ payload: { order } }));
  await producer.enqueueMany('payment.refund', refunds);
  await until(async () => (await inspector.counts('payment.refund')).dead === 10);
  const timeline = await inspector.timeline('mail.reminder');
  return { queues: await inspector.queues(), reminders: timeline.counts.reduce((sum, many) => sum + many) };
}
