import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  BadRequestException,
  type CallHandler,
  Catch,
  ConsoleLogger,
  type ExceptionFilter,
  HttpException,
  type NestInterceptor,
  NotFoundException,
  type PipeTransform,
  UnprocessableEntityException,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  type CanActivate,
} from '@nestjs/common';
import { catchError, from, lastValueFrom, map, merge, of, retry, switchMap, throwError } from 'rxjs';
import { OnDelayed } from '../../lib/handlers/on-delayed.decorator.js';
import { DiscardJob, SnoozeJob } from '../../lib/handlers/outcomes.js';
import { type Handling, handling } from './handling.js';

let open: Handling | undefined;
const log: unknown[] = [];

afterEach(async () => {
  await open?.app.close();
  open = undefined;
  log.splice(0);
  jest.restoreAllMocks();
});

interface Around {
  guards?: CanActivate[];
  pipes?: PipeTransform[];
  interceptors?: NestInterceptor[];
  filters?: ExceptionFilter[];
}

/** One handler on queue `a` with these around it. */
async function around(method: (payload: unknown) => unknown, { guards, pipes, interceptors, filters }: Around = {}) {
  class Payments {
    @OnDelayed('a')
    @UseGuards(...(guards ?? []))
    @UsePipes(...(pipes ?? []))
    @UseInterceptors(...(interceptors ?? []))
    @UseFilters(...(filters ?? []))
    check(payload: unknown) {
      return method(payload);
    }
  }
  return (open = await handling({ providers: [Payments] }));
}

const throwing = (error: unknown) => () => {
  throw error;
};
const filter = (answer: (error: unknown) => unknown): ExceptionFilter => {
  @Catch()
  class Filter {
    catch(error: unknown) {
      log.push(error);
      return answer(error);
    }
  }
  return new Filter();
};
const interceptor = (pipe: (next: CallHandler) => ReturnType<CallHandler['handle']>): NestInterceptor => ({
  intercept: (_context, next) => pipe(next),
});

describe('what a handler throws', () => {
  const frozen = Object.freeze(new Error('frozen'));
  it.each([[new Error('x')], [frozen], [undefined], [null], ['text'], [Symbol('s')], [Object.create(null) as object]])(
    'reaches the outcome as it is: %p',
    async (error) => {
      for (const enhancers of [{}, { interceptors: [interceptor((next) => next.handle())] }]) {
        const app = await around(throwing(error), enhancers);
        const outcome = await app.run('a');
        expect(outcome.kind).toBe('failed');
        expect((outcome as { error: unknown }).error).toBe(error);
        await app.app.close();
      }
    },
  );

  it('may come from the value that it returned, when that is looked at', async () => {
    const strict = new Proxy(
      {},
      {
        get: (_, name) => {
          if (name !== 'then') throw new Error(`unknown ${String(name)}`);
        },
      },
    );
    const app = await around(async () => strict);
    expect(await app.run('a')).toEqual({ kind: 'failed', error: new Error('unknown lift') });
  });

  it('is a failure also when it cannot be looked at', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const app = await around(throwing(proxy));
    expect((await app.run('a')).kind).toBe('failed');
  });

  it('is a failure also when a filter throws what cannot be looked at', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const app = await around(throwing(new Error('x')), { filters: [filter(throwing(proxy))] });
    expect((await app.run('a')).kind).toBe('failed');
  });

  it('is a failure also where something before the handler throws it, whatever it is', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const strange = new Proxy({}, { get: throwing(new Error('strange')) });
    for (const error of [undefined, null, 'text', { stack: 42 }, proxy, strange]) {
      for (const enhancers of [
        { guards: [{ canActivate: throwing(error) }] },
        { interceptors: [{ intercept: throwing(error) }] },
      ]) {
        const app = await around(() => 1, enhancers);
        const outcome = await app.run('a');
        expect(outcome.kind).toBe('failed');
        expect(Object.is((outcome as { error: unknown }).error, error)).toBe(true);
        await app.app.close();
      }
    }
  });

  it('is the same error from a rejected promise and a failed observable', async () => {
    const error = new Error('x');
    for (const method of [async () => throwing(error)(), () => throwError(() => error)]) {
      const app = await around(method);
      expect(await app.run('a')).toEqual({ kind: 'failed', error });
      await app.app.close();
    }
  });

  it('is not logged by Nest', async () => {
    const error = jest.spyOn(ConsoleLogger.prototype, 'error').mockImplementation(() => undefined);
    const app = await around(throwing(new Error('x')));
    app.app.useLogger(new ConsoleLogger());
    await app.run('a');
    expect(error).not.toHaveBeenCalled();
  });
});

describe('a filter', () => {
  const error = new Error('x');

  it.each([
    ['a value', () => 'handled'],
    ['null', () => null],
    ['nothing', () => undefined],
    ['nothing, later', async () => undefined],
    ['an observable', () => of(1)],
  ])('that returns %s has handled the failure', async (_name, answer) => {
    const app = await around(throwing(error), { filters: [filter(answer)] });
    expect(await app.run('a')).toEqual({ kind: 'completed', handled: error });
    expect(log).toEqual([error]);
  });

  it('that handles a thrown undefined says so too', async () => {
    const app = await around(throwing(undefined), { filters: [filter(() => 'handled')] });
    expect(await app.run('a')).toStrictEqual({ kind: 'completed', handled: undefined });
  });

  it.each([
    ['throws it again', throwing(error)],
    ['rejects with it', async () => throwing(error)()],
    ['returns an observable that fails with it, as for rpc', () => throwError(() => error)],
  ])('that %s keeps the retry', async (_name, answer) => {
    const app = await around(throwing(error), { filters: [filter(answer)] });
    expect(await app.run('a')).toEqual({ kind: 'failed', error });
  });

  it('that throws another error gives the job that error', async () => {
    const other = new Error('translated');
    const app = await around(throwing(error), { filters: [filter(throwing(other))] });
    expect(await app.run('a')).toEqual({ kind: 'failed', error: other });
  });

  it('may turn an error into a snooze or a discard', async () => {
    const app = await around(throwing(error), { filters: [filter(throwing(new SnoozeJob('1m')))] });
    expect(await app.run('a')).toMatchObject({ kind: 'snoozed', delayMs: 60_000 });
  });

  it('gets only the errors that it names, and the one closest to the method comes first', async () => {
    class Named extends Error {}
    @Catch(Named)
    class NamedFilter {
      catch() {
        log.push('named');
      }
    }
    @Catch()
    class AnyFilter {
      catch() {
        log.push('any');
      }
    }
    @UseFilters(AnyFilter)
    class Payments {
      @OnDelayed('a')
      @UseFilters(NamedFilter)
      check(payload: unknown) {
        throw payload === 'named' ? new Named() : new Error('other');
      }
    }
    open = await handling({ providers: [Payments] });
    await open.run('a', 'named');
    await open.run('a', 'other');
    expect(log).toEqual(['named', 'any']);
  });

  it('gets the failures of guards, pipes and interceptors', async () => {
    const thrower = throwing(error);
    for (const enhancers of [
      { guards: [{ canActivate: thrower }] },
      { pipes: [{ transform: thrower }] },
      { interceptors: [{ intercept: thrower }] },
    ]) {
      const app = await around(() => 1, { ...enhancers, filters: [filter(() => 'handled')] });
      expect(await app.run('a')).toEqual({ kind: 'completed', handled: error });
      await app.app.close();
    }
  });
});

describe('a refused payload', () => {
  const invalid = [
    new BadRequestException('b'),
    new UnprocessableEntityException('u'),
    new (class Custom extends BadRequestException {})('c'),
    new HttpException('h', 422),
  ];

  it.each(invalid.map((error) => [error]))('by a pipe is invalid: %p', async (error) => {
    const app = await around(() => log.push('method'), { pipes: [{ transform: throwing(error) }] });
    expect(await app.run('a')).toEqual({ kind: 'invalid', error });
    expect(log).toEqual([]);
  });

  it('stays invalid through interceptors and a filter that rethrows', async () => {
    const app = await around(() => 1, {
      pipes: [{ transform: throwing(invalid[0]) }],
      interceptors: [interceptor((next) => next.handle().pipe(retry(2)))],
      filters: [filter((error) => throwing(error)())],
    });
    expect(await app.run('a')).toEqual({ kind: 'invalid', error: invalid[0] });
  });

  it.each([
    ['another exception by a pipe', { pipes: [{ transform: throwing(new NotFoundException()) }] }],
    ['an error by a pipe', { pipes: [{ transform: throwing(new Error('bug')) }] }],
    ['a bad request by a guard', { guards: [{ canActivate: throwing(invalid[0]) }] }],
    ['a bad request by an interceptor', { interceptors: [{ intercept: throwing(invalid[0]) }] }],
  ])('is not meant by %s', async (_name, enhancers) => {
    expect(await (await around(() => 1, enhancers)).run('a')).toMatchObject({ kind: 'failed' });
  });

  it('is not meant by a bad request from the method', async () => {
    expect(await (await around(throwing(invalid[0]))).run('a')).toEqual({ kind: 'failed', error: invalid[0] });
  });

  it('is forgotten when a retry gets past the pipe', async () => {
    let first = true;
    const pipe: PipeTransform = {
      transform: () => {
        if (!first) return;
        first = false;
        throw invalid[0];
      },
    };
    const app = await around(throwing(invalid[0]), {
      pipes: [pipe],
      interceptors: [interceptor((next) => next.handle().pipe(retry(1)))],
    });
    expect(await app.run('a')).toEqual({ kind: 'failed', error: invalid[0] });
  });
});

describe('SnoozeJob and DiscardJob', () => {
  const snoozed = { kind: 'snoozed', delayMs: 1000, max: 2, payload: { value: 'next' } };
  const snooze = () => new SnoozeJob(1000, { max: 2, payload: 'next' });

  it.each([
    ['thrown', () => throwing(snooze())()],
    ['rejected', async () => throwing(snooze())()],
    ['from an observable', () => throwError(snooze)],
    ['from a promise of an observable', async () => throwError(snooze)],
  ])('are outcomes when %s', async (_name, method) => {
    for (const enhancers of [{}, { interceptors: [interceptor((next) => next.handle())] }]) {
      const app = await around(method, enhancers);
      expect(await app.run('a')).toEqual(snoozed);
      await app.app.close();
    }
  });

  it('are seen by no filter and no interceptor as errors', async () => {
    const app = await around(throwing(new DiscardJob('gone')), {
      interceptors: [
        interceptor((next) =>
          next.handle().pipe(
            catchError((error: unknown) => {
              log.push(error);
              throw error;
            }),
          ),
        ),
      ],
      filters: [filter(() => 'handled')],
    });
    expect(await app.run('a')).toEqual({ kind: 'discarded', reason: 'gone', thrown: expect.any(DiscardJob) });
    expect(log).toEqual([]);
  });

  it.each([
    ['replace the value', interceptor((next) => next.handle().pipe(map(() => 'other')))],
    ['map a value that is not there', interceptor((next) => next.handle().pipe(map((value: any) => value.id)))],
    ['go on to something else', interceptor((next) => next.handle().pipe(switchMap(() => of(1, 2))))],
    [
      'await it',
      { intercept: async (_: unknown, next: CallHandler) => of(await lastValueFrom(next.handle())) } as NestInterceptor,
    ],
  ])('survive interceptors that %s', async (_name, one) => {
    const app = await around(throwing(snooze()), { interceptors: [one], filters: [filter(() => 'handled')] });
    expect(await app.run('a')).toEqual(snoozed);
    expect(log).toEqual([]);
  });

  it('are forgotten when an interceptor calls the handler again', async () => {
    let calls = 0;
    const twice = interceptor((next) => next.handle().pipe(switchMap(() => next.handle())));
    const method = () => {
      if (++calls === 1) throw snooze();
    };
    expect(await (await around(method, { interceptors: [twice] })).run('a')).toEqual({ kind: 'completed' });
    expect(calls).toBe(2);
  });

  it('count when a retry ends with them', async () => {
    let calls = 0;
    const retrying = interceptor((next) => next.handle().pipe(retry(3)));
    const method = () => {
      if (++calls < 3) throw new Error('not yet');
      throw snooze();
    };
    expect(await (await around(method, { interceptors: [retrying] })).run('a')).toEqual(snoozed);
    expect(calls).toBe(3);
  });

  it('do not count when they come late from a call that was given up and repeated', async () => {
    let calls = 0;
    let giveUp!: (reason: Error) => void;
    const givenUp = new Promise<never>((_resolve, reject) => (giveUp = reject));
    let endFirst!: (reason: unknown) => void;
    const first = new Promise<void>((_resolve, reject) => (endFirst = reject));
    const once = interceptor((next) => (calls === 0 ? merge(next.handle(), from(givenUp)) : next.handle()));
    const method = async () => {
      if (++calls === 1) {
        setImmediate(giveUp, new Error('given up'));
        return first;
      }
      endFirst(snooze());
      await first.catch(() => undefined);
    };
    const app = await around(method, { interceptors: [interceptor((next) => next.handle().pipe(retry(1))), once] });
    expect(await app.run('a')).toEqual({ kind: 'completed' });
    expect(calls).toBe(2);
  });

  it.each([
    ['a guard', { guards: [{ canActivate: throwing(snooze()) }] }],
    ['a pipe', { pipes: [{ transform: throwing(snooze()) }] }],
    ['an interceptor', { interceptors: [{ intercept: throwing(snooze()) }] }],
  ])('count when %s throws them, and no filter sees them', async (_name, enhancers) => {
    const app = await around(() => log.push('method'), { ...enhancers, filters: [filter(() => 'handled')] });
    expect(await app.run('a')).toEqual(snoozed);
    expect(log).toEqual([]);
  });
});

it('a failure that an interceptor turns into a value completes the job', async () => {
  const app = await around(throwing(new Error('x')), {
    interceptors: [interceptor((next) => next.handle().pipe(catchError(() => of('instead'))))],
  });
  expect(await app.run('a')).toEqual({ kind: 'completed' });
});
