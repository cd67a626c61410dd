// Enqueues one job as it starts, and tells by lines of JSON what happens to it. With ONCE it ends when the job was handled.
import 'reflect-metadata';
import { existsSync, watch } from 'node:fs';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { type BeforeApplicationShutdown, Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type DelayedJob, DelayQueueModule, DelayQueueProducer, OnDelayed } from 'nestjs-delay-queue';

/** The test writes another number here. */
const version: number = 1;

function tell(what: string, more: object = {}): void {
  process.stdout.write(`${JSON.stringify({ what, version, pid: process.pid, ...more })}\n`);
}

@Injectable()
class Worker {
  private done!: () => void;
  readonly handled = new Promise<void>((resolve) => (this.done = resolve));

  @OnDelayed('built')
  async handle(payload: { enqueuedBy: number }, job: DelayedJob): Promise<void> {
    tell('started', { payload, attempt: job.attempt });
    // Only the first version waits, until a file is there.
    const release = process.env['RELEASE'];
    if (version === 1 && release && !existsSync(release)) {
      const watcher = watch(dirname(release));
      if (!existsSync(release)) await once(watcher, 'change');
      watcher.close();
    }
    tell('handled', { payload });
    this.done();
  }
}

@Injectable()
class Asked implements OnModuleDestroy, BeforeApplicationShutdown {
  onModuleDestroy(): void {
    tell('asked to end');
  }

  beforeApplicationShutdown(): void {
    tell('drained');
  }
}

@Module({
  imports: [
    DelayQueueModule.forRoot({
      connection: process.env['REDIS_URL'],
      prefix: process.env['PREFIX'],
      drainTimeout: '1m',
    }),
  ],
  providers: [Worker, Asked],
})
class AppModule {}

async function main(): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error'] });
  app.enableShutdownHooks();
  await app.get(DelayQueueProducer).enqueue('built', { enqueuedBy: version }, { delay: '20ms' });
  if (!process.env['ONCE']) return;
  await app.get(Worker).handled;
  await app.close();
}

void main();
