import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { eventually } from '../../test/helpers/eventually.js';
import { World } from '../../test/helpers/world.js';
import { PaymentGateway } from '../src/payments/payment-gateway.js';
import { paymentCheck } from '../src/payments/payment-check.js';
import { deferred, Sample } from './sample.js';

/** For a machine that is busy; all of this takes about three seconds. */
jest.setTimeout(30_000);

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

let world: World;
let sample: Sample;

beforeAll(async () => {
  world = await World.open();
  sample = await Sample.start(world);
});

afterAll(async () => {
  await sample.close();
  await world.close();
});

describe('a payment', () => {
  it('is pending until its check is due, then confirmed', async () => {
    const before = await world.now();
    const { status, body } = await sample.post('/payments', { amount: 1999, checkIn: '2s' });
    const after = await world.now();

    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(UUID),
      status: 'pending',
      check: { id: expect.any(String), dueAt: expect.any(String) },
    });
    const dueAt = Date.parse(body.check.dueAt);
    expect(dueAt).toBeGreaterThanOrEqual(before + 2_000);
    expect(dueAt).toBeLessThanOrEqual(after + 2_000);
    expect(await sample.check(body.check.id)).toMatchObject({
      queue: 'payment.check',
      payload: { paymentId: body.id },
    });

    const pending = await sample.get(`/payments/${body.id}`);
    expect(pending).toEqual({ status: 200, body: { id: body.id, status: 'pending', checks: 0 } });
    await sample.becomes(body.id, { status: 'confirmed', checks: 1 });
    expect(await world.now()).toBeGreaterThanOrEqual(dueAt);
  });

  it('that has not settled yet is checked again later, without using up an attempt', async () => {
    const id = await sample.pay(1012);
    for (const checks of [1, 2]) {
      await sample.becomes(id, { status: 'pending', checks });
      await eventually(async () => expect(await sample.check(id)).toMatchObject({ state: 'delayed', attempts: 0 }));
      await sample.runCheckNow(id);
    }
    await sample.becomes(id, { status: 'confirmed', checks: 3 });
  });

  it('is expired when it has not settled after five checks', async () => {
    const id = await sample.pay(1030);
    for (const checks of [1, 2, 3, 4]) {
      await sample.becomes(id, { status: 'pending', checks });
      await sample.runCheckNow(id);
    }
    await sample.becomes(id, { status: 'expired', checks: 5 });
    await eventually(async () => expect(await sample.check(id)).toBeUndefined());
  });

  it('is checked again after a backoff when the gateway fails', async () => {
    const before = await world.now();
    const id = await sample.pay(1021);
    const check = await eventually(async () => {
      const found = await sample.check(id);
      expect(found).toMatchObject({ state: 'delayed', attempts: 1, maxAttempts: 5 });
      return found!;
    });
    expect(check.lastError).toMatchObject({ message: 'The payment gateway answered 502' });
    expect(check.dueAt.getTime()).toBeGreaterThanOrEqual(before + 800);
    expect(check.dueAt.getTime()).toBeLessThanOrEqual((await world.now()) + 1_200);

    await sample.runCheckNow(id);
    await sample.becomes(id, { status: 'confirmed', checks: 2 });
  });

  it('stays pending, with its check kept as a dead letter, when the gateway never recovers', async () => {
    const id = await sample.pay(1029);
    for (const checks of [1, 2, 3, 4]) {
      await sample.becomes(id, { checks });
      await sample.runCheckNow(id);
    }
    await eventually(async () =>
      expect(await sample.check(id)).toMatchObject({ state: 'dead', deadReason: 'exhausted', attempts: 5 }),
    );
    await sample.becomes(id, { status: 'pending', checks: 5 });
    expect(await sample.delete(`/payments/${id}`)).toMatchObject({
      status: 409,
      body: { message: `Payment ${id} could not be checked: its check is a dead letter` },
    });
  });

  it('that nobody knows is 404', async () => {
    const id = randomUUID();
    const unknown = { status: 404, body: { message: `There is no payment ${id}` } };
    expect(await sample.get(`/payments/${id}`)).toMatchObject(unknown);
    expect(await sample.delete(`/payments/${id}`)).toMatchObject(unknown);
  });
});

describe('DELETE', () => {
  it('cancels the pending check, and answers the same when asked twice', async () => {
    const id = await sample.pay(1999, '1h');
    const cancelled = { status: 200, body: { id, status: 'cancelled', checks: 0 } };
    expect(await sample.delete(`/payments/${id}`)).toEqual(cancelled);
    expect(await sample.check(id)).toBeUndefined();
    expect(await sample.delete(`/payments/${id}`)).toEqual(cancelled);
    expect(await sample.get(`/payments/${id}`)).toEqual(cancelled);
  });

  it('is refused while the payment is being checked, and once it is confirmed', async () => {
    const answer = deferred<boolean>();
    jest.spyOn(sample.app.get(PaymentGateway), 'hasSettled').mockReturnValueOnce(answer.promise);
    const id = await sample.pay(1999);
    await sample.becomes(id, { checks: 1 });
    expect(await sample.delete(`/payments/${id}`)).toMatchObject({
      status: 409,
      body: { message: `Payment ${id} is being checked at this moment` },
    });
    answer.resolve(true);
    await sample.becomes(id, { status: 'confirmed' });
    expect(await sample.delete(`/payments/${id}`)).toMatchObject({
      status: 409,
      body: { message: `Payment ${id} is confirmed already` },
    });
  });
});

describe('bad input is 400 and says what is wrong', () => {
  const valid = { amount: 1999, checkIn: '2s' };

  it.each<[string, unknown, RegExp]>([
    ['no body', undefined, /amount must be an integer number/],
    ['broken JSON', '{"amount":', /JSON/],
    ['a list', [valid], /amount must be an integer number/],
    ['an amount in text', { ...valid, amount: '1999' }, /amount must be an integer number/],
    ['a broken amount', { ...valid, amount: 19.99 }, /amount must be an integer number/],
    ['an amount of nothing', { ...valid, amount: 0 }, /amount must not be less than 1/],
    ['an amount beyond all bounds', { ...valid, amount: 1e21 }, /amount must not be greater than 100000000/],
    ['no checkIn', { amount: 1999 }, /checkIn should not be null or undefined/],
    ['a checkIn of null', { ...valid, checkIn: null }, /checkIn should not be null or undefined/],
    ['an empty checkIn', { ...valid, checkIn: '' }, /^checkIn: .*is empty/],
    ['a checkIn that is no duration', { ...valid, checkIn: 'soon' }, /^checkIn: .*"soon" is not a duration/],
    ['a checkIn without a unit', { ...valid, checkIn: '2' }, /^checkIn: .*"2" has no unit/],
    ['a checkIn with rest text', { ...valid, checkIn: '2s please' }, /^checkIn: .*"2s please" is not a duration/],
    ['a negative checkIn', { ...valid, checkIn: -1 }, /^checkIn: .*-1 is negative/],
    ['a checkIn above a hundred years', { ...valid, checkIn: '99999d' }, /^checkIn: .*more than 100 years/],
    ['a checkIn that is an object', { ...valid, checkIn: { seconds: 2 } }, /^checkIn: .*is not a duration/],
    ['a field too many', { ...valid, currency: 'EUR' }, /property currency should not exist/],
  ])('%s', async (_, input, message) => {
    const { status, body } = await sample.post('/payments', input);
    expect(status).toBe(400);
    expect([body.message].flat().join('; ')).toMatch(message);
  });
});

describe('a job that fits no payment becomes a dead letter at once', () => {
  it('when the payment is gone', async () => {
    const paymentId = randomUUID();
    await sample.producer.enqueue(paymentCheck, { paymentId }, { id: paymentId });
    await eventually(async () => expect(await sample.check(paymentId)).toMatchObject({ deadReason: 'discarded' }));
  });

  it('when the pipe refuses its payload', async () => {
    await sample.producer.enqueue(paymentCheck, { paymentId: 'A-17' }, { id: 'A-17' });
    await eventually(async () => expect(await sample.check('A-17')).toMatchObject({ deadReason: 'invalid' }));
  });
});
