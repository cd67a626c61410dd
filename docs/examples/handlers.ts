// What a handler may decide, and what runs around it.
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import {
  currentJob,
  DelayQueueModule,
  DelayQueueProducer,
  DiscardJob,
  fixed,
  OnDelayed,
  SnoozeJob,
} from 'nestjs-delay-queue';
import type { DelayedJob, DelayQueueMiddleware } from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

export const log: string[] = [];

/** Around every handler of the module; `next()` rejects when what is inside failed. */
const logged: DelayQueueMiddleware = async (job, next) => {
  try {
    await next();
    log.push(`${job.id}, attempt ${job.attempt}: ended`);
  } catch (error) {
    log.push(`${job.id}, attempt ${job.attempt}: ${(error as Error).message}`);
    throw error;
  }
};

@Injectable()
export class Reports {
  readonly tenants: string[] = [];

  constructor(private readonly producer: DelayQueueProducer) {}

  @OnDelayed('report.build', {
    attempts: 5,
    backoff: fixed('20ms'),
    timeout: '30s',
    retryIf: (error) => !(error instanceof TypeError),
  })
  async build({ kind }: { kind: string }, job: DelayedJob) {
    // Too early: again later, and no attempt is used.
    if (kind === 'early' && job.snoozes < 2) throw new SnoozeJob('20ms', { max: 100 });
    // Will never succeed: a dead letter at once, with this reason.
    if (kind === 'obsolete') throw new DiscardJob('the report is not wanted any more');
    // Not worth another attempt, says retryIf.
    if (kind === 'broken') throw new TypeError('a bug');
    // Any other error: again after the backoff.
    if (kind === 'flaky' && job.attempt === 1) throw new Error('the database was away');
    await this.deliver();
  }

  /** Whatever a handler awaits knows its job, and what it enqueues inherits the context. */
  private async deliver() {
    const { id } = currentJob()!;
    await this.producer.enqueue('report.sent', { id }, { context: { source: id } });
  }

  @OnDelayed('report.sent')
  sent(_: { id: string }, job: DelayedJob) {
    this.tenants.push(`${job.context['source']} of ${job.context['tenant']}`);
  }
}

@Module({ imports: [DelayQueueModule.forRoot({ ...redis, middleware: [logged] })], providers: [Reports] })
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const producer = app.get(DelayQueueProducer);
  const { tenants } = app.get(Reports);
  const context = { tenant: 'eu' };
  for (const kind of ['early', 'obsolete', 'broken', 'flaky']) {
    await producer.enqueue('report.build', { kind }, { id: kind, context });
  }
  const deadReason = async (id: string) => (await producer.get('report.build', id))?.deadReason;
  await until(async () => tenants.length === 2 && (await deadReason('broken')) !== undefined);
  await until(async () => (await deadReason('obsolete')) !== undefined);
  return {
    tenants: tenants.sort(), // ['early of eu', 'flaky of eu']
    obsolete: await deadReason('obsolete'), // 'discarded'
    broken: await deadReason('broken'), // 'discarded' too, with the TypeError as lastError
    log,
  };
}
