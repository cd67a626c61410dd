import { describe, expect, it } from '@jest/globals';
import {
  Body,
  Catch,
  Controller,
  ForbiddenException,
  Inject,
  Injectable,
  Scope,
  UnauthorizedException,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
} from '@nestjs/common';
import type {
  ArgumentsHost,
  CallHandler,
  CanActivate,
  ExceptionFilter,
  ExecutionContext,
  NestInterceptor,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_PIPE, REQUEST } from '@nestjs/core';
import { Transform } from 'class-transformer';
import { IsInt, IsString } from 'class-validator';
import { timeout } from 'rxjs';
import type { Observable } from 'rxjs';
import {
  DiscardJob,
  fixed,
  getDelayedJob,
  isDelayQueueContext,
  Job,
  JobPayload,
  OnDelayed,
  SnoozeJob,
} from '../../../lib/index.js';
import type { DelayedJob, JobSnapshot } from '../../../lib/index.js';
import type { TestApp } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const backoff = fixed('1h');

class CheckPayment {
  @IsString()
  paymentId!: string;
  @IsInt()
  @Transform(({ value }) => Number(value))
  cents!: number;
}

async function becomes({ producer }: TestApp, queue: string, id: string, expected: Partial<JobSnapshot>) {
  return eventually(async () => {
    const snapshot = await producer.get(queue, id);
    expect(snapshot).toMatchObject(expected);
    return snapshot!;
  });
}

const completed = ({ inspector }: TestApp, queue: string, times = 1) =>
  eventually(async () => expect((await inspector.totals(queue)).completed).toBe(times));

describe('a ValidationPipe', () => {
  const seen: unknown[] = [];
  @Controller()
  class Payments {
    @OnDelayed('validated', { backoff })
    @UsePipes(new ValidationPipe({ transform: true }))
    check(@JobPayload() payload: CheckPayment, @Job() job: DelayedJob): void {
      seen.push([payload, job.payload]);
    }
    @OnDelayed('validated.plain', { backoff })
    @UsePipes(new ValidationPipe({ transform: true }))
    plain(payload: CheckPayment, job: DelayedJob): void {
      seen.push([payload, job.payload]);
    }
    @OnDelayed('validated.globally', { backoff })
    body(@Body() payload: CheckPayment, @Job() job: DelayedJob): void {
      seen.push([payload, job.payload]);
    }
  }
  const parts = {
    controllers: [Payments],
    providers: [{ provide: APP_PIPE, useValue: new ValidationPipe({ transform: true }) }],
  };

  it.each(['validated', 'validated.plain', 'validated.globally'])(
    'makes a dead letter of what it refuses and an instance of what it takes: %s',
    async (queue) => {
      const app = await here.start(parts);
      const { id } = await app.producer.enqueue(queue, { paymentId: 5, cents: 'many' });
      const dead = await becomes(app, queue, id, { state: 'dead', deadReason: 'invalid', attempts: 1 });
      expect(dead.lastError).toMatchObject({ name: 'BadRequestException' });
      expect(dead.payload).toEqual({ paymentId: 5, cents: 'many' });

      await app.producer.enqueue(queue, { paymentId: 'A-17', cents: '250' });
      await completed(app, queue);
      const [payload, raw] = seen.at(-1) as [CheckPayment, unknown];
      expect(payload).toBeInstanceOf(CheckPayment);
      expect(payload).toMatchObject({ cents: 250 });
      expect(raw).toEqual({ paymentId: 'A-17', cents: '250' });
    },
  );
});

describe('a guard', () => {
  it('that denies fails the attempt, so the job is retried', async () => {
    let open = false;
    @Injectable()
    class Gate implements CanActivate {
      canActivate(): boolean {
        return open;
      }
    }
    @UseGuards(Gate)
    class Guarded {
      @OnDelayed('guarded', { backoff })
      run(): void {}
    }
    const app = await here.start({ providers: [Guarded] });
    const { id } = await app.producer.enqueue('guarded', {});
    const { lastError } = await becomes(app, 'guarded', id, { state: 'delayed', attempts: 1 });
    expect(lastError).toMatchObject({ name: ForbiddenException.name });
    open = true;
    await app.producer.runNow('guarded', id);
    await completed(app, 'guarded');
  });
});

describe('an interceptor', () => {
  it('that gives the handler up does not tell it, so it overlaps with the retry; the timeout of the handler tells it', async () => {
    const runs: DelayedJob[] = [];
    let isOver: (() => void) | undefined;
    const until = new Promise<void>((resolve) => (isOver = resolve));
    const run = (job: DelayedJob) => {
      runs.push(job);
      return until;
    };
    class Reports {
      @OnDelayed('given-up', { backoff: fixed(0) })
      @UseInterceptors({ intercept: (_: ExecutionContext, next: CallHandler) => next.handle().pipe(timeout(20)) })
      byInterceptor(_: unknown, job: DelayedJob) {
        return run(job);
      }
      @OnDelayed('timed-out', { backoff: fixed(0), timeout: 20 })
      byOption(_: unknown, job: DelayedJob) {
        return run(job);
      }
    }
    const { producer } = await here.start({ providers: [Reports] });
    await producer.enqueue('given-up', 1);
    await eventually(() => expect(runs.length).toBeGreaterThan(1));
    expect(runs[0]!.signal.aborted).toBe(false);
    runs.length = 0;
    await producer.enqueue('timed-out', 1);
    await eventually(() => expect(runs.find(({ queue }) => queue === 'timed-out')?.signal.aborted).toBe(true));
    isOver!();
  });

  it('runs around the handler and sees the job', async () => {
    const seen: unknown[] = [];
    class Timing implements NestInterceptor {
      intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
        seen.push([isDelayQueueContext(context), getDelayedJob(context)?.id]);
        return next.handle();
      }
    }
    class Timed {
      @OnDelayed('timed')
      @UseInterceptors(Timing)
      run(): void {}
    }
    const app = await here.start({ providers: [Timed] });
    const { id } = await app.producer.enqueue('timed', {});
    await completed(app, 'timed');
    expect(seen).toEqual([[true, id]]);
  });
});

describe('a filter', () => {
  const caught: unknown[] = [];
  @Catch()
  class CatchAll implements ExceptionFilter {
    catch(error: unknown): void {
      caught.push(error);
    }
  }
  @Catch()
  class Rethrow implements ExceptionFilter {
    catch(error: unknown): never {
      throw error;
    }
  }
  class Filtered {
    @OnDelayed('filtered', { backoff })
    @UseFilters(CatchAll)
    run(kind: string): void {
      if (kind === 'snooze') throw new SnoozeJob('1h');
      if (kind === 'discard') throw new DiscardJob('no use');
      throw new Error('boom');
    }
    @OnDelayed('filtered.rethrown', { backoff })
    @UseFilters(Rethrow)
    rethrown(): void {
      throw new Error('boom');
    }
  }

  it('that catches all never sees SnoozeJob and DiscardJob', async () => {
    const app = await here.start({ providers: [Filtered] });
    await app.producer.enqueue('filtered', 'snooze', { id: 's' });
    await app.producer.enqueue('filtered', 'discard', { id: 'd' });
    await becomes(app, 'filtered', 's', { state: 'delayed', attempts: 0 });
    await becomes(app, 'filtered', 'd', { state: 'dead', deadReason: 'discarded' });
    expect(caught).toEqual([]);
  });

  it('that returns has handled the failure; one that rethrows keeps the retry', async () => {
    const app = await here.start({ providers: [Filtered] });
    await app.producer.enqueue('filtered', 'fail');
    await completed(app, 'filtered');
    expect(caught).toEqual([expect.objectContaining({ message: 'boom' })]);
    await app.producer.enqueue('filtered.rethrown', {}, { id: 'a' });
    await becomes(app, 'filtered.rethrown', 'a', { state: 'delayed', attempts: 1 });
  });
});

describe('in an HTTP application with a global JWT guard, filter and pipe', () => {
  @Injectable()
  class JwtGuard implements CanActivate {
    canActivate(context: ExecutionContext): boolean {
      const request = context.switchToHttp().getRequest<{ headers?: Record<string, string> }>();
      if (!request.headers?.['authorization']) throw new UnauthorizedException();
      return true;
    }
  }
  @Catch()
  class HttpFilter implements ExceptionFilter {
    catch(error: Error, host: ArgumentsHost): void {
      host
        .switchToHttp()
        .getResponse<{ status(code: number): { json(body: unknown): void } }>()
        .status(500)
        .json(error);
    }
  }
  class Handlers {
    @OnDelayed('behind-jwt', { backoff })
    run(@JobPayload() _payload: CheckPayment): void {}
  }
  const providers = [
    Handlers,
    { provide: APP_GUARD, useClass: JwtGuard },
    { provide: APP_FILTER, useClass: HttpFilter },
    { provide: APP_PIPE, useValue: new ValidationPipe({ transform: true }) },
  ];
  const VALID = { paymentId: 'A-17', cents: 1 };

  it('jobs run, and are validated, by default', async () => {
    const log: string[] = [];
    const app = await here.start({ providers, log });
    const before = (await app.inspector.totals('behind-jwt')).completed;
    await app.producer.enqueue('behind-jwt', VALID);
    await completed(app, 'behind-jwt', before + 1);
    const { id } = await app.producer.enqueue('behind-jwt', {});
    await becomes(app, 'behind-jwt', id, { state: 'dead', deadReason: 'invalid' });
    const lines = log.filter((line) => line.includes('Global enhancers around handlers'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/'pipes'\): pipe ValidationPipe; left out: guard JwtGuard, filter HttpFilter\./);
  });

  it("jobs run and nothing validates them with 'none'", async () => {
    const app = await here.start({ providers, options: { globalEnhancers: 'none' } });
    const before = await app.inspector.totals('behind-jwt');
    await app.producer.enqueue('behind-jwt', {});
    await completed(app, 'behind-jwt', before.completed + 1);
    expect((await app.inspector.totals('behind-jwt')).dead).toBe(before.dead);
  });

  it("jobs pass the guard and the filter only with 'all'", async () => {
    const app = await here.start({ providers, options: { globalEnhancers: 'all' } });
    const { id } = await app.producer.enqueue('behind-jwt', VALID);
    // The guard denies, and the filter then stumbles over a response that is none.
    const { lastError } = await becomes(app, 'behind-jwt', id, { state: 'delayed', attempts: 1 });
    expect(lastError).toMatchObject({ name: 'TypeError' });
  });
});

it('a request-scoped handler is made anew for each job, with the job as its request', async () => {
  const made: unknown[] = [];
  @Injectable({ scope: Scope.REQUEST })
  class Scoped {
    constructor(@Inject(REQUEST) private readonly request: { job: DelayedJob }) {}
    @OnDelayed('scoped')
    run(_: unknown, job: DelayedJob): void {
      made.push([this, this.request.job === job, job.payload]);
    }
  }
  const app = await here.start({ providers: [Scoped] });
  await app.producer.enqueueMany('scoped', [{ payload: 1 }, { payload: 2 }, { payload: 3 }]);
  await completed(app, 'scoped', 3);
  const runs = made as [unknown, boolean, number][];
  expect(new Set(runs.map(([instance]) => instance)).size).toBe(3);
  expect(runs.map(([, sameJob, payload]) => [sameJob, payload])).toEqual([
    [true, 1],
    [true, 2],
    [true, 3],
  ]);
});
