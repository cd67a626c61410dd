// Without any of the optional peers: what needs none of them works, both as ESM and as CommonJS.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';

const require = createRequire(import.meta.url);
const OPTIONAL = ['@nestjs/microservices', '@nestjs/terminus', '@opentelemetry/api', 'devalue', 'prom-client'];
for (const peer of OPTIONAL) assert.throws(() => require.resolve(peer), { code: 'MODULE_NOT_FOUND' }, peer);

await tryOut(await import('nestjs-delay-queue'));
await tryOut(require('nestjs-delay-queue'));
for (const path of ['events', 'testing']) {
  const name = `nestjs-delay-queue/${path}`;
  assert.deepEqual(Object.keys(require(name)).sort(), Object.keys(await import(name)).sort());
}

async function tryOut({ DelayQueueConsumer, DelayQueueModule, DelayQueueProducer }) {
  const root = DelayQueueModule.forRoot({ connection: 'memory://', shutdownHooksWarning: false });
  const app = await NestFactory.createApplicationContext(root, { logger: false });
  await app.get(DelayQueueProducer).enqueue('bare', 'hello', { delay: 20 });
  const [job] = await app.get(DelayQueueConsumer).pull('bare', { wait: '5s' });
  assert.equal(job.job.payload, 'hello');
  await job.complete();
  await app.close();
}
