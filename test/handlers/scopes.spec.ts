import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Inject,
  Injectable,
  Module,
  Scope,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { type ContextId, ContextIdFactory, type HostComponentInfo, INQUIRER, REQUEST } from '@nestjs/core';
import { DelayQueueRequest } from '../../lib/handlers/delay-queue-context.js';
import { OnDelayed } from '../../lib/handlers/on-delayed.decorator.js';
import { SnoozeJob } from '../../lib/handlers/outcomes.js';
import { type Handling, handling } from './handling.js';

let open: Handling | undefined;
const start = async (...args: Parameters<typeof handling>) => (open = await handling(...args));
const log: unknown[] = [];
let made = 0;

afterEach(async () => {
  await open?.app.close();
  open = undefined;
  log.length = 0;
  made = 0;
  ContextIdFactory.apply(undefined as never);
});

@Injectable({ scope: Scope.REQUEST })
class Unit {
  readonly id = ++made;

  constructor(@Inject(REQUEST) readonly request: DelayQueueRequest) {}
}

@Injectable()
class UnitGuard implements CanActivate {
  constructor(@Inject(Unit) private readonly unit: Unit) {}

  canActivate() {
    log.push(['guard', this.unit.id]);
    return true;
  }
}

describe('a request-scoped handler', () => {
  it('gets one tree of providers per job, shared with its guards, and the job as its request', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Payments {
      constructor(@Inject(Unit) private readonly unit: Unit) {}

      @OnDelayed('a')
      @UseGuards(UnitGuard)
      check(payload: unknown) {
        const { request, id } = this.unit;
        log.push(['method', id, request instanceof DelayQueueRequest, request.job.id, request.payload === payload]);
      }
    }
    const app = await start({ providers: [Unit, Payments] });
    await app.run('a', {}, { id: 'x' });
    await app.run('a', {}, { id: 'y' });
    expect(log).toEqual([
      ['guard', 1],
      ['method', 1, true, 'x', true],
      ['guard', 2],
      ['method', 2, true, 'y', true],
    ]);
  });

  it('may be so because of a dependency, or of a guard alone', async () => {
    class ByDependency {
      constructor(@Inject(Unit) private readonly unit: Unit) {}

      @OnDelayed('dependency')
      check() {
        log.push(this.unit.id);
      }
    }
    class ByGuard {
      readonly field = 'constructed';

      @OnDelayed('guard')
      @UseGuards(UnitGuard)
      check() {
        log.push(this.field);
      }
    }
    const app = await start({ providers: [Unit, ByDependency, ByGuard] });
    await app.run('dependency');
    await app.run('dependency');
    await app.run('guard');
    expect(log).toEqual([1, 2, ['guard', 3], 'constructed']);
  });

  it('may be a controller, and its module need not export anything', async () => {
    @Controller()
    class Payments {
      constructor(@Inject(Unit) private readonly unit: Unit) {}

      @OnDelayed('a')
      @UseGuards(UnitGuard)
      check() {
        log.push(['method', this.unit.id]);
      }
    }
    @Module({ providers: [Unit], controllers: [Payments] })
    class Feature {}
    const app = await start({ imports: [Feature] });
    await app.run('a');
    expect(log).toEqual([
      ['guard', 1],
      ['method', 1],
    ]);
  });

  it('may be made by a factory under its class', async () => {
    class Payments {
      constructor(private readonly unit: Unit) {}

      @OnDelayed('a')
      check() {
        log.push(this.unit.id);
      }
    }
    const app = await start({
      providers: [Unit, { provide: Payments, useFactory: (unit: Unit) => new Payments(unit), inject: [Unit] }],
    });
    await app.run('a');
    await app.run('a');
    expect(log).toEqual([1, 2]);
  });

  it('keeps jobs that run at the same time apart', async () => {
    class Payments {
      constructor(@Inject(Unit) private readonly unit: Unit) {}

      @OnDelayed('a')
      async check(payload: unknown) {
        await new Promise((resolve) => setImmediate(resolve));
        log.push(this.unit.request.payload === payload);
      }
    }
    const app = await start({ providers: [Unit, Payments] });
    await Promise.all([1, 2, 3].map((payload) => app.run('a', payload)));
    expect(log).toEqual([true, true, true]);
  });

  it('that cannot be constructed fails the job, or decides it', async () => {
    const error = new Error('no connection');
    @Injectable({ scope: Scope.REQUEST })
    class Payments {
      constructor(@Inject(REQUEST) { payload }: DelayQueueRequest) {
        throw payload === 'snooze' ? new SnoozeJob(5) : error;
      }

      @OnDelayed('a')
      check() {}
    }
    const app = await start({ providers: [Payments] });
    expect(await app.run('a')).toEqual({ kind: 'failed', error });
    expect(await app.run('a', 'snooze')).toMatchObject({ kind: 'snoozed', delayMs: 5 });
  });

  it('has request-scoped pipes, interceptors and filters that were constructed for the job', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Enhancer {
      constructor(@Inject(REQUEST) private readonly request: DelayQueueRequest) {}

      transform(value: unknown) {
        log.push(['pipe', this.request.job.id]);
        return value;
      }

      intercept(_context: ExecutionContext, next: { handle(): never }) {
        log.push(['interceptor', this.request.job.id]);
        return next.handle();
      }

      catch() {
        log.push(['filter', this.request.job.id]);
      }
    }
    class Payments {
      @OnDelayed('a')
      @UsePipes(Enhancer)
      @UseInterceptors(Enhancer)
      @UseFilters(Enhancer)
      check() {
        throw new Error('for the filter');
      }
    }
    const app = await start({ providers: [Payments] });
    await app.run('a', 1, { id: 'x' });
    expect(log).toEqual([
      ['interceptor', 'x'],
      ['pipe', 'x'],
      ['filter', 'x'],
    ]);
  });
});

describe('a durable handler', () => {
  it('is made once per tenant, and gets what the strategy gives as its request', async () => {
    const tenants = new Map<string, ContextId>();
    ContextIdFactory.apply({
      attach(contextId: ContextId, request: DelayQueueRequest<{ tenant: string }>) {
        const { tenant } = request.payload;
        const tree = tenants.get(tenant) ?? ContextIdFactory.create();
        tenants.set(tenant, tree);
        return {
          resolve: (info: HostComponentInfo) => (info.isTreeDurable ? tree : contextId),
          payload: { tenant },
        };
      },
    });
    @Injectable({ scope: Scope.REQUEST, durable: true })
    class Payments {
      readonly id = ++made;

      constructor(@Inject(REQUEST) private readonly request: { tenant: string }) {}

      @OnDelayed('a')
      check() {
        log.push([this.id, this.request]);
      }
    }
    const app = await start({ providers: [Payments] });
    for (const tenant of ['x', 'y', 'x']) expect(await app.run('a', { tenant })).toEqual({ kind: 'completed' });
    expect(log).toEqual([
      [1, { tenant: 'x' }],
      [2, { tenant: 'y' }],
      [1, { tenant: 'x' }],
    ]);
  });
});

describe('a transient handler', () => {
  it('gets one constructed instance for all its methods', async () => {
    @Injectable()
    class Clock {
      readonly now = 42;
    }
    @Injectable({ scope: Scope.TRANSIENT })
    class Payments {
      readonly id = ++made;

      constructor(@Inject(Clock) private readonly clock: Clock) {}

      @OnDelayed('a')
      a() {
        log.push([this.id, this.clock.now]);
      }

      @OnDelayed('b')
      b() {
        log.push([this.id, this.clock.now]);
      }
    }
    const app = await start({ providers: [Clock, Payments] });
    for (const queue of ['a', 'b', 'a']) await app.run(queue);
    expect(log).toEqual([
      [1, 42],
      [1, 42],
      [1, 42],
    ]);
  });

  it('with a request-scoped dependency is made per job', async () => {
    @Injectable({ scope: Scope.TRANSIENT })
    class Payments {
      constructor(@Inject(Unit) private readonly unit: Unit) {}

      @OnDelayed('a')
      check() {
        log.push(this.unit.id);
      }
    }
    const app = await start({ providers: [Unit, Payments] });
    await app.run('a');
    await app.run('a');
    expect(new Set(log).size).toBe(2);
  });
});

it('a transient guard is constructed, and knows whom it guards', async () => {
  @Injectable({ scope: Scope.TRANSIENT })
  class Guard implements CanActivate {
    readonly field = 'constructed';

    constructor(@Inject(INQUIRER) private readonly guarded: object) {}

    canActivate() {
      log.push([this.field, this.guarded.constructor.name]);
      return true;
    }
  }
  class Payments {
    @OnDelayed('a')
    @UseGuards(Guard)
    check() {}
  }
  const app = await start({ providers: [Payments] });
  await app.run('a');
  expect(log).toEqual([['constructed', 'Payments']]);
});
