// Compiled by test/contract/types.spec.ts, with exactOptionalPropertyTypes and a closed list of names.
import { defineQueue, DelayQueueModule, DelayQueueProducer, OnDelayed } from 'nestjs-delay-queue';
import type { DelayedJob, QueueName } from 'nestjs-delay-queue';

declare module 'nestjs-delay-queue' {
  interface DelayQueues {
    'payment.check': { paymentId: string };
    'mail.send': { to: string };
    'with.date': { on: Date };
    'with.map': { seen: Map<string, number> };
  }
  interface DelayQueueTypes {
    names: 'closed';
    codec: Date;
  }
}

declare const producer: DelayQueueProducer;
declare const maybe: string | undefined;

export const known: QueueName[] = ['payment.check', 'mail.send'];

export async function calls(): Promise<void> {
  await producer.enqueue('payment.check', { paymentId: 'A' }, { id: maybe, delay: undefined, onDuplicate: undefined });
  await producer.enqueueMany('payment.check', [{ payload: { paymentId: 'A' }, id: maybe }]);
  await producer.enqueue(defineQueue<{ b: string }>('another'), { b: 'x' });
  await producer.enqueue('with.date', { on: new Date() });
  // @ts-expect-error the codec keeps Date, and no Map
  await producer.enqueue('with.map', { seen: new Map() });
  // @ts-expect-error not in the list
  await producer.enqueue('payment.chek', {});
  // @ts-expect-error the payload of another queue
  await producer.enqueue('payment.check', { to: 'a' });
  // @ts-expect-error what must be given may not be undefined
  await producer.enqueueMany('payment.check', [{ payload: undefined }]);
}

export const root = DelayQueueModule.forRoot({ prefix: maybe, drainTimeout: undefined });
export const dated = defineQueue<{ on: Date }>('dated', { attempts: undefined });
// @ts-expect-error the codec keeps Date, and no bigint
export const numbered = defineQueue<{ n: bigint }>('numbered');

export class Handlers {
  @OnDelayed('payment.check', { attempts: undefined })
  check(_payload: { paymentId: string }, _job: DelayedJob): void {}
  // @ts-expect-error the payload of another queue
  @OnDelayed('mail.send')
  send(_payload: { paymentId: string }): void {}
  // @ts-expect-error not in the list
  @OnDelayed('mail.sned')
  misspelt(): void {}
}
