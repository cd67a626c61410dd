import { Injectable } from '@nestjs/common';
import { DelayQueueProducer, OnDelayed, type DelayedJob } from 'nestjs-delay-queue';

export interface Order {
  id: string;
  status: 'open' | 'paid' | 'expired';
}

@Injectable()
export class OrdersService {
  readonly orders = new Map<string, Order>(); // your database

  constructor(private readonly producer: DelayQueueProducer) {}

  async place(id: string, patience = '30m'): Promise<Order> {
    const order: Order = { id, status: 'open' };
    this.orders.set(id, order);
    await this.producer.enqueue('order.timeout', { orderId: id }, { id, delay: patience });
    return order;
  }

  async pay(id: string): Promise<Order | undefined> {
    const order = this.orders.get(id);
    if (order?.status === 'open') order.status = 'paid';
    await this.producer.cancel('order.timeout', id);
    return order;
  }

  @OnDelayed('order.timeout', { attempts: 5, timeout: '30s' })
  async expire({ orderId }: { orderId: string }, job: DelayedJob) {
    const order = this.orders.get(orderId);
    if (order?.status === 'open') order.status = 'expired'; // a job may run twice: ask the state first
    console.log(`order ${orderId}: ${order?.status}, ${job.latenessMs} ms after its time`);
  }
}
