// A job that exists exactly when a transaction of the database commits.
import { randomUUID } from 'node:crypto';
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { DelayQueueModule, DelayQueueProducer, OnDelayed } from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

interface OutboxRow {
  readonly id: string;
  readonly queue: string;
  readonly payload: unknown;
  readonly at: Date;
}

/** Stands for a database with transactions: what was written in one that failed is not there. */
@Injectable()
export class Database {
  readonly orders = new Set<string>();
  readonly outbox = new Map<string, OutboxRow>();

  async transaction(work: (tx: Database) => void) {
    const tx = new Database();
    work(tx);
    for (const order of tx.orders) this.orders.add(order);
    for (const [id, row] of tx.outbox) this.outbox.set(id, row);
  }

  async oldestRows(limit: number) {
    return [...this.outbox.values()].slice(0, limit);
  }

  async deleteRow(id: string) {
    this.outbox.delete(id);
  }
}

@Injectable()
export class Checkout {
  constructor(private readonly database: Database) {}

  /** The order and the intention to have a job are written together. Redis plays no part. */
  async place(orderId: string, patienceMs: number, fails = false) {
    await this.database.transaction((tx) => {
      tx.orders.add(orderId);
      const at = new Date(Date.now() + patienceMs);
      const row = { id: randomUUID(), queue: 'order.unpaid', payload: { orderId }, at };
      tx.outbox.set(row.id, row);
      if (fails) throw new Error('the card was refused');
    });
  }
}

@Injectable()
export class Outbox {
  constructor(
    private readonly database: Database,
    private readonly producer: DelayQueueProducer,
  ) {}

  /** Called every second, and right after a commit. If it dies before a row is deleted, the row is sent again, and found made. */
  async flush() {
    for (const { id, queue, payload, at } of await this.database.oldestRows(200)) {
      await this.producer.enqueue(queue, payload, { id, at, uniqueFor: '1d', onDead: 'keep' });
      await this.database.deleteRow(id);
    }
  }
}

@Injectable()
export class Unpaid {
  readonly orders: string[] = [];

  @OnDelayed('order.unpaid')
  expire({ orderId }: { orderId: string }) {
    this.orders.push(orderId);
  }
}

@Module({ imports: [DelayQueueModule.forRoot(redis)], providers: [Checkout, Database, Outbox, Unpaid] })
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const [checkout, database, outbox, unpaid] = [app.get(Checkout), app.get(Database), app.get(Outbox), app.get(Unpaid)];
  await checkout.place('o1', 10);
  await checkout.place('o2', 10, true).catch(() => undefined);

  const [row] = await database.oldestRows(1);
  await outbox.flush();
  await until(() => unpaid.orders.length === 1);
  database.outbox.set(row!.id, row!); // as if the process had died before it deleted the row
  await outbox.flush();
  const { state } = await app.get(DelayQueueProducer).enqueue('order.unpaid', {}, { id: 'last' });
  await until(() => unpaid.orders.length === 2); // the last one, and no second o1
  return {
    orders: [...database.orders], // ['o1']
    state, // 'due'
    expired: unpaid.orders, // ['o1', undefined]
    left: database.outbox.size, // 0
  };
}
