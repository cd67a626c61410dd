import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DelayQueueProducer } from 'nestjs-delay-queue';
import type { JobSnapshot } from 'nestjs-delay-queue';
import { eventually } from '../../test/helpers/eventually.js';
import { AppModule } from '../src/app.module.js';
import { paymentCheck } from '../src/payments/payment-check.js';
import type { CheckPayment } from '../src/payments/payment-check.js';

export interface Answer {
  status: number;
  body: any;
}

/** The whole sample application, listening on a free port, on one Redis and under one prefix. */
export class Sample {
  private constructor(
    readonly app: INestApplication,
    readonly producer: DelayQueueProducer,
    readonly url: string,
  ) {}

  static async start({ url, prefix }: { url: string; prefix: string }): Promise<Sample> {
    process.env['REDIS_URL'] = url;
    process.env['DELAY_QUEUE_PREFIX'] = prefix;
    const module = await Test.createTestingModule({ imports: [AppModule] }).compile();
    const app = module.createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    return new Sample(app, app.get(DelayQueueProducer), await app.getUrl());
  }

  close(): Promise<void> {
    return this.app.close();
  }

  get(path: string): Promise<Answer> {
    return this.send('GET', path);
  }

  delete(path: string): Promise<Answer> {
    return this.send('DELETE', path);
  }

  /** @param body sent as JSON; text is sent as it is */
  post(path: string, body?: unknown): Promise<Answer> {
    return this.send('POST', path, typeof body === 'string' ? body : JSON.stringify(body));
  }

  /** @returns the id of the new payment */
  async pay(amount: number, checkIn: string | number = 0): Promise<string> {
    const { body } = await this.post('/payments', { amount, checkIn });
    return body.id;
  }

  /** Waits until the payment looks like this. */
  async becomes(id: string, expected: object): Promise<void> {
    await eventually(async () => {
      const { body } = await this.get(`/payments/${id}`);
      if (!Object.entries(expected).every(([key, value]) => body[key] === value)) throw new Error(JSON.stringify(body));
    }, 10_000);
  }

  check(id: string): Promise<JobSnapshot<CheckPayment> | undefined> {
    return this.producer.get(paymentCheck, id);
  }

  /** Waits until the check waits for its next run, then has it run at once instead of when its time has come. */
  async runCheckNow(id: string): Promise<void> {
    await eventually(async () => {
      const { outcome } = await this.producer.runNow(paymentCheck, id);
      if (outcome !== 'rescheduled') throw new Error(`the check of ${id} is ${outcome}`);
    }, 10_000);
  }

  private async send(method: string, path: string, body?: string): Promise<Answer> {
    const headers = { 'content-type': 'application/json', connection: 'close' };
    const response = await fetch(this.url + path, { method, headers, body });
    return { status: response.status, body: await response.json() };
  }
}

/** `Promise.withResolvers()`, which Node 20 does not have. */
export function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}
