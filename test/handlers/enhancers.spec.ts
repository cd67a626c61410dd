import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  type CanActivate,
  Controller,
  createParamDecorator,
  type ExecutionContext,
  ForbiddenException,
  Inject,
  Injectable,
  type NestInterceptor,
  type PipeTransform,
  SetMetadata,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { ApplicationConfig, ExternalContextCreator, ModulesContainer, Reflector } from '@nestjs/core';
import { EMPTY, of, tap, timeout } from 'rxjs';
import { InvalidHandlerError } from '../../lib/delay-queue.errors.js';
import { getDelayedJob, isDelayQueueContext } from '../../lib/handlers/delay-queue-context.js';
import { EnhancerResolver } from '../../lib/handlers/handler.enhancers.js';
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
  log.splice(0);
});

@Injectable()
class Name {
  readonly value = 'injected';
}

@Injectable()
class ClassGuard implements CanActivate {
  constructor(@Inject(Name) private readonly name: Name) {}

  canActivate() {
    log.push(`class guard ${this.name.value}`);
    return true;
  }
}

const guard = (name: string): CanActivate => ({ canActivate: () => log.push(name) > 0 });
const interceptor = (name: string): NestInterceptor => ({
  intercept: (_context, next) => {
    log.push(`${name} before`);
    return next.handle().pipe(tap(() => log.push(`${name} after`)));
  },
});
const pipe = (name: string): PipeTransform => ({
  transform: (value, { type, metatype, data }) => {
    log.push([name, type, metatype?.name, data].filter((part) => part !== undefined).join(' '));
    return value;
  },
});

class Amount {
  value = 0;
}

describe('around a handler', () => {
  it('enhancers of class and method run in the order of Nest', async () => {
    @UseGuards(ClassGuard)
    @UseInterceptors(interceptor('class interceptor'))
    @UsePipes(pipe('class pipe'))
    class Payments {
      @OnDelayed('a')
      @UseGuards(guard('method guard'))
      @UseInterceptors(interceptor('method interceptor'))
      @UsePipes(pipe('method pipe'))
      check(@JobPayload(pipe('own pipe')) _payload: Amount, @Job() _job: DelayedJob) {
        log.push('method');
      }
    }
    const app = await start({ providers: [Name, Payments] });
    expect(await app.run('a', { value: 1 })).toEqual({ kind: 'completed' });
    expect(log).toEqual([
      'class guard injected',
      'method guard',
      'class interceptor before',
      'method interceptor before',
      'class pipe body Amount',
      'method pipe body Amount',
      'own pipe body Amount',
      'method',
      'method interceptor after',
      'class interceptor after',
    ]);
  });

  it('guards given as a class run on the methods of a controller', async () => {
    @Controller()
    class Payments {
      @OnDelayed('a')
      @UseGuards(ClassGuard)
      check() {
        log.push('method');
      }
    }
    const app = await start({ providers: [Name], controllers: [Payments] });
    await app.run('a');
    expect(log).toEqual(['class guard injected', 'method']);
  });

  it('guards given as a class run, or boot is refused, under another token', async () => {
    class Payments {
      @OnDelayed('a')
      @UseGuards(ClassGuard)
      check() {
        log.push('method');
      }
    }
    const ending = await start({ providers: [Name, { provide: 'TOKEN', useClass: Payments }] }).then(
      async ({ run }) => run('a').then(() => log.join(', ')),
      (error: Error) => error.constructor,
    );
    // Nest 12 registers the guard, Nest 11 does not.
    expect(['class guard injected, method', InvalidHandlerError]).toContain(ending);
  });

  it.each([['useFactory'], ['useValue']])('boot is refused when %s hides an enhancer class from Nest', async (how) => {
    class MethodGuarded {
      @OnDelayed('a')
      @UseGuards(ClassGuard)
      check() {}
    }
    @UseFilters(class Filter {})
    class ClassFiltered {
      @OnDelayed('a')
      check() {}
    }
    class ParameterPiped {
      @OnDelayed('a')
      check(
        @JobPayload(
          class Pipe {
            transform() {}
          },
        )
        _payload: unknown,
      ) {}
    }
    for (const Payments of [MethodGuarded, ClassFiltered, ParameterPiped]) {
      const provider = how === 'useFactory' ? { useFactory: () => new Payments() } : { useValue: new Payments() };
      const booting = handling({ providers: [Name, { provide: 'TOKEN', ...provider }] });
      await expect(booting).rejects.toThrow(InvalidHandlerError);
      await expect(booting).rejects.toThrow(/check: Nest does not construct (ClassGuard|Filter|Pipe) /);
    }
  });

  it('a handler made by a factory has the enhancers that are instances', async () => {
    @UseInterceptors(interceptor('interceptor'))
    class Payments {
      @OnDelayed('a')
      @UseGuards(guard('guard'))
      check() {}
    }
    const app = await start({ providers: [{ provide: 'TOKEN', useFactory: () => new Payments() }] });
    await app.run('a');
    expect(log).toEqual(['guard', 'interceptor before', 'interceptor after']);
  });

  it('the same class in two modules has the guards of its own module', async () => {
    // One token, two values: the guard of each must be the one of its module.
    const moduleOf = (instance: string) => {
      class Feature {}
      return {
        module: Feature,
        providers: [{ provide: Name, useValue: { value: instance } }, handlersOf(instance)],
      };
    };
    const handlersOf = (queue: string) => {
      class Payments {
        @OnDelayed(queue)
        @UseGuards(ClassGuard)
        check() {}
      }
      return Payments;
    };
    const app = await start({ imports: [moduleOf('one'), moduleOf('two')] });
    await app.run('two');
    await app.run('one');
    expect(log).toEqual(['class guard two', 'class guard one']);
  });
});

describe('the context', () => {
  it('says that it is a job, and gives payload, job, class and the method itself to every enhancer', async () => {
    const seen: Record<string, ExecutionContext> = {};
    const FromContext = createParamDecorator((data: string, context: ExecutionContext) => {
      seen[data] = context;
      return data;
    });
    class Payments {
      @OnDelayed('a')
      @SetMetadata('role', 'admin')
      @UseGuards({ canActivate: (context: ExecutionContext) => !!(seen['guard'] = context) })
      @UseInterceptors({
        intercept: (context: ExecutionContext, next: CallHandler) => {
          seen['interceptor'] = context;
          return next.handle();
        },
      })
      @UseFilters({ catch: (_error: unknown, host: ExecutionContext) => (seen['filter'] = host) })
      check(@FromContext('parameter') _value: unknown) {
        throw new Error('for the filter');
      }
    }
    const method: unknown = Object.getOwnPropertyDescriptor(Payments.prototype, 'check')?.value;
    const app = await start({ providers: [Payments] });
    await app.run('a', { amount: 1 }, { id: 'x' });
    expect(Object.keys(seen)).toEqual(['guard', 'interceptor', 'parameter', 'filter']);
    for (const context of Object.values(seen)) {
      expect(context.getType()).toBe('delay-queue');
      expect(isDelayQueueContext(context)).toBe(true);
      expect(context.getArgs()).toEqual([{ amount: 1 }, expect.objectContaining({ id: 'x' })]);
      expect(getDelayedJob(context)?.id).toBe('x');
      expect(context.getClass()).toBe(Payments);
      expect(context.getHandler()).toBe(method);
      expect(new Reflector().get('role', context.getHandler())).toBe('admin');
    }
  });

  it('of another kind has no job', () => {
    const host = { getType: () => 'http', getArgByIndex: () => 'response' } as unknown as ExecutionContext;
    expect(isDelayQueueContext(host)).toBe(false);
    expect(getDelayedJob(host)).toBeUndefined();
  });
});

describe('arguments', () => {
  it('are (payload, job) without decorators', async () => {
    class Payments {
      @OnDelayed('a')
      check(...args: unknown[]) {
        log.push(args.length, args[0], (args[1] as DelayedJob).id);
      }
    }
    const app = await start({ providers: [Payments] });
    await app.run('a', { amount: 1 }, { id: 'x' });
    expect(log).toEqual([2, { amount: 1 }, 'x']);
  });

  it('come in the order of the decorators, each through its own pipes', async () => {
    const double: PipeTransform = { transform: (value: number) => value * 2 };
    class Increment implements PipeTransform {
      async transform(value: number) {
        return value + 1;
      }
    }
    const Tenant = createParamDecorator(async (_data: unknown, context: ExecutionContext) => {
      return `tenant of ${getDelayedJob(context)?.id}`;
    });
    class Payments {
      @OnDelayed('a')
      check(
        @Job() job: DelayedJob,
        @JobPayload('amount', double, Increment) amount: number,
        @JobPayload({ pipes: [{ transform: (value: object) => Object.keys(value) }] }) keys: string[],
        @Tenant() tenant: string,
        @JobPayload(double) whole: number,
        @JobPayload('missing') missing: unknown,
      ) {
        log.push(job.id, amount, keys, tenant, whole, missing);
      }
    }
    const app = await start({ providers: [Payments] });
    expect(await app.run('a', { amount: 4 }, { id: 'x' })).toEqual({ kind: 'completed' });
    expect(log).toEqual(['x', 9, ['amount'], 'tenant of x', Number.NaN, undefined]);
  });

  it('a property of a payload that is null is undefined', async () => {
    class Payments {
      @OnDelayed('a')
      check(@JobPayload('amount') amount: unknown) {
        log.push(amount);
      }
    }
    const app = await start({ providers: [Payments] });
    await app.run('a', null);
    expect(log).toEqual([undefined]);
  });

  it('pipes of class and method run on custom parameters as custom, and never on the job', async () => {
    const Custom = createParamDecorator(() => 'value');
    @UsePipes(pipe('class pipe'))
    class Payments {
      @OnDelayed('a')
      check(@Custom() _custom: string, @Job() _job: DelayedJob) {}
    }
    const app = await start({ providers: [Payments] });
    await app.run('a');
    expect(log).toEqual(['class pipe custom String']);
  });

  it('an override replaces the decorator of its own parameter and inherits the others', async () => {
    class Base {
      check(@JobPayload('a') _first: unknown, @JobPayload('b') _second: unknown) {}
    }
    class Derived extends Base {
      @OnDelayed('a')
      override check(first: unknown, @Job() second: DelayedJob) {
        log.push(first, second.id);
      }
    }
    const app = await start({ providers: [Derived] });
    await app.run('a', { a: 1, b: 2 }, { id: 'x' });
    expect(log).toEqual([1, 'x']);
  });
});

it('a Nest that is built in another way is refused', () => {
  const other = jest.spyOn(ExternalContextCreator, 'fromContainer').mockReturnValue({} as ExternalContextCreator);
  const make = () => new EnhancerResolver(new ModulesContainer(), new ApplicationConfig());
  expect(make).toThrow(InvalidHandlerError);
  expect(make).toThrow(/version of @nestjs\/core/);
  other.mockRestore();
  expect(make).not.toThrow();
});

describe('results', () => {
  const returning = (result: () => unknown, ...interceptors: NestInterceptor[]) => {
    class Payments {
      @OnDelayed('a')
      @UseInterceptors(...interceptors)
      check() {
        return result();
      }
    }
    return start({ providers: [Payments] });
  };

  it.each([
    ['nothing', () => undefined],
    ['a value', () => ({ done: true })],
    ['a promise', async () => 1],
    ['an observable', () => of(1, 2)],
    ['a promise of an observable', async () => of(1)],
    ['an empty observable', () => EMPTY],
  ])('%s completes the job', async (_name, result) => {
    expect(await (await returning(result)).run('a')).toEqual({ kind: 'completed' });
    await open?.app.close();
    expect(await (await returning(result, interceptor('i'))).run('a')).toEqual({ kind: 'completed' });
  });

  it('an interceptor sees each value of an observable, and leaving early unsubscribes from it', async () => {
    const { Observable } = await import('rxjs');
    const never = () =>
      new Observable((to) => {
        to.next('first');
        return () => log.push('torn down');
      });
    const seeing: NestInterceptor = {
      intercept: (_context, next) =>
        next.handle().pipe(
          tap((value) => log.push(value)),
          timeout({ each: 5 }),
        ),
    };
    const app = await returning(never, seeing);
    expect(await app.run('a')).toMatchObject({ kind: 'failed', error: { name: 'TimeoutError' } });
    expect(log).toEqual(['first', 'torn down']);
  });

  it('an interceptor that never calls the handler completes the job', async () => {
    const app = await returning(() => log.push('method'), { intercept: () => of('cached') });
    expect(await app.run('a')).toEqual({ kind: 'completed' });
    expect(log).toEqual([]);
  });
});

describe('a guard', () => {
  const guarded = (...guards: CanActivate[]) => {
    class Payments {
      @OnDelayed('a')
      @UseGuards(...guards)
      check() {
        log.push('method');
      }
    }
    return start({ providers: [Payments] });
  };

  it.each([
    ['false', () => false],
    ['a promise of false', async () => false],
    ['an observable of false', () => of(false)],
  ])('that answers %s fails the job', async (_name, canActivate) => {
    const outcome = await (await guarded({ canActivate })).run('a');
    expect(outcome).toMatchObject({ kind: 'failed', error: expect.any(ForbiddenException) });
    expect(log).toEqual([]);
  });

  it('that throws fails the job with its error', async () => {
    const error = new Error('no');
    const app = await guarded({
      canActivate: () => {
        throw error;
      },
    });
    expect(await app.run('a')).toEqual({ kind: 'failed', error });
  });
});
