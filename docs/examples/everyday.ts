// What most applications need first: an order that is not paid in time, reminders, and an index that is brought up to date once.
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import {
  defineQueue,
  DelayQueue,
  DelayQueueModule,
  DelayQueueProducer,
  DiscardJob,
  InjectQueue,
  OnDelayed,
  steps,
} from 'nestjs-delay-queue';
import type { DelayedJob, HandledPayloadOf, PayloadOf } from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

interface Order {
  readonly id: string;
  status: 'open' | 'paid' | 'expired';
}

@Injectable()
export class Orders {
  readonly all = new Map<string, Order>();

  constructor(private readonly producer: DelayQueueProducer) {}

  async placed(order: Order, patience: string) {
    this.all.set(order.id, order);
    await this.producer.enqueue('order.timeout', { orderId: order.id }, { id: order.id, delay: patience });
  }

  async paid(orderId: string) {
    this.all.get(orderId)!.status = 'paid';
    const { outcome } = await this.producer.cancel('order.timeout', orderId);
    return outcome;
  }

  /** The job may come between the payment and the cancellation, so the state decides, not the job. */
  @OnDelayed('order.timeout')
  expire({ orderId }: { orderId: string }) {
    const order = this.all.get(orderId);
    if (order?.status === 'open') order.status = 'expired';
  }
}

@Injectable()
export class Reminders {
  readonly sent: string[] = [];

  constructor(private readonly producer: DelayQueueProducer) {}

  /** One job for each reminder. The id says which one it is, so that a second call makes none twice. */
  async plan(userId: string, days: readonly number[]) {
    const items = days.map((day) => ({ payload: { userId, day }, id: `${userId}:${day}`, delay: `${day}d` }));
    await this.producer.enqueueMany('mail.remind', items);
  }

  async answered(userId: string, days: readonly number[]) {
    for (const day of days) await this.producer.cancel('mail.remind', `${userId}:${day}`);
  }

  /** The mail server is asked with the id of the job: a repeated run sends no second mail. */
  @OnDelayed('mail.remind', { attempts: 4, backoff: steps(['1s', '1m', '10m']), timeout: '30s' })
  async send({ userId, day }: { userId: string; day: number }, job: DelayedJob) {
    if (!userId.includes('@')) throw new DiscardJob('no address');
    if (job.attempt === 1) throw new Error('the mail server was away');
    this.sent.push(`${userId} after ${day} days, key ${job.id}`);
  }
}

export const productIndex = defineQueue<{ productId: string; change: number }>('product.index', {
  id: ({ productId }) => productId,
  debounce: { wait: '500ms', maxWait: '2m' },
});

@Injectable()
export class ProductIndex {
  readonly runs: string[] = [];

  constructor(@InjectQueue(productIndex) private readonly queue: DelayQueue<PayloadOf<typeof productIndex>>) {}

  /** However often a product changes, it is indexed once it has been left alone for a while, and every two minutes. */
  changed(productId: string, change: number) {
    return this.queue.enqueue({ productId, change });
  }

  @OnDelayed(productIndex)
  index({ productId, change }: HandledPayloadOf<typeof productIndex>) {
    this.runs.push(`${productId}: ${change}`);
  }
}

@Module({
  imports: [DelayQueueModule.forFeature([productIndex]), DelayQueueModule.forRoot(redis)],
  providers: [Orders, Reminders, ProductIndex],
})
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const [orders, reminders, index] = [app.get(Orders), app.get(Reminders), app.get(ProductIndex)];
  await orders.placed({ id: 'o1', status: 'open' }, '30m');
  await orders.placed({ id: 'o2', status: 'open' }, '10ms');
  const outcomes = [await orders.paid('o1')];
  await until(() => orders.all.get('o2')!.status === 'expired');

  await reminders.plan('ada@x.example', [0, 3, 7]);
  await reminders.plan('ada@x.example', [0, 3, 7]);
  await until(() => reminders.sent.length === 1);
  await reminders.answered('ada@x.example', [3, 7]);

  for (const change of [1, 2, 3]) await index.changed('p1', change);
  await until(() => index.runs.length > 0);
  return {
    outcomes, // ['cancelled']
    orders: [...orders.all.values()].map(({ status }) => status), // ['paid', 'expired']
    sent: reminders.sent, // ['ada@x.example after 0 days, key ada@x.example:0']
    indexed: index.runs.at(-1), // 'p1: 3'
  };
}
