// Guards, request-scoped providers and the asynchronous context of a request, around jobs.
import { AsyncLocalStorage } from 'node:async_hooks';
import { Inject, Injectable, Module, Scope, UseGuards } from '@nestjs/common';
import type { CanActivate, ExecutionContext, INestApplicationContext } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import {
  DELAY_QUEUE_CONTEXT,
  DelayQueueModule,
  DelayQueueProducer,
  DelayQueueRequest,
  getDelayedJob,
  getDelayedJobs,
  isDelayQueueContext,
  OnDelayed,
} from 'nestjs-delay-queue';
import type { ContextProvider, DelayedJob } from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

interface Invoice {
  readonly tenant: string;
  readonly amount: number;
}

/** One guard for requests and jobs: what a job belongs to stands in its payload or context, not in a header. */
@Injectable()
export class TenantGuard implements CanActivate {
  canActivate(context: ExecutionContext) {
    if (isDelayQueueContext(context)) {
      const job = getDelayedJob<Invoice>(context);
      return job?.payload.tenant !== 'blocked';
    }
    return context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-tenant'] !== 'blocked';
  }
}

/** What guards, interceptors and filters can ask, whatever they stand around. */
@Injectable()
export class Seen implements CanActivate {
  readonly contexts: unknown[] = [];

  canActivate(context: ExecutionContext) {
    const jobs = getDelayedJobs(context); // of a batch all of them
    this.contexts.push({ type: context.getType<string>(), jobs: jobs.map(({ id }) => id) });
    return true;
  }
}

/** Lives as long as a request, or as a job. */
@Injectable({ scope: Scope.REQUEST })
export class Tenant {
  readonly name: string;

  constructor(@Inject(REQUEST) request: DelayQueueRequest<Invoice> | { headers: Record<string, string> }) {
    this.name = request instanceof DelayQueueRequest ? request.payload.tenant : (request.headers['x-tenant'] ?? 'none');
  }
}

/** What the application keeps for each request: here an id for its log lines. */
export const requests = new AsyncLocalStorage<{ readonly requestId: string }>();

export const requestContext: ContextProvider = {
  capture: () => requests.getStore() && { requestId: requests.getStore()!.requestId },
  run: (context, next) => requests.run({ requestId: context['requestId'] ?? 'none' }, next),
};

@Injectable()
export class Log {
  readonly lines: string[] = [];
}

@Injectable()
export class Invoices {
  constructor(
    private readonly tenant: Tenant,
    private readonly log: Log,
  ) {}

  @OnDelayed('invoice.send', { attempts: 1 })
  @UseGuards(TenantGuard, Seen)
  send({ amount }: Invoice, job: DelayedJob) {
    this.log.lines.push(`${requests.getStore()?.requestId}: ${job.id} ${amount} for ${this.tenant.name}`);
  }
}

@Module({
  imports: [DelayQueueModule.forRoot({ ...redis, contextProvider: requestContext })],
  providers: [Invoices, Tenant, Log, Seen, TenantGuard],
})
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const [producer, log, seen] = [app.get(DelayQueueProducer), app.get(Log), app.get(Seen)];
  await requests.run({ requestId: 'r1' }, () =>
    producer.enqueue('invoice.send', { tenant: 'acme', amount: 7 }, { id: 'i1' }),
  );
  await producer.enqueue('invoice.send', { tenant: 'blocked', amount: 8 }, { id: 'i2' });
  await until(async () => log.lines.length === 1 && (await producer.get('invoice.send', 'i2'))?.state === 'dead');
  const refused = await producer.get('invoice.send', 'i2');
  return {
    log: log.lines, // ['r1: i1 7 for acme']
    seen: seen.contexts, // [{ type: DELAY_QUEUE_CONTEXT, jobs: ['i1'] }]
    isType: seen.contexts.some((context) => (context as { type: string }).type === DELAY_QUEUE_CONTEXT),
    refused: refused?.lastError?.name, // 'ForbiddenException'
  };
}
