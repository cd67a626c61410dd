import { afterEach, describe, expect, it } from '@jest/globals';
import {
  BadRequestException,
  type CallHandler,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  ParseArrayPipe,
  Scope,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
} from '@nestjs/common';
import { APP_PIPE, REQUEST } from '@nestjs/core';
import { IsInt } from 'class-validator';
import { tap } from 'rxjs';
import { Batch, BatchJob } from '../../lib/handlers/batch-job.js';
import {
  DelayQueueBatchRequest,
  getDelayedJob,
  getDelayedJobs,
  isDelayQueueContext,
} from '../../lib/handlers/delay-queue-context.js';
import { Job, JobPayload } from '../../lib/handlers/job-params.decorator.js';
import { OnDelayed } from '../../lib/handlers/on-delayed.decorator.js';
import { type Handling, handling } from './handling.js';

let open: Handling | undefined;
const log: unknown[] = [];
const batch = { size: 10 };

async function start(...args: Parameters<typeof handling>) {
  open = await handling(...args);
  const { handlers } = open;
  const run = (...payloads: unknown[]) => {
    const jobs = payloads.map((payload, n) => new BatchJob({ ...FACTS, id: `job-${n}`, payload }));
    return handlers[0]!.invokeBatch!(new Batch('a', jobs));
  };
  return { ...open, run };
}

const FACTS = {
  queue: 'a',
  attempt: 1,
  maxAttempts: 10,
  snoozes: 0,
  dueAt: 0,
  enqueuedAt: 0,
  latenessMs: 0,
  context: {},
};

afterEach(async () => {
  await open?.app.close();
  open = undefined;
  log.length = 0;
});

const ids = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id);

class Item {
  @IsInt()
  n!: number;
}

class Guard implements CanActivate {
  canActivate(context: ExecutionContext) {
    log.push([
      'guard',
      isDelayQueueContext(context),
      context.getArgByIndex(0),
      ids(getDelayedJobs(context)),
      getDelayedJob(context),
    ]);
    return true;
  }
}
class Interceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(tap((value) => log.push(['intercepted', ids(getDelayedJobs(context)), value])));
  }
}

describe('around a batch', () => {
  it('guards, pipes and interceptors run once, and see the array', async () => {
    class Digest {
      @UseGuards(Guard)
      @UseInterceptors(Interceptor)
      @UsePipes({ transform: (value: unknown[]) => value.map((n) => Number(n) * 2) })
      @OnDelayed('a', { batch })
      send(payloads: number[], jobs: BatchJob<number>[]) {
        log.push([payloads, ids(jobs)]);
        return 'sent';
      }
    }
    const { run } = await start({ providers: [Digest] });
    expect(await run('1', '2')).toEqual({ kind: 'completed' });
    expect(log).toEqual([
      ['guard', true, ['1', '2'], ['job-0', 'job-1'], undefined],
      [
        [2, 4],
        ['job-0', 'job-1'],
      ],
      ['intercepted', ['job-0', 'job-1'], 'sent'],
    ]);
  });

  it('a filter that returns has handled the failure of all, one that rethrows has not', async () => {
    @Catch()
    class Filter implements ExceptionFilter {
      catch(error: Error) {
        if (error.message === 'keep') throw error;
      }
    }
    class Digest {
      @UseFilters(new Filter())
      @OnDelayed('a', { batch })
      send([what]: string[]) {
        throw new Error(what);
      }
    }
    const { run } = await start({ providers: [Digest] });
    expect(await run('drop')).toMatchObject({ kind: 'completed' });
    expect(await run('keep')).toMatchObject({ kind: 'failed' });
  });

  it('decorated parameters receive the payloads, a property of each, and the jobs', async () => {
    class Digest {
      @OnDelayed('a', { batch })
      send(@Job() jobs: BatchJob[], @JobPayload('n') ns: number[], @JobPayload() payloads: unknown[]) {
        log.push(ids(jobs), ns, payloads);
      }
    }
    const { run } = await start({ providers: [Digest] });
    await run({ n: 1 }, { n: 2 }, null);
    expect(log).toEqual([
      ['job-0', 'job-1', 'job-2'],
      [1, 2, undefined],
      [{ n: 1 }, { n: 2 }, null],
    ]);
  });

  it('a pipe that refuses the array makes it invalid before the method is entered', async () => {
    class Digest {
      @OnDelayed('a', { batch })
      send(@JobPayload(new ParseArrayPipe({ items: Item })) items: Item[]) {
        log.push(items.map((item) => item instanceof Item));
      }
    }
    const { run } = await start({ providers: [Digest] });
    expect(await run({ n: 1 }, { n: 2 })).toEqual({ kind: 'completed' });
    const error = expect.any(BadRequestException);
    expect(await run({ n: 1 }, { n: 'x' })).toEqual({ kind: 'invalid', error });
    expect(log).toEqual([[true, true]]);
  });

  it('a request-scoped handler is made once, for a DelayQueueBatchRequest', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Digest {
      constructor(@Inject(REQUEST) readonly request: DelayQueueBatchRequest<string>) {
        log.push('made');
      }

      @OnDelayed('a', { batch })
      send(payloads: string[], jobs: BatchJob<string>[]) {
        const { request } = this;
        log.push(request instanceof DelayQueueBatchRequest, request.payloads, ids(request.jobs), ids(jobs), payloads);
      }
    }
    const { run } = await start({ providers: [Digest] });
    await run('x', 'y');
    const both = [
      ['x', 'y'],
      ['job-0', 'job-1'],
    ];
    expect(log).toEqual(['made', true, both[0], both[1], both[1], both[0]]);
  });
});

describe('the warning about a ValidationPipe', () => {
  it('comes for a batch, whose payloads it never looks into, unless a schema or a ParseArrayPipe does', async () => {
    const schema = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const;
    class Digest {
      @OnDelayed('a', { batch })
      unchecked(_items: Item[]) {}

      @OnDelayed('b', { batch })
      parsed(@JobPayload(new ParseArrayPipe({ items: Item })) _items: Item[]) {}

      @OnDelayed('c', { batch })
      bySchema(@JobPayload({ schema }) _items: Item[]) {}

      @OnDelayed('d')
      single(_item: Item) {}
    }
    const { warnings } = await start({ providers: [Digest, { provide: APP_PIPE, useClass: ValidationPipe }] });
    expect(warnings).toEqual([
      expect.stringMatching(/^A ValidationPipe checks nothing in the payloads of Digest.unchecked: .* array/),
    ]);
  });
});
