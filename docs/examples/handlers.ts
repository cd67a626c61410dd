// What a handler may decide, and what runs around it.
import { once } from 'node:events';
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
    backoff: fixed('20ms'), // or exponential(), steps(), a function
    lease: '1s', // renewed by heartbeats; how long the jobs of a process that died wait for another
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
    // Aborts on timeout, lost lease, cancel, and when shutdown has waited for long enough.
    if (kind === 'endless') await once(job.signal, 'abort');
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
  await producer.enqueue('report.build', { kind: 'endless' }, { id: 'endless', context });
  const get = (id: string) => producer.get('report.build', id);
  await until(async () => (await get('endless'))?.state === 'running');
  const { outcome } = await producer.cancel('report.build', 'endless', { running: true }); // its signal aborts; no retry

  const deadReason = async (id: string) => (await get(id))?.deadReason;
  await until(async () => tenants.length === 3 && (await deadReason('broken')) !== undefined);
  await until(async () => (await deadReason('obsolete')) !== undefined);
  await until(async () => (await get('endless')) === undefined);
  return {
    outcome, // 'running'
    tenants: tenants.sort(), // ['early of eu', 'endless of eu', 'flaky of eu']
    obsolete: await deadReason('obsolete'), // 'discarded'
    broken: await deadReason('broken'), // 'discarded' too, with the TypeError as lastError
    log,
  };
}
