// An event or a deadline, whichever comes first; jobs that follow one another; and polling.
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { DelayQueueModule, DelayQueueProducer, fixed, OnDelayed, SnoozeJob } from 'nestjs-delay-queue';
import type { DelayedJob } from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

@Injectable()
export class Payments {
  readonly log: string[] = [];

  constructor(private readonly producer: DelayQueueProducer) {}

  async ordered(orderId: string, patience: string) {
    await this.producer.enqueue('order.paid', { paid: false }, { id: orderId, delay: patience });
  }

  /** The event. If the deadline came first, it changes nothing, and says so. */
  async paid(orderId: string) {
    const { outcome } = await this.producer.signal('order.paid', orderId, { paid: true });
    return outcome === 'signalled';
  }

  /** Runs once, for the event or for the deadline. */
  @OnDelayed('order.paid')
  decide({ paid }: { paid: boolean }, job: DelayedJob) {
    this.log.push(`${job.id} ${paid ? 'paid' : 'expired'}`);
  }
}

@Injectable()
export class Shipping {
  readonly log: string[] = [];

  constructor(private readonly producer: DelayQueueProducer) {}

  /** The next step is made before this one ends, under an id that a repetition of this one makes again. */
  @OnDelayed('order.ship', { backoff: fixed('20ms') })
  async ship({ orderId }: { orderId: string }, job: DelayedJob) {
    await this.producer.enqueue('order.invoice', { orderId }, { id: `${job.id}:invoice`, uniqueFor: '7d' });
    if (job.attempt === 1) throw new Error('the process died here'); // the second attempt makes no second invoice
    this.log.push(`${orderId} shipped`);
  }

  @OnDelayed('order.invoice')
  invoice({ orderId }: { orderId: string }) {
    this.log.push(`${orderId} invoiced`);
  }
}

@Injectable()
export class Parcels {
  readonly log: string[] = [];
  looks = 0;

  /** Looks again until the parcel has arrived, ten times at most. */
  @OnDelayed('parcel.poll')
  async poll({ parcel }: { parcel: string }) {
    if (!(await this.hasArrived(parcel))) throw new SnoozeJob('10ms', { max: 10 });
    this.log.push(`${parcel} arrived`);
  }

  /** The carrier knows of it at the third look. */
  private async hasArrived(_parcel: string) {
    return ++this.looks === 3;
  }
}

@Module({ imports: [DelayQueueModule.forRoot(redis)], providers: [Payments, Shipping, Parcels] })
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const [payments, shipping, parcels] = [app.get(Payments), app.get(Shipping), app.get(Parcels)];
  await payments.ordered('o1', '3d');
  await payments.ordered('o2', '10ms');
  const intime = await payments.paid('o1');
  await until(async () => payments.log.length === 2);
  const late = await payments.paid('o2');

  await app.get(DelayQueueProducer).enqueue('order.ship', { orderId: 'o1' }, { id: 'o1' });
  await until(async () => shipping.log.includes('o1 shipped') && shipping.log.includes('o1 invoiced'));

  await app.get(DelayQueueProducer).enqueue('parcel.poll', { parcel: 'x1' }, { id: 'x1' });
  await until(async () => parcels.log.length === 1);
  return {
    events: [intime, late], // [true, false]
    decided: payments.log.sort(), // ['o1 paid', 'o2 expired']
    steps: shipping.log.sort(), // ['o1 invoiced', 'o1 shipped']
    polls: [parcels.looks, ...parcels.log], // [3, 'x1 arrived']
  };
}
