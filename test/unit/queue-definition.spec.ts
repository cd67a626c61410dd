import { describe, expect, it } from '@jest/globals';
import { InvalidDelayError, InvalidOptionError, InvalidQueueError } from '../../lib/delay-queue.errors.js';
import { exponential, fixed } from '../../lib/job/backoff.js';
import { defineQueue, isQueueDefinition, queueNameOf } from '../../lib/job/queue-definition.js';
import type { PayloadOf, QueueDefinition, QueueRef } from '../../lib/job/queue-definition.js';

interface CheckPayment {
  paymentId: string;
}

declare module '../../lib/job/queue-definition.js' {
  interface DelayQueues {
    'queue-definition.spec': CheckPayment;
  }
}

describe('a queue definition', () => {
  it('carries its name and its defaults, durations in ms', () => {
    const definition = defineQueue<CheckPayment>('payment.check', {
      attempts: 5,
      backoff: fixed('10s'),
      timeout: '1m',
      concurrency: 20,
      lease: '45s',
      delay: '3h',
      expiresIn: '1d',
      keepExpired: true,
      uniqueFor: '1h',
    });
    expect(definition.name).toBe('payment.check');
    expect(definition.defaults).toEqual({
      attempts: 5,
      backoff: fixed(10_000),
      timeoutMs: 60_000,
      concurrency: 20,
      leaseMs: 45_000,
      delayMs: 10_800_000,
      expiresInMs: 86_400_000,
      keepExpired: true,
      uniqueForMs: 3_600_000,
    });
  });

  it('has only the defaults that were given, so that those of the module show through', () => {
    expect(Object.keys(defineQueue('q').defaults)).toEqual([]);
    expect(Object.keys(defineQueue('q', { attempts: undefined, lease: '10s' }).defaults)).toEqual(['leaseMs']);
  });

  it('is frozen', () => {
    const definition = defineQueue('q', { backoff: exponential('1s') });
    expect(Object.isFrozen(definition)).toBe(true);
    expect(Object.isFrozen(definition.defaults)).toBe(true);
    expect(Object.isFrozen(definition.defaults.backoff)).toBe(true);
  });

  it.each<[string, object, new (message: string) => Error, RegExp]>([
    ['an unknown option', { atempts: 5 }, InvalidOptionError, /unknown option "atempts".* is "attempts"/],
    ['no attempts', { attempts: 0 }, InvalidOptionError, /defineQueue\("q", \{ attempts \}\): 0 is not a whole number/],
    ['too many attempts', { attempts: 1001 }, InvalidOptionError, /1001/],
    ['no concurrency', { concurrency: 0 }, InvalidOptionError, /concurrency/],
    ['too much concurrency', { concurrency: 10_001 }, InvalidOptionError, /from 1 to 10000/],
    ['half a concurrency', { concurrency: 1.5 }, InvalidOptionError, /1\.5/],
    ['a short lease', { lease: '99ms' }, InvalidDelayError, /defineQueue\("q", \{ lease \}\): "99ms" is too short/],
    ['a long lease', { lease: '25h' }, InvalidDelayError, /too long/],
    ['no timeout at all', { timeout: 0 }, InvalidDelayError, /at least 1 ms/],
    ['a timeout that no timer can hold', { timeout: '25d' }, InvalidDelayError, /at most 2147483647 ms/],
    ['a function as backoff', { backoff: () => 5 }, InvalidOptionError, /@OnDelayed/],
    ['a list', [], InvalidOptionError, /must be a plain object, but are an array/],
    ['null', null as never, InvalidOptionError, /but are null/],
  ])('refuses %s', (_, options, type, message) => {
    expect(() => defineQueue('q', options)).toThrow(type);
    expect(() => defineQueue('q', options)).toThrow(message);
  });

  it('takes the bounds themselves', () => {
    const least = { concurrency: 1, attempts: 1 };
    const most = { concurrency: 10_000, attempts: 1000 };
    expect(defineQueue('q', { ...least, lease: 100, timeout: 1 }).defaults).toMatchObject(least);
    expect(defineQueue('q', { ...most, lease: '24h', timeout: 2 ** 31 - 1 }).defaults).toMatchObject(most);
  });

  it('refuses a wrong name', () => {
    expect(() => defineQueue('a{b')).toThrow(InvalidQueueError);
    expect(() => defineQueue('')).toThrow('defineQueue(): is empty.');
  });
});

describe('a reference to a queue', () => {
  it('is a name or a definition', () => {
    expect(queueNameOf('payment.check')).toBe('payment.check');
    expect(queueNameOf(defineQueue('payment.check'))).toBe('payment.check');
  });

  it.each([
    ['a name that is none', ' '],
    ['undefined', undefined],
    ['a class', class {}],
    ['an object that only looks like a definition', { name: 'payment.check', defaults: {} }],
  ])('is not %s', (_, ref) => {
    expect(() => queueNameOf(ref as QueueRef)).toThrow(InvalidQueueError);
    expect(isQueueDefinition(ref)).toBe(false);
  });
});

// Checked by the compiler: a line that is wrongly accepted makes the comment above it an error.
describe('the type of a payload', () => {
  const accept = <Q extends QueueRef>(_queue: Q, payload: PayloadOf<Q>) => payload;
  const payments = defineQueue<CheckPayment>('payments');

  it('is that of the definition', () => {
    accept(payments, { paymentId: 'A-17' });
    // @ts-expect-error a number is no paymentId
    accept(payments, { paymentId: 17 });
    // @ts-expect-error paymentId is missing
    accept(payments, {});
    expect(payments).toBeDefined();
  });

  it('is that of DelayQueues for a plain name', () => {
    accept('queue-definition.spec', { paymentId: 'A-17' });
    // @ts-expect-error a number is no paymentId
    accept('queue-definition.spec', { paymentId: 17 });
    const payload: PayloadOf<'queue-definition.spec'> = { paymentId: 'A-17' };
    expect(payload.paymentId).toBe('A-17');
  });

  it('is unknown otherwise', () => {
    const unknownPayload: PayloadOf<'no such queue'> = 5;
    accept('no such queue', { anything: true });
    accept('some' as string, 5);
    // @ts-expect-error unknown has no fields
    expect(unknownPayload.length).toBeUndefined();
  });

  it('does not stop a definition from being passed where any is fine', () => {
    const names = (definitions: readonly QueueDefinition[]) => definitions.map(({ name }) => name);
    expect(names([payments, defineQueue<string>('texts')])).toEqual(['payments', 'texts']);
  });
});
