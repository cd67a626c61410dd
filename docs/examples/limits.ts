// Limits over all processes: how many jobs of a queue run at a time, how many start within a time, the same for each group of jobs, and
// which of the due jobs start first.
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import {
  defineQueue,
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  fixed,
  OnDelayed,
} from 'nestjs-delay-queue';
import type { DelayedJob } from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

interface Invoice {
  customer: string;
  number: string;
}

/** All invoices of a customer are a group, and run one by one. */
const invoices = defineQueue<Invoice>('invoice.issue', {
  group: ({ customer }) => customer,
  globalConcurrency: 20,
  rateLimit: { max: 100, per: '1s' },
  groups: { concurrency: 1, retries: 'block' },
});

@Injectable()
export class Invoices {
  readonly sent: string[] = [];
  readonly running = new Set<string>();
  together = 0;

  @OnDelayed(invoices, { concurrency: 10, backoff: fixed(20) })
  async send({ customer, number }: Invoice, job: DelayedJob): Promise<void> {
    if (this.running.has(customer)) this.together++;
    this.running.add(customer);
    await Promise.resolve();
    this.running.delete(customer);
    // The customer's next invoice waits until this one has run again.
    if (number === 'A1' && job.attempt === 1) throw new Error('the mail server was away');
    this.sent.push(number);
  }
}

@Module({ imports: [DelayQueueModule.forRoot(redis)], providers: [Invoices] })
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const producer = app.get(DelayQueueProducer);
  const inspector = app.get(DelayQueueInspector);
  const handler = app.get(Invoices);

  for (const number of ['A1', 'A2', 'A3']) await producer.enqueue(invoices, { customer: 'acme', number });
  await producer.enqueue(invoices, { customer: 'zeta', number: 'Z1' });
  await until(() => handler.sent.length === 4);

  // An operator slows the queue down to one job a minute, whatever the applications say. Such a one has started already.
  await inspector.setLimits(invoices, { rateLimit: { max: 1, per: '1m' }, groups: { concurrency: 1 } });
  for (const number of ['A4', 'A5']) await producer.enqueue(invoices, { customer: 'acme', number });
  // When it is due, it counts as if it had been due nine minutes earlier.
  await producer.enqueue(invoices, { customer: 'zeta', number: 'Z2' }, { priority: 9, delay: '1h' });
  await until(async () => (await inspector.counts(invoices)).limited === true);
  const { limits, setBy } = await inspector.limits(invoices);
  const { groups } = await inspector.groups(invoices);
  const waiting = (await inspector.list(invoices, 'due', { group: 'acme' })).jobs.length;
  await inspector.setLimits(invoices, 'config');

  return {
    ofAcme: handler.sent.filter((number) => number.startsWith('A')).slice(0, 3), // ['A1', 'A2', 'A3']: one by one, A1 at its second attempt
    together: handler.together, // 0
    limits: limits?.rateLimit?.max, // 1
    setBy, // 'operator'
    groups: groups.map(({ group = '' }) => group).sort((a, b) => a.localeCompare(b)), // ['acme', 'zeta']
    waiting, // 2
  };
}
