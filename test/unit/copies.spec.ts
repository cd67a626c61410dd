import { describe, expect, it } from '@jest/globals';
import * as library from '../../lib/index.js';
import * as testing from '../../lib/testing/index.js';
import { decisionOf } from '../../lib/handlers/outcomes.js';
import { queueNameOf } from '../../lib/job/queue-definition.js';
import { typedError } from '../../lib/redis/redis.errors.js';
import { secondCopy } from '../helpers/second-copy.js';

const other = await secondCopy();
const KIND = Symbol.for('nestjs-delay-queue:kind');
const isError = (type: unknown): type is new (...args: never[]) => Error =>
  typeof type === 'function' && type.prototype instanceof library.DelayQueueError;

describe('what a second copy of the package made', () => {
  it('is of other classes, so that these tests show something', () => {
    expect(other.SnoozeJob).not.toBe(library.SnoozeJob);
    expect(Object.getPrototypeOf(new other.DiscardJob('no'))).not.toBe(library.DiscardJob.prototype);
  });

  it('snoozes and discards', () => {
    expect(decisionOf(new other.SnoozeJob('10m', { max: 3, payload: 1 }))).toEqual({
      kind: 'snoozed',
      delayMs: 600_000,
      max: 3,
      payload: { value: 1 },
    });
    expect(decisionOf(new other.DiscardJob('no'))).toMatchObject({ kind: 'discarded', reason: 'no' });
  });

  it('is distinguished by instanceof, in both directions', () => {
    const error: Error = new other.UnavailableError('gone');
    expect(error).toBeInstanceOf(library.UnavailableError);
    expect(error).toBeInstanceOf(library.DelayQueueError);
    expect(error).not.toBeInstanceOf(library.LayoutError);
    expect(new library.UnavailableError('gone')).toBeInstanceOf(other.UnavailableError);
    expect(new Error('gone')).not.toBeInstanceOf(library.DelayQueueError);
    for (const value of [undefined, null, 'gone', Object.create(null), () => undefined]) {
      expect((value as unknown) instanceof library.DelayQueueError).toBe(false);
    }
  });

  it('leaves classes of the application alone that extend ours', () => {
    class OutOfMoney extends library.DiscardJob {}
    expect(new other.DiscardJob('no')).not.toBeInstanceOf(OutOfMoney);
    expect(new library.DiscardJob('no')).not.toBeInstanceOf(OutOfMoney);
    expect(new OutOfMoney('no')).toBeInstanceOf(OutOfMoney);
    expect(new OutOfMoney('no')).toBeInstanceOf(other.DiscardJob);
  });

  it('is passed on by what wraps errors', () => {
    const error = new other.LayoutError('newer');
    expect(typedError(error, 'a call')).toBe(error);
  });

  it('is a definition as well', () => {
    expect(queueNameOf(other.defineQueue('mail'))).toBe('mail');
  });
});

it('every error of ours, and what handlers throw, is known across copies', () => {
  const exported = { ...library, ...testing };
  const own = Object.entries(exported).filter(([, type]) => isError(type)) as [string, { prototype: object }][];
  const known = [...own, ...Object.entries({ SnoozeJob: library.SnoozeJob, DiscardJob: library.DiscardJob })];
  expect(own.length).toBeGreaterThan(25);
  for (const [name, { prototype }] of known) {
    expect([name, Object.getOwnPropertyDescriptor(prototype, KIND)?.value]).toEqual([name, name]);
  }
});
