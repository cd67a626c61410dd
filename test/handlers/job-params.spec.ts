import { describe, expect, it } from '@jest/globals';
import { InvalidHandlerError, InvalidOptionError } from '../../lib/delay-queue.errors.js';
import { Job, JobPayload } from '../../lib/handlers/job-params.decorator.js';

class Payments {
  check(..._args: unknown[]) {}
}
const apply = (decorator: ParameterDecorator) => decorator(Payments.prototype, 'check', 0);

describe('@JobPayload', () => {
  it.each([
    [{ schema: {} }, 'schema'],
    [{ pipe: [] }, 'pipe'],
    [{ pipes: 'x' }, 'pipes'],
    [{ pipes: [{}] }, 'not a pipe'],
    [[], 'not a pipe'],
    [42, 'not a pipe'],
    [undefined, 'not a pipe'],
    [class NoPipe {}, 'not a pipe'],
    ['', 'empty'],
  ])('refuses %p, naming class and method', (argument, named) => {
    const decorate = () => apply(JobPayload(argument as string));
    expect(decorate).toThrow(InvalidOptionError);
    expect(decorate).toThrow(/^@JobPayload in Payments\.check: /);
    expect(decorate).toThrow(named);
  });

  it('takes a pipe that happens to have a property called pipes for a pipe', () => {
    expect(() => apply(JobPayload({ pipes: 'mine', transform: (value: unknown) => value } as never))).not.toThrow();
  });

  it('and @Job refuse constructors and static methods', () => {
    for (const decorator of [JobPayload(), Job()]) {
      expect(() => decorator(Payments, undefined, 0)).toThrow(InvalidHandlerError);
      expect(() => decorator(Payments, 'check', 0)).toThrow(/in Payments: put it on a parameter of an instance method/);
    }
  });
});
