import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { eventually } from '../../test/helpers/eventually.js';
import { RedisServer } from '../../test/helpers/redis-server.js';
import { World } from '../../test/helpers/world.js';
import { PaymentGateway } from '../src/payments/payment-gateway.js';
import { paymentCheck } from '../src/payments/payment-check.js';
import { deferred, Sample } from './sample.js';

/** Connecting anew takes up to 2.5 s, and this machine may be busy. */
const RECOVERY_MS = 15_000;
jest.setTimeout(40_000);

describe('GET /health', () => {
  let world: World;
  let sample: Sample;

  beforeEach(async () => {
    world = await World.open();
    sample = await Sample.start(world);
  });

  afterEach(async () => {
    jest.restoreAllMocks();
    await sample.close();
    await world.close();
  });

  it('tells that the queue is up', async () => {
    const { status, body } = await sample.get('/health');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      status: 'ok',
      info: { delay_queue: { status: 'up', redis: { status: 'up' }, queues: { 'payment.check': { status: 'up' } } } },
      error: {},
    });
  });

  it('is 503 when a check that is due has waited for more than a minute, and 200 when it has run', async () => {
    // Ten checks fill the worker, so that an eleventh has to wait.
    const answer = deferred<boolean>();
    const gateway = jest.spyOn(sample.app.get(PaymentGateway), 'hasSettled').mockReturnValue(answer.promise);
    await Promise.all(Array.from({ length: 10 }, () => sample.pay(1999)));
    await eventually(() => expect(gateway).toHaveBeenCalledTimes(10));
    const paymentId = randomUUID();
    await sample.producer.enqueue(paymentCheck, { paymentId }, { at: (await world.now()) - 120_000 });

    const { status, body } = await sample.get('/health');
    expect(status).toBe(503);
    expect(body.error.delay_queue).toMatchObject({
      status: 'down',
      reasons: [expect.stringMatching(/^Queue "payment.check" lags 2 min(?: \d+ s)? behind\.$/)],
      redis: { status: 'up' },
      queues: { 'payment.check': { status: 'down', due: 1, running: 10 } },
    });

    answer.resolve(true);
    await eventually(async () => expect(await sample.get('/health')).toMatchObject({ status: 200 }));
  });
});

describe('without Redis', () => {
  let server: RedisServer;
  let sample: Sample;

  beforeEach(async () => {
    server = await RedisServer.start({ appendfsync: 'always' });
    sample = await Sample.start({ url: server.url, prefix: 'dq' });
  });

  afterEach(async () => {
    await sample.close();
    await server.stop();
  });

  it('GET /health and new payments are 503; afterwards all is up again and no check was lost', async () => {
    const id = await sample.pay(1999, '1h');
    await server.kill();

    const down = { error: { delay_queue: { status: 'down', redis: { status: 'down' } } } };
    await eventually(async () => expect(await sample.get('/health')).toMatchObject({ status: 503, body: down }));
    expect(await sample.post('/payments', { amount: 1999, checkIn: '1h' })).toMatchObject({
      status: 503,
      body: { message: 'Checks cannot be scheduled right now. Try again later.' },
    });

    await server.restart();
    await eventually(async () => expect(await sample.get('/health')).toMatchObject({ status: 200 }), RECOVERY_MS);
    await sample.runCheckNow(id);
    await sample.becomes(id, { status: 'confirmed' });
  });
});
