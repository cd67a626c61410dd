import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, Module, Query, Scope, UseGuards } from '@nestjs/common';
import {
  DuplicateHandlerError,
  InvalidHandlerError,
  InvalidOptionError,
  InvalidQueueError,
  UnknownInstanceError,
} from '../../lib/delay-queue.errors.js';
import { Job, JobPayload } from '../../lib/handlers/job-params.decorator.js';
import { OnDelayed } from '../../lib/handlers/on-delayed.decorator.js';
import { defineQueue } from '../../lib/job/queue-definition.js';
import { type Handling, handling, type HandlingSettings } from './handling.js';

let open: Handling | undefined;
const start = async (...args: Parameters<typeof handling>) => (open = await handling(...args));
const queues = ({ handlers }: Handling) => handlers.map(({ queue, name }) => `${queue} > ${name}`).sort();

afterEach(async () => {
  await open?.app.close();
  open = undefined;
});

const calls: unknown[] = [];
afterEach(() => {
  calls.length = 0;
});

describe('exploring', () => {
  it('finds handlers of providers and controllers in all modules', async () => {
    @Injectable()
    class Payments {
      @OnDelayed('payment.check')
      check() {}

      @OnDelayed('payment.remind')
      remind() {}

      other() {}
    }
    @Controller('orders')
    class Orders {
      @Get()
      list() {}

      @OnDelayed('order.cancel')
      cancel() {
        calls.push(this);
      }
    }
    @Module({ controllers: [Orders] })
    class OrdersModule {}

    const app = await start({ imports: [OrdersModule], providers: [Payments] });
    expect(queues(app)).toEqual([
      'order.cancel > Orders.cancel',
      'payment.check > Payments.check',
      'payment.remind > Payments.remind',
    ]);
    await app.run('order.cancel');
    expect(calls).toEqual([app.app.get(Orders)]);
  });

  it('keeps the options and the definition that the decorator was given', async () => {
    const definition = defineQueue('payment.check', { attempts: 3 });
    const options = { concurrency: 5 };
    class Payments {
      @OnDelayed(definition, options)
      check() {}

      @OnDelayed('plain')
      plain() {}
    }
    const { handlers } = await start({ providers: [Payments] });
    expect(handlers).toEqual([
      expect.objectContaining({ queue: 'payment.check', options, definition }),
      expect.objectContaining({ queue: 'plain', options: {}, definition: undefined }),
    ]);
  });

  it('binds one method to several queues', async () => {
    class Payments {
      @OnDelayed('a')
      @OnDelayed('b', { attempts: 2 })
      check(_payload: unknown, job: { queue: string }) {
        calls.push(job.queue);
      }
    }
    const app = await start({ providers: [Payments] });
    expect(queues(app)).toEqual(['a > Payments.check', 'b > Payments.check']);
    await app.run('a');
    await app.run('b');
    expect(calls).toEqual(['a', 'b']);
  });

  it('finds inherited handlers, and none in an override without the decorator', async () => {
    class Base {
      @OnDelayed('inherited')
      inherited(payload: unknown) {
        calls.push([this.constructor.name, payload]);
      }

      @OnDelayed('overridden')
      overridden() {}
    }
    class Derived extends Base {
      override overridden() {}
    }
    const app = await start({ providers: [Derived] });
    expect(queues(app)).toEqual(['inherited > Derived.inherited']);
    await app.run('inherited', 1);
    expect(calls).toEqual([['Derived', 1]]);
  });

  it('finds a method that a decorator above wrapped, or that a mixin copied', async () => {
    const Wrapped = () => (_target: object, _key: string, descriptor: PropertyDescriptor) => {
      const inner = descriptor.value as () => void;
      descriptor.value = function wrapper(this: unknown, ...args: []) {
        calls.push('wrapper');
        return inner.apply(this, args);
      };
    };
    class Payments {
      @Wrapped()
      @OnDelayed('wrapped')
      wrapped() {}
    }
    class Mixin {
      @OnDelayed('copied')
      copied(@Job() job: { id: string }, @JobPayload() payload: unknown) {
        calls.push([job.id, payload]);
      }
    }
    class Target {}
    Object.defineProperty(
      Target.prototype,
      'copied',
      Object.getOwnPropertyDescriptor(Mixin.prototype, 'copied') as PropertyDescriptor,
    );
    const app = await start({ providers: [Payments, Target] });
    expect(queues(app)).toEqual(['copied > Target.copied', 'wrapped > Payments.wrapped']);
    await app.run('wrapped');
    await app.run('copied', 'payload', { id: 'x' });
    expect(calls).toEqual(['wrapper', ['x', 'payload']]);
  });

  it('counts an aliased provider and a factory that hands out the same instance once, and as the class', async () => {
    @UseGuards(
      class Guard {
        canActivate = () => true;
      },
    )
    class Payments {
      @OnDelayed('a')
      check() {}
    }
    @Module({ providers: [Payments], exports: [Payments] })
    class Feature {}
    // As a factory of the outer module, Nest would not know the guard, and boot would be refused.
    const app = await start({
      imports: [Feature],
      providers: [
        { provide: 'FACTORY', useFactory: (payments: Payments) => payments, inject: [Payments] },
        { provide: 'ALIAS', useExisting: Payments },
      ],
    });
    expect(queues(app)).toEqual(['a > Payments.check']);
  });

  it('counts a request-scoped handler once that is aliased by its base class', async () => {
    abstract class Base {
      @OnDelayed('a')
      check() {}
    }
    @Injectable({ scope: Scope.REQUEST })
    class Payments extends Base {}
    const app = await start({ providers: [Payments, { provide: Base, useExisting: Payments }] });
    expect(queues(app)).toEqual(['a > Payments.check']);
  });

  it('finds handlers made by a factory, given as a value, or provided under another token', async () => {
    const make = (queue: string) => {
      class Payments {
        @OnDelayed(queue)
        check(payload: unknown) {
          calls.push([queue, payload]);
        }
      }
      return Payments;
    };
    const [Made, Given, Named] = [make('factory'), make('value'), make('class')];
    const app = await start({
      providers: [
        { provide: 'FACTORY', useFactory: async () => new Made() },
        { provide: 'VALUE', useValue: new Given() },
        { provide: 'CLASS', useClass: Named },
      ],
    });
    for (const queue of ['factory', 'value', 'class']) {
      expect(await app.run(queue, 1)).toEqual({ kind: 'completed' });
    }
    expect(calls).toEqual([
      ['factory', 1],
      ['value', 1],
      ['class', 1],
    ]);
  });

  it('runs no getters and survives odd providers', async () => {
    class Odd {
      get trap(): never {
        throw new Error('read');
      }
    }
    const nothing: unknown = Object.create(null);
    await expect(
      start({
        providers: [
          Odd,
          { provide: 'NOTHING', useValue: nothing },
          { provide: 'NULL', useValue: null },
          { provide: 'FN', useValue: () => undefined },
          { provide: 'TEXT', useValue: 'text' },
          { provide: 'UNDEFINED', useFactory: () => undefined },
        ],
      }),
    ).resolves.toMatchObject({ handlers: [], warnings: [] });
  });

  it('takes the handlers of its own instance and leaves those of others', async () => {
    class Payments {
      @OnDelayed('a')
      here() {}

      @OnDelayed('a', { instance: 'eu' })
      there() {}
    }
    const instances = new Set(['default', 'eu']);
    expect(queues(await start({ providers: [Payments] }, { instances }))).toEqual(['a > Payments.here']);
    await open?.app.close();
    expect(queues(await start({ providers: [Payments] }, { instances, instance: 'eu' }))).toEqual([
      'a > Payments.there',
    ]);
  });
});

describe('exploring refuses', () => {
  const refusal = async (
    providers: (new () => object)[],
    settings?: HandlingSettings,
  ): Promise<Error & { code?: string }> =>
    handling({ providers }, settings).then(
      () => {
        throw new Error('booted');
      },
      (error: Error) => error,
    );

  it('two handlers for one queue, naming both', async () => {
    class One {
      @OnDelayed('a')
      check() {}
    }
    class Two {
      @OnDelayed(defineQueue('a'))
      verify() {}
    }
    const error = await refusal([One, Two]);
    expect(error).toBeInstanceOf(DuplicateHandlerError);
    expect(error.message).toMatch(/"a".*One\.check.*Two\.verify/);
  });

  it('one class provided by two modules, naming both modules', async () => {
    class Payments {
      @OnDelayed('a')
      check() {}
    }
    @Module({ providers: [Payments] })
    class M1 {}
    @Module({ providers: [Payments] })
    class M2 {}
    const booting = handling({ imports: [M1, M2] });
    await expect(booting).rejects.toThrow(DuplicateHandlerError);
    await expect(booting).rejects.toThrow(/M1\/Payments\.check and M2\/Payments\.check/);
  });

  it.each([
    ['', InvalidQueueError],
    [' a', InvalidQueueError],
    ['a{b}', InvalidQueueError],
    [{ name: 'a', concurrency: 1 }, InvalidHandlerError],
    [undefined, InvalidHandlerError],
    [null, InvalidHandlerError],
    [{}, InvalidHandlerError],
  ])('%p as a queue', async (queue, type) => {
    class Payments {
      @OnDelayed(queue as string)
      check() {}
    }
    const error = await refusal([Payments]);
    expect(error).toBeInstanceOf(type);
    expect(error.message).toMatch(/^@OnDelayed on Payments\.check: /);
  });

  it('an undefined definition with a hint at the usual cause', async () => {
    class Payments {
      @OnDelayed(undefined as unknown as string)
      check() {}
    }
    expect((await refusal([Payments])).message).toMatch(/circular import/);
  });

  it('an instance that nobody declares', async () => {
    class Payments {
      @OnDelayed('a', { instance: 'mars' })
      check() {}
    }
    const error = await refusal([Payments], { instances: new Set(['default', 'eu']) });
    expect(error).toBeInstanceOf(UnknownInstanceError);
    expect(error.message).toMatch(/Payments\.check.*"mars".*"default", "eu"/);
  });

  it('options that the validator refuses, naming class and method', async () => {
    class Payments {
      @OnDelayed('a', { concurency: 5 } as object)
      check() {}
    }
    const validate = (options: object, queue: string) => {
      throw new InvalidOptionError(`unknown option ${Object.keys(options).join()} for ${queue}`);
    };
    const error = await refusal([Payments], { validate });
    expect(error).toBeInstanceOf(InvalidHandlerError);
    expect(error.message).toBe('@OnDelayed on Payments.check: unknown option concurency for a');
  });

  it('options that are no object', async () => {
    class Payments {
      @OnDelayed('a', 5 as unknown as object)
      check() {}
    }
    expect(await refusal([Payments])).toMatchObject({
      code: 'ERR_DQ_INVALID_HANDLER',
      message: '@OnDelayed on Payments.check: options: 5 is not an object.',
    });
  });

  it('decorated parameters mixed with plain ones', async () => {
    class Payments {
      @OnDelayed('a')
      check(@JobPayload() _payload: unknown, _job: unknown) {}
    }
    const error = await refusal([Payments]);
    expect(error).toBeInstanceOf(InvalidHandlerError);
    expect(error.message).toMatch(/Payments\.check: parameter 1 has no decorator/);
  });

  it('plain parameters before decorated ones, and ones with a default', async () => {
    class Before {
      @OnDelayed('a')
      check(_payload: unknown, @Job() _job: unknown) {}
    }
    class Default {
      @OnDelayed('a')
      check(@JobPayload() _payload: unknown, _more: number = 1) {}
    }
    expect((await refusal([Before])).message).toMatch(/Before\.check: parameter 0 has no decorator/);
    expect((await refusal([Default])).message).toMatch(/Default\.check: parameter 1 has no decorator/);
  });

  it('mixed parameters also when the compiler emits no types', async () => {
    class Payments {
      check(_payload: unknown, _job: unknown) {}
    }
    JobPayload()(Payments.prototype, 'check', 0);
    const descriptor = Object.getOwnPropertyDescriptor(Payments.prototype, 'check') as PropertyDescriptor;
    OnDelayed('a')(Payments.prototype, 'check', descriptor);
    expect((await refusal([Payments])).message).toMatch(/Payments\.check: parameter 1 has no decorator/);
  });

  it('two decorators for one parameter', async () => {
    class Payments {
      @OnDelayed('a')
      check(@JobPayload() @Job() _payload: unknown) {}
    }
    expect((await refusal([Payments])).message).toMatch(/parameter 0 has more than one decorator/);
  });

  it('a parameter decorator that reads a request', async () => {
    class Payments {
      @OnDelayed('a')
      check(@JobPayload() _payload: unknown, @Query('page') _page: unknown) {}
    }
    expect((await refusal([Payments])).message).toMatch(
      /Payments\.check: the decorator of parameter 1 reads a request/,
    );
  });
});

describe('@OnDelayed', () => {
  it('refuses static methods and properties when it is applied', () => {
    const apply = () => {
      class Payments {
        @OnDelayed('a')
        static check() {}
      }
      return Payments;
    };
    expect(apply).toThrow(InvalidHandlerError);
    expect(apply).toThrow(/Payments\.check/);
    class Payments {}
    expect(() => OnDelayed('a')(Payments.prototype, 'field', undefined as never)).toThrow(/Payments\.field/);
  });
});
