// Compiled by test/contract/types.spec.ts, as an application would be that has set nothing.
import {
  defineQueue,
  DelayQueue,
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  InjectDelayQueue,
  InjectQueue,
  Job,
  JobPayload,
  OnDelayed,
} from 'nestjs-delay-queue';
import type { BatchJob, DelayedJob, QueueName, QueueOf } from 'nestjs-delay-queue';

declare module 'nestjs-delay-queue' {
  interface DelayQueues {
    'payment.check': { paymentId: string };
  }
}

interface Payment {
  paymentId: string;
  amount: number;
}

const payments = defineQueue<Payment>('payments');
const texts = defineQueue<string>('texts');

// What JSON keeps, in a type that holds itself, in a class, and where nothing is known.
interface Tree {
  children: Tree[];
  parent?: Tree | undefined;
  name: string | null;
}
class Dto {
  on!: string;
  say(): string {
    return this.on;
  }
}
type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export const fine = [
  defineQueue<Tree>('tree'),
  defineQueue<Dto>('dto'),
  defineQueue<Json>('json'),
  defineQueue<any>('any'),
  defineQueue<unknown>('unknown'),
  defineQueue<{ money: { toJSON(): string } }>('says how'),
];
export const lost = [
  // @ts-expect-error a Date becomes text
  defineQueue<{ on: Date }>('date'),
  // @ts-expect-error a Map is refused
  defineQueue<{ list: { seen: Map<string, number> }[] }>('map'),
  // @ts-expect-error a bigint is refused
  defineQueue<{ total?: bigint }>('bigint'),
];

declare const producer: DelayQueueProducer;
declare const named: string;
export const names: QueueName[] = ['payment.check', 'any other', named];
export async function calls(): Promise<void> {
  await producer.enqueue(named, { anything: 1 });
  await producer.enqueue('any other', { anything: 1 });
  await producer.enqueue('payment.check', { paymentId: 'A' });
  // @ts-expect-error a number is no paymentId
  await producer.enqueue('payment.check', { paymentId: 1 });
}

export class Handlers {
  @OnDelayed(payments) whole(_payload: Payment, _job: DelayedJob<Payment>): void {}
  @OnDelayed(payments) part(_payload: { paymentId: string }): void {}
  @OnDelayed(payments) nothing(): void {}
  @(OnDelayed(payments) as MethodDecorator) job(@Job() _job: DelayedJob<Payment>): void {}
  @OnDelayed(payments) anyPayload(_payload: Payment, _job: DelayedJob): void {}
  @OnDelayed(payments) anything(_payload: any, _job: any): void {}
  @OnDelayed(payments) others(_user: { name: string }, @JobPayload() _payload: Payment): void {}
  @OnDelayed(payments) property(@JobPayload('amount') _amount: number): void {}
  @OnDelayed(payments) loose(..._args: unknown[]): void {}
  @OnDelayed(payments, { concurrency: 2 }) private hidden(_payload: Payment): number {
    return this.hidden.length;
  }
  @OnDelayed(payments, { batch: { size: 5 } }) batch(_payloads: Payment[], _jobs: BatchJob<Payment>[]): void {}
  @OnDelayed(payments, { batch: { size: 5 } }) amounts(@JobPayload('amount') _amounts: number[]): void {}
  @OnDelayed(payments, { batch: { size: 5 } }) anyJobs(_payloads: Payment[], _jobs: readonly DelayedJob[]): void {}
  @OnDelayed('any other') untyped(_payload: { anything: number }): void {}

  // @ts-expect-error another payload
  @OnDelayed(payments) wrong(_payload: { total: number }): void {}
  // @ts-expect-error another payload, although it takes a job
  @OnDelayed(payments) wrongJob(_payload: { total: number }, _job: DelayedJob<{ total: number }>): void {}
  // @ts-expect-error a number is no text
  @OnDelayed(texts) wrongText(_payload: number): void {}
  // @ts-expect-error another payload by the name of the queue
  @OnDelayed('payment.check') wrongName(_payload: { total: number }): void {}
  // @ts-expect-error a batch comes as an array
  @OnDelayed(payments, { batch: { size: 5 } }) noArray(_payload: Payment): void {}
  // @ts-expect-error one job comes alone
  @OnDelayed(payments) array(_payloads: Payment[]): void {}
  // @ts-expect-error the payload comes first
  @OnDelayed(payments) swapped(_job: DelayedJob<Payment>, _payload: Payment): void {}
  // @ts-expect-error the same by the name of the queue
  @OnDelayed('payment.check') swappedByName(_job: DelayedJob, _payload: { paymentId: string }): void {}
  // @ts-expect-error the payload comes first, also where nobody wants it
  @OnDelayed(payments) jobAlone(_job: DelayedJob<Payment>): void {}
  // @ts-expect-error the job has another payload
  @OnDelayed(payments) otherJob(_payload: Payment, _job: DelayedJob<{ total: number }>): void {}
  // @ts-expect-error only a batch has jobs that can be settled one by one
  @OnDelayed(payments) jobOfBatch(_payload: Payment, _job: BatchJob<Payment>): void {}
  // @ts-expect-error one job comes alone
  @OnDelayed(payments) noBatch(_payload: Payment, _jobs: BatchJob<Payment>[]): void {}
  // @ts-expect-error the payloads come first
  @OnDelayed(payments, { batch: { size: 5 } }) batchSwapped(_jobs: BatchJob<Payment>[], _payloads: Payment[]): void {}
  // @ts-expect-error the jobs of a batch come as an array
  @OnDelayed(payments, { batch: { size: 5 } }) oneOfBatch(_payloads: Payment[], _job: DelayedJob): void {}
}

export class Senders {
  @InjectQueue(payments) readonly field!: DelayQueue<Payment>;
  // @ts-expect-error another payload
  @InjectQueue(payments) readonly wrong!: DelayQueue<{ total: number }>;
  constructor(
    @InjectQueue(payments) readonly one: DelayQueue<Payment>,
    @InjectQueue(payments) private readonly two: QueueOf<typeof payments>,
    @InjectQueue('any other') readonly three: DelayQueue<{ anything: number }>,
  ) {
    void this.two.enqueue({ paymentId: 'A', amount: 5 });
    // @ts-expect-error amount is missing
    void this.two.enqueue({ paymentId: 'A' });
    void this.two.reschedule('id', { at: { local: '2027-03-28T09:00', timeZone: 'Europe/Berlin' } });
  }
}
export class WrongSender {
  // @ts-expect-error another payload
  constructor(@InjectQueue(payments) readonly queue: DelayQueue<{ total: number }>) {}
}

export const composed = OnDelayed(payments) as MethodDecorator;

// What an editor imports by these names from @nestjs/bullmq and bullmq, which have them too.
declare namespace bullmq {
  export function InjectQueue(name?: string): ParameterDecorator;
  export class Queue<Data = unknown> {
    add(name: string, data: Data): Promise<unknown>;
  }
  export class Job<Data = unknown> {
    data: Data;
  }
}

export class MistakenForBullMQ {
  constructor(
    readonly right: string,
    // @ts-expect-error theirs knows no definitions
    @bullmq.InjectQueue(payments) readonly theirs: DelayQueue<Payment>,
    // @ts-expect-error ours injects no queue of theirs
    @InjectQueue(payments) readonly ours: bullmq.Queue<Payment>,
  ) {}

  // @ts-expect-error ours is a decorator, and no type
  data(job: Job): unknown {
    return job;
  }

  // @ts-expect-error theirs is a class, and no decorator
  handle(@bullmq.Job() job: DelayedJob): unknown {
    return job;
  }
}

export class OfAnInstance {
  constructor(
    @InjectDelayQueue('eu') readonly producer: DelayQueueProducer,
    @InjectDelayQueue('eu', DelayQueueInspector) readonly inspector: DelayQueueInspector,
    // @ts-expect-error a producer is injected, and no queue
    @InjectDelayQueue('eu') readonly queue: DelayQueue,
    // @ts-expect-error a producer is injected, unless the service is named
    @InjectDelayQueue('eu') readonly forgotten: DelayQueueInspector,
  ) {}
}

export const roots = [
  DelayQueueModule.forRootAsync({ name: 'eu', useFactory: async () => ({ prefix: 'eu' }) }),
  // @ts-expect-error the name must be known before the factory runs
  DelayQueueModule.forRootAsync({ useFactory: () => ({ name: 'eu' }) }),
  // @ts-expect-error and so must whether it is global
  DelayQueueModule.forRootAsync({ useFactory: async () => ({ isGlobal: false }) }),
];
