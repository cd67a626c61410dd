import { describe, expect, it } from '@jest/globals';
import { IntrinsicException } from '@nestjs/common';
import { InvalidDelayError, InvalidOptionError } from '../../lib/delay-queue.errors.js';
import { decisionOf, DiscardJob, SnoozeJob } from '../../lib/handlers/outcomes.js';

describe('SnoozeJob', () => {
  it('becomes a snooze of that delay', () => {
    expect(decisionOf(new SnoozeJob('10m'))).toEqual({ kind: 'snoozed', delayMs: 600_000 });
    expect(decisionOf(new SnoozeJob(1500, { max: 3, payload: null }))).toEqual({
      kind: 'snoozed',
      delayMs: 1500,
      max: 3,
      payload: { value: null },
    });
  });

  it('is an intrinsic exception of Nest, with a name and a message', () => {
    const snooze = new SnoozeJob('1s');
    expect(snooze).toBeInstanceOf(IntrinsicException);
    expect(String(snooze)).toBe('SnoozeJob: Snoozed for 1000 ms.');
  });

  it.each([[-1], ['soon'], [Number.NaN], [undefined], [Infinity]])('refuses %p as its delay', (delay) => {
    expect(() => new SnoozeJob(delay as number)).toThrow(InvalidDelayError);
  });

  it.each([
    [{ max: 0 }, 'max'],
    [{ max: 1.5 }, 'max'],
    [{ maximum: 3 }, 'maximum'],
    [{ payload: undefined }, 'payload'],
    ['3', 'object'],
    [null, 'object'],
  ])('refuses the options %p', (options, named) => {
    const snooze = () => new SnoozeJob('1s', options as object);
    expect(snooze).toThrow(InvalidOptionError);
    expect(snooze).toThrow(named);
  });
});

describe('DiscardJob', () => {
  it('becomes a discard with that reason', () => {
    const discard = new DiscardJob('payment is gone');
    expect(decisionOf(discard)).toEqual({ kind: 'discarded', reason: 'payment is gone', thrown: discard });
    expect(discard).toBeInstanceOf(IntrinsicException);
    expect(discard.message).toBe('payment is gone');
  });

  it.each([[''], ['  '], [undefined], [42]])('refuses %p as a reason', (reason) => {
    expect(() => new DiscardJob(reason as string)).toThrow(InvalidOptionError);
  });
});

it.each([[new Error('x')], [undefined], [null], ['text'], [{ reason: 'x', delayMs: 1 }]])(
  '%p decides nothing',
  (thrown) => {
    expect(decisionOf(thrown)).toBeUndefined();
  },
);
