import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { delayQueueMatchers, DelayQueueHarness, DelayQueueTestingModule } from 'nestjs-delay-queue/testing';
import 'nestjs-delay-queue/testing/jest';
import { AppModule } from '../src/app.module.js';
import { paymentCheck } from '../src/payments/payment-check.js';
import { PaymentGateway } from '../src/payments/payment-gateway.js';
import { PaymentsService } from '../src/payments/payments.service.js';

expect.extend(delayQueueMatchers);

// The whole application without a Redis and without waiting: hours of a payment take milliseconds.
describe('the story of a payment', () => {
  let app: INestApplicationContext;
  let payments: PaymentsService;
  let jobs: DelayQueueHarness;

  beforeEach(async () => {
    const builder = Test.createTestingModule({ imports: [AppModule] });
    app = await (await DelayQueueTestingModule.override(builder).compile()).init();
    payments = app.get(PaymentsService);
    jobs = DelayQueueHarness.of(app);
  });

  afterEach(() => app.close());

  it('that never settles is expired after five checks', async () => {
    const { payment } = await payments.create(1030, '3h');
    await jobs.drain();
    expect(payment).toMatchObject({ status: 'expired', checks: 5 });
    expect(await jobs.enqueued(paymentCheck)).toEqual([]);
  });

  it('whose gateway never recovers stays pending, and its check is a dead letter', async () => {
    const { payment } = await payments.create(1029, '3h');
    await jobs.advance('1d');
    await expect(jobs).toHaveDeadLettered(paymentCheck, { id: payment.id, reason: 'exhausted' });
    expect(payment).toMatchObject({ status: 'pending', checks: 5 });
  });

  it('that is cancelled is never checked', async () => {
    const { payment } = await payments.create(1999, '3h');
    await payments.cancel(payment.id);
    await jobs.advance('1d');
    expect(payment).toMatchObject({ status: 'cancelled', checks: 0 });
    await expect(jobs).not.toHaveEnqueued(paymentCheck);
  });

  it('survives the death of the worker that checks it', async () => {
    const hangs = new Promise<boolean>(() => undefined);
    const gateway = jest.spyOn(app.get(PaymentGateway), 'hasSettled').mockReturnValueOnce(hangs);
    const { payment } = await payments.create(1999, '3h');
    const checking = jobs.advance('3h');
    while (gateway.mock.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await jobs.crashWorker();
    await checking;
    expect(payment.status).toBe('pending');
    await jobs.advance('31s'); // its lease is 30 s
    expect(payment).toMatchObject({ status: 'confirmed', checks: 2 });
  });

  it('that has not settled yet, meets an error of the gateway, and is confirmed in the end', async () => {
    const [began, before] = [performance.now(), process.cpuUsage()];
    const { payment } = await payments.create(1012, '3h'); // settles at the third check
    await expect(jobs).toHaveEnqueued(paymentCheck, { payload: { paymentId: payment.id }, delay: '3h' });
    await jobs.advance('2h 59m');
    expect(payment).toMatchObject({ status: 'pending', checks: 0 });

    await jobs.advance('1m');
    expect(payment).toMatchObject({ status: 'pending', checks: 1 });
    await expect(jobs).toHaveEnqueued(paymentCheck, { id: payment.id, delay: '2s' }); // snoozed

    jobs.failNext(paymentCheck, new Error('The payment gateway answered 502'));
    await jobs.advance('2s');
    const [retried] = await jobs.enqueued(paymentCheck);
    expect(retried).toMatchObject({ attempts: 1, lastError: { message: 'The payment gateway answered 502' } });

    await jobs.advance('10s');
    expect(payment).toMatchObject({ status: 'confirmed', checks: 3 });
    await expect(jobs).toHaveCompleted(paymentCheck, { id: payment.id });
    // On a busy machine the second number is the honest one.
    const { user, system } = process.cpuUsage(before);
    const times = [performance.now() - began, (user + system) / 1000].map((ms) => `${ms.toFixed(0)} ms`);
    console.log(`A payment of three hours took ${times[0]}, ${times[1]} of the processor`);
  });
});
