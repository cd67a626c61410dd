import { afterEach, describe, expect, it } from '@jest/globals';
import { Injectable, type INestApplication, Scope, UsePipes, ValidationPipe } from '@nestjs/common';
import { APP_PIPE } from '@nestjs/core';
import { IsInt, Min } from 'class-validator';
import { Job, JobPayload } from '../../lib/handlers/job-params.decorator.js';
import { OnDelayed } from '../../lib/handlers/on-delayed.decorator.js';
import type { DelayedJob } from '../../lib/job/delayed-job.js';
import { type Handling, handling } from './handling.js';

let open: Handling | undefined;
const start = async (...args: Parameters<typeof handling>) => (open = await handling(...args));
const log: unknown[] = [];

afterEach(async () => {
  await open?.app.close();
  open = undefined;
  log.length = 0;
});

class CheckPayment {
  @IsInt()
  @Min(1)
  amount!: number;
}
interface CheckPaymentShape {
  amount: number;
}

const transforming = new ValidationPipe({ transform: true });
const invalid = { kind: 'invalid', error: expect.objectContaining({ status: 400 }) };

class Plain {
  @OnDelayed('a')
  check(payload: CheckPayment, job: DelayedJob) {
    log.push(payload instanceof CheckPayment, payload.amount, job.id);
  }
}
class Decorated {
  @OnDelayed('a')
  check(@Job() job: DelayedJob, @JobPayload() payload: CheckPayment) {
    log.push(payload instanceof CheckPayment, payload.amount, job.id);
  }
}

describe.each([[Plain], [Decorated]])('a ValidationPipe over the payload of %p', (handlers) => {
  const outcomes = async (...args: Parameters<typeof handling>) => {
    const { run, warnings } = await start(...args);
    return [await run('a', { amount: 0 }), await run('a', { amount: 5 }, { id: 'x' }), ...log, ...warnings];
  };
  const validated = [invalid, { kind: 'completed' }, true, 5, 'x'];

  it('works as APP_PIPE', async () => {
    const providers = [handlers, { provide: APP_PIPE, useValue: transforming }];
    expect(await outcomes({ providers })).toEqual(validated);
  });

  it('works by app.useGlobalPipes()', async () => {
    const configure = (app: INestApplication) => void app.useGlobalPipes(transforming);
    expect(await outcomes({ providers: [handlers] }, { configure })).toEqual(validated);
  });

  it('works at class level', async () => {
    @UsePipes(transforming)
    class Piped extends handlers {}
    expect(await outcomes({ providers: [Piped] })).toEqual(validated);
  });

  it('works around a request-scoped handler', async () => {
    @Injectable({ scope: Scope.REQUEST })
    @UsePipes(transforming)
    class PerJob extends handlers {}
    expect(await outcomes({ providers: [PerJob] })).toEqual(validated);
  });
});

describe('a ValidationPipe for one parameter', () => {
  it('works, and leaves the others alone', async () => {
    class Payments {
      @OnDelayed('a')
      check(@JobPayload(transforming) payload: CheckPayment, @JobPayload() raw: CheckPayment) {
        log.push(payload instanceof CheckPayment, raw instanceof CheckPayment);
      }
    }
    const app = await start({ providers: [Payments] });
    expect(await app.run('a', { amount: 0 })).toEqual(invalid);
    expect(await app.run('a', { amount: 5 })).toEqual({ kind: 'completed' });
    expect(log).toEqual([true, false]);
  });
});

describe('the warning about a ValidationPipe that checks nothing', () => {
  const checksNothing = /^A ValidationPipe checks nothing in the payload of (.*?): /;

  it('comes once, naming the handlers whose payload has no class', async () => {
    @UsePipes(ValidationPipe)
    class Payments {
      @OnDelayed('plain')
      plain(_payload: CheckPaymentShape) {}

      @OnDelayed('decorated')
      decorated(@JobPayload() _payload: CheckPaymentShape) {}

      @OnDelayed('class')
      class(_payload: CheckPayment) {}

      @OnDelayed('property')
      property(@JobPayload('amount') _amount: number) {}

      @OnDelayed('none')
      none() {}

      @OnDelayed('job')
      job(@Job() _job: DelayedJob) {}
    }
    @Injectable({ scope: Scope.REQUEST })
    @UsePipes(ValidationPipe)
    class PerJob {
      @OnDelayed('per-job')
      check(_payload: CheckPaymentShape) {}
    }
    const { warnings } = await start({ providers: [Payments, PerJob] });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/Use a class, imported as a value, or a schema: defineQueue\(name, \{ schema \}\)\.$/);
    expect(checksNothing.exec(warnings[0] ?? '')?.[1]).toBe('Payments.plain, Payments.decorated, PerJob.check');
  });

  it('comes for a global pipe that is selected, and not for one that is left out', async () => {
    class Payments {
      @OnDelayed('a')
      check(_payload: CheckPaymentShape) {}
    }
    const providers = [Payments, { provide: APP_PIPE, useClass: ValidationPipe }];
    expect((await start({ providers })).warnings).toEqual([expect.stringMatching(checksNothing)]);
    await open?.app.close();
    expect((await start({ providers }, { globalEnhancers: 'none' })).warnings).toEqual([]);
  });

  it('comes for a pipe on a class whose base class is a provider too', async () => {
    class Base {}
    @UsePipes(ValidationPipe)
    class Payments extends Base {
      @OnDelayed('a')
      check(_payload: CheckPaymentShape) {}
    }
    expect((await start({ providers: [Base, Payments] })).warnings).toEqual([expect.stringMatching(checksNothing)]);
  });

  it('comes when the compiler emitted no types', async () => {
    class Payments {
      check(_payload: unknown) {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Payments.prototype, 'check') as PropertyDescriptor;
    OnDelayed('a')(Payments.prototype, 'check', descriptor);
    const providers = [Payments, { provide: APP_PIPE, useClass: ValidationPipe }];
    expect((await start({ providers })).warnings).toEqual([expect.stringMatching(checksNothing)]);
  });

  it('does not come when the pipe was given the class, or is no ValidationPipe', async () => {
    class Payments {
      @OnDelayed('told')
      @UsePipes(new ValidationPipe({ expectedType: CheckPayment }))
      told(_payload: CheckPaymentShape) {}

      @OnDelayed('other')
      @UsePipes({ transform: (value: unknown) => value })
      other(_payload: CheckPaymentShape) {}
    }
    expect((await start({ providers: [Payments] })).warnings).toEqual([]);
  });
});
