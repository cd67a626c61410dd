import { afterEach, describe, expect, it } from '@jest/globals';
import { Catch, Inject, Injectable, Scope, UseFilters, UseGuards, UseInterceptors, UsePipes } from '@nestjs/common';
import type { ExceptionFilter, NestInterceptor } from '@nestjs/common';
import { catchError, of, retry, tap } from 'rxjs';
import { Job } from '../../lib/handlers/job-params.decorator.js';
import { OnDelayed } from '../../lib/handlers/on-delayed.decorator.js';
import type { DelayedJob } from '../../lib/job/delayed-job.js';
import { aJob, handling } from './handling.js';
import type { Handling } from './handling.js';

let open: Handling | undefined;
const heard: string[] = [];

afterEach(async () => {
  await open?.app.close();
  open = undefined;
  heard.splice(0);
});

const REASON = new Error('its run is over');
const UNBEGUN = { kind: 'released', unbegun: true };

/** Each of these takes so long that the run ends meanwhile. */
const guard = { canActivate: (context: { getArgByIndex(n: number): DelayedJob }) => end(context.getArgByIndex(1)) };
const end = async (job: DelayedJob) => {
  await Promise.resolve();
  job.abort(REASON);
  return true;
};

const noting: NestInterceptor = {
  intercept: (_, next) =>
    next.handle().pipe(tap({ next: () => heard.push('done'), error: (error: Error) => heard.push(error.message) })),
};
const handlingAll: NestInterceptor = { intercept: (_, next) => next.handle().pipe(catchError(() => of('fine'))) };
const tryingForEver: NestInterceptor = { intercept: (_, next) => next.handle().pipe(retry()) };

@Catch()
class FilterOfAll implements ExceptionFilter {
  catch(): void {
    heard.push('filtered');
  }
}

async function outcomeOf(...decorators: (MethodDecorator & ClassDecorator)[]) {
  class Handlers {
    run(): void {
      heard.push('begun');
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Handlers.prototype, 'run')!;
  OnDelayed('q')(Handlers.prototype, 'run', descriptor);
  for (const decorate of decorators) decorate(Handlers.prototype, 'run', descriptor);
  open = await handling({ providers: [Handlers] });
  return open.handlers[0]!.invoke(aJob({ queue: 'q', payload: {} }));
}

describe('a handler whose run is over after', () => {
  it('a guard does not begin, and what notes or handles failures hears why', async () => {
    expect(await outcomeOf(UseGuards(guard), UseInterceptors(noting), UseFilters(FilterOfAll))).toEqual(UNBEGUN);
    expect(heard).toEqual([REASON.message]);
  });

  it('a guard is not completed by an interceptor that handles failures', async () => {
    expect(await outcomeOf(UseGuards(guard), UseInterceptors(handlingAll))).toEqual(UNBEGUN);
    expect(heard).toEqual([]);
  });

  it('a guard does not begin for an interceptor that tries again for ever, and that ends', async () => {
    expect(await outcomeOf(UseGuards(guard), UseInterceptors(tryingForEver))).toEqual(UNBEGUN);
    expect(heard).toEqual([]);
  });

  it('a pipe does not begin', async () => {
    let job!: DelayedJob;
    const noted = {
      canActivate: (context: { getArgByIndex(n: number): DelayedJob }) => !!(job = context.getArgByIndex(1)),
    };
    const pipe = { transform: async (value: unknown) => (await end(job)) && value };
    expect(await outcomeOf(UseGuards(noted), UsePipes(pipe))).toEqual(UNBEGUN);
    expect(heard).toEqual([]);
  });

  it('its first call has failed is not called again, and has failed', async () => {
    class Handlers {
      @OnDelayed('q')
      @UseInterceptors(tryingForEver)
      async run(@Job() job: DelayedJob): Promise<void> {
        heard.push('begun');
        await end(job);
        throw new Error('no luck');
      }
    }
    open = await handling({ providers: [Handlers] });
    expect(await open.run('q', {})).toEqual({ kind: 'failed', error: REASON });
    expect(heard).toEqual(['begun']);
  });

  it('the providers of a class that is made for each job does not begin', async () => {
    const job = aJob({ queue: 'q', payload: {} });
    @Injectable()
    class Handlers {
      constructor(@Inject('slow') readonly slow: unknown) {}

      @OnDelayed('q')
      run(): void {
        heard.push('begun');
      }
    }
    const slow = { provide: 'slow', scope: Scope.REQUEST, useFactory: () => end(job) };
    open = await handling({ providers: [Handlers, slow] });
    expect(await open.handlers[0]!.invoke(job)).toEqual(UNBEGUN);
    expect(heard).toEqual([]);
  });
});
