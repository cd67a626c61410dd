// Due jobs go to another service, and are done when that service has answered. Here by TCP, so that it runs without a broker.
import { Controller, Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClientsModule, Ctx, MessagePattern, Payload, TcpContext, Transport } from '@nestjs/microservices';
import { DelayQueueInspector, DelayQueueModule, DelayQueueProducer, DiscardJob, fixed } from 'nestjs-delay-queue';
import { RELAY_HEADERS, RelayDelayed } from 'nestjs-delay-queue/relay';
import { freePort } from './free-port.js';
import { redis } from './redis.js';
import { until } from './until.js';

interface Order {
  orderId: string;
  test?: boolean;
}

const orders = { transport: Transport.TCP, options: { port: await freePort() } } as const;

@Injectable()
export class ExpiredOrders {
  @RelayDelayed('order.expired', {
    client: 'ORDERS_CLIENT',
    pattern: 'order.expired',
    confirm: 'reply', // TCP proves nothing by itself: without this line the application does not boot
    timeout: '2s', // for the answer
    attempts: 20,
    backoff: fixed('50ms'),
  })
  relay(order: Order) {
    if (order.test) throw new DiscardJob('only a test'); // nothing is sent
    return { ...order, reason: 'not paid in time' }; // this is sent; without a `return` the payload would be
  }
}

@Module({
  imports: [ClientsModule.register([{ name: 'ORDERS_CLIENT', ...orders }]), DelayQueueModule.forRoot(redis)],
  providers: [ExpiredOrders],
})
export class AppModule {}

/** The other service. A message may come more than once, so it remembers the ids of the jobs; a database would, too. */
@Controller()
class OrdersService {
  readonly expired = new Map<string, unknown>();
  failures = 1;

  @MessagePattern('order.expired')
  expire(@Payload() order: Order, @Ctx() context: TcpContext) {
    if (this.failures-- > 0) throw new Error('the database was away'); // the answer: the job is tried again
    const jobId = context.getMetadata()?.[RELAY_HEADERS.id] ?? order.orderId;
    if (!this.expired.has(jobId)) this.expired.set(jobId, order);
  }
}

@Module({ controllers: [OrdersService] })
class OrdersModule {}

export async function run(app: INestApplicationContext) {
  const receiver = await NestFactory.createMicroservice(OrdersModule, { ...orders, logger: false });
  await receiver.listen();
  const { expired } = receiver.get(OrdersService);
  const [producer, inspector] = [app.get(DelayQueueProducer), app.get(DelayQueueInspector)];
  await producer.enqueue('order.expired', { orderId: 'o1' }, { id: 'o1', delay: 50 });
  await producer.enqueue('order.expired', { orderId: 'o2', test: true }, { id: 'o2' });

  await until(async () => (await inspector.totals('order.expired')).completed === 1);
  await until(async () => (await producer.get('order.expired', 'o2'))?.state === 'dead');
  await receiver.close();
  return {
    expired: [...expired], // [['o1', { orderId: 'o1', reason: 'not paid in time' }]], at the second attempt
    discarded: (await producer.get('order.expired', 'o2'))?.lastError?.message, // 'only a test'
  };
}
