import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Inject,
  Injectable,
  type INestApplication,
  type NestInterceptor,
  type PipeTransform,
  type Provider,
  Scope,
  UseGuards,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, REQUEST } from '@nestjs/core';
import type { GlobalEnhancers } from '../../lib/handlers/global-enhancers.js';
import { OnDelayed } from '../../lib/handlers/on-delayed.decorator.js';
import { type Handling, handling } from './handling.js';

let open: Handling | undefined;
const start = async (...args: Parameters<typeof handling>) => (open = await handling(...args));
const log: string[] = [];

afterEach(async () => {
  await open?.app.close();
  open = undefined;
  log.length = 0;
});

@Injectable()
class GlobalGuard implements CanActivate {
  readonly field: string = 'constructed';

  canActivate(context: ExecutionContext) {
    log.push(`guard ${this.field} ${context.getType()}`);
    return true;
  }
}

@Injectable()
class GlobalPipe implements PipeTransform {
  readonly field: string = 'constructed';

  transform(value: unknown) {
    log.push(`pipe ${this.field}`);
    return value;
  }
}

@Injectable()
class GlobalInterceptor implements NestInterceptor {
  readonly field: string = 'constructed';

  intercept(_context: ExecutionContext, next: CallHandler) {
    log.push(`interceptor ${this.field}`);
    return next.handle();
  }
}

@Catch()
class GlobalFilter implements ExceptionFilter {
  readonly field: string = 'constructed';

  catch(error: Error, host: ArgumentsHost) {
    log.push(`filter ${this.field} ${host.getType()}`);
    throw error;
  }
}

@UseGuards({ canActivate: () => log.push('class guard') > 0 })
class Payments {
  @OnDelayed('a')
  check(_payload: unknown) {
    log.push('method');
    throw new Error('for the filter');
  }
}

const providers = (scope: Scope): Provider[] => [
  { provide: APP_GUARD, useClass: GlobalGuard, scope },
  { provide: APP_PIPE, useClass: GlobalPipe, scope },
  { provide: APP_INTERCEPTOR, useClass: GlobalInterceptor, scope },
  { provide: APP_FILTER, useClass: GlobalFilter, scope },
];
const configure = (app: INestApplication): void => {
  app.useGlobalGuards(new GlobalGuard());
  app.useGlobalPipes(new GlobalPipe());
  app.useGlobalInterceptors(new GlobalInterceptor());
  app.useGlobalFilters(new GlobalFilter());
};

const EXPECTED: Record<GlobalEnhancers, string[]> = {
  all: [
    'guard constructed delay-queue',
    'class guard',
    'interceptor constructed',
    'pipe constructed',
    'method',
    'filter constructed delay-queue',
  ],
  pipes: ['class guard', 'pipe constructed', 'method'],
  none: ['class guard', 'method'],
};

describe.each(Object.keys(EXPECTED) as GlobalEnhancers[])('globalEnhancers: %p', (globalEnhancers) => {
  const expected = EXPECTED[globalEnhancers];

  it('holds for APP_GUARD, APP_PIPE, APP_INTERCEPTOR and APP_FILTER', async () => {
    const app = await start({ providers: [Payments, ...providers(Scope.DEFAULT)] }, { globalEnhancers });
    expect(await app.run('a')).toMatchObject({ kind: 'failed', error: { message: 'for the filter' } });
    expect(log).toEqual(expected);
  });

  it.each([[Scope.REQUEST], [Scope.TRANSIENT]])('holds for those of scope %p', async (scope) => {
    const app = await start({ providers: [Payments, ...providers(scope)] }, { globalEnhancers });
    expect(await app.run('a')).toMatchObject({ kind: 'failed', error: { message: 'for the filter' } });
    expect(log).toEqual(expected);
  });

  it('holds for app.useGlobalGuards() and the like', async () => {
    const app = await start({ providers: [Payments] }, { globalEnhancers, configure });
    await app.run('a');
    expect(log).toEqual(expected);
  });

  it('holds for a controller and for a request-scoped handler', async () => {
    @Controller()
    @UseGuards({ canActivate: () => log.push('class guard') > 0 })
    class OnController {
      @OnDelayed('controller')
      check(_payload: unknown) {
        log.push('method');
        throw new Error('for the filter');
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class PerJob extends OnController {
      @OnDelayed('per-job')
      override check(payload: unknown) {
        return super.check(payload);
      }
    }
    const app = await start(
      { providers: [PerJob, ...providers(Scope.DEFAULT)], controllers: [OnController] },
      { globalEnhancers },
    );
    await app.run('controller');
    expect(log).toEqual(expected);
    log.length = 0;
    await app.run('per-job');
    expect(log).toEqual(expected);
  });
});

describe('the line at boot', () => {
  const line = async (globalEnhancers: GlobalEnhancers) => {
    const { globals, app } = await handling(
      {
        providers: [
          { provide: APP_GUARD, useClass: GlobalGuard, scope: Scope.REQUEST },
          { provide: APP_PIPE, useClass: GlobalPipe },
        ],
      },
      { globalEnhancers, configure: (created) => created.useGlobalFilters(new GlobalFilter()) },
    );
    await app.close();
    return globals;
  };

  it('names what is included and what is left out', async () => {
    expect(await line('pipes')).toBe(
      "Global enhancers around handlers (globalEnhancers: 'pipes'): pipe GlobalPipe; " +
        'left out: filter GlobalFilter, guard GlobalGuard.',
    );
    expect(await line('all')).toBe(
      "Global enhancers around handlers (globalEnhancers: 'all'): pipe GlobalPipe, filter GlobalFilter, guard GlobalGuard; " +
        'left out: none.',
    );
    expect(await line('none')).toMatch(/'none'\): none; left out: pipe GlobalPipe, filter/);
  });

  it('is not there when the application has none', async () => {
    expect((await start({ providers: [Payments] })).globals).toBeUndefined();
  });
});

describe('request-scoped global enhancers', () => {
  @Injectable()
  class RequestGuard implements CanActivate {
    constructor(@Inject(REQUEST) private readonly request: { job: { id: string } }) {}

    canActivate() {
      log.push(`request guard ${this.request.job.id}`);
      return true;
    }
  }
  const appGuard = { provide: APP_GUARD, useClass: RequestGuard, scope: Scope.REQUEST };
  class Plain {
    @OnDelayed('a')
    check() {
      log.push('method');
    }
  }

  it("run with 'all', made for the job", async () => {
    const app = await start({ providers: [Plain, appGuard] }, { globalEnhancers: 'all' });
    await app.run('a', 1, { id: 'x' });
    expect(log).toEqual(['request guard x', 'method']);
    expect(app.warnings).toEqual([]);
  });

  it('that are left out are named, for Nest constructs them all the same', async () => {
    const app = await start({ providers: [Plain, appGuard] });
    await app.run('a');
    expect(log).toEqual(['method']);
    expect(app.warnings).toEqual([expect.stringMatching(/^guard RequestGuard: .*left out/)]);
  });

  it('that are transient are no reason for a warning', async () => {
    const transient = { provide: APP_GUARD, useClass: GlobalGuard, scope: Scope.TRANSIENT };
    expect((await start({ providers: [Plain, transient] })).warnings).toEqual([]);
  });

  it.each([
    ['useValue', { useValue: new Plain() }],
    ['useFactory', { useFactory: () => new Plain() }],
  ])('cannot run around a handler by %s under a text token, which is said at boot', async (_how, provider) => {
    const metadata = { providers: [{ provide: 'TOKEN', ...provider }, appGuard] };
    const app = await start(metadata, { globalEnhancers: 'all' });
    expect(await app.run('a')).toEqual({ kind: 'completed' });
    expect(log).toEqual(['method']);
    expect(app.warnings).toEqual([expect.stringMatching(/^guard RequestGuard: .*not run around Plain\.check/)]);
  });

  it('run around a factory under its class, and never around a value', async () => {
    const factory = { provide: Plain, useFactory: () => new Plain() };
    const app = await start({ providers: [factory, appGuard] }, { globalEnhancers: 'all' });
    await app.run('a', 1, { id: 'x' });
    expect(log).toEqual(['request guard x', 'method']);
    await app.app.close();

    const value = { provide: Plain, useValue: new Plain() };
    const other = await start({ providers: [value, appGuard] }, { globalEnhancers: 'all' });
    expect(await other.run('a', 1, { id: 'y' })).toEqual({ kind: 'completed' });
    expect(log).toEqual(['request guard x', 'method', 'method']);
    expect(other.warnings).toHaveLength(1);
  });
});
