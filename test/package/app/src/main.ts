// Enqueues one job, waits until its handler ran, asks for /health and the metrics, relays another job, looks at the dashboard, and
// prints what it saw.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { DelayQueueProducer } from 'nestjs-delay-queue';
import { DelayQueueMetrics } from 'nestjs-delay-queue/metrics';
import { AppModule, GreetingHandler } from './app.module.js';
import { tryTheDashboard } from './dashboard.js';
import { tryTheKit } from './kit.js';
import { tryTheRelay } from './relayed.js';
import { spansOfNow } from './traced.js';

const ENQUEUED = /^delay_queue_jobs_enqueued_total\{.*queue="package\.greeting".*\} 1$/;

async function main(): Promise<void> {
  const spans = spansOfNow();
  const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] });
  app.enableShutdownHooks();
  await app.listen(0, '127.0.0.1');
  const { id } = await app.get(DelayQueueProducer).enqueue('package.greeting', { text: 'hello' }, { delay: '20ms' });
  const seen = await app.get(GreetingHandler).seen;
  const response = await fetch(`${await app.getUrl()}/health`);
  const health = { status: response.status, body: await response.json() };
  const metrics = (await app.get(DelayQueueMetrics).registry.metrics())
    .split('\n')
    .filter((line) => ENQUEUED.test(line));
  await app.close();
  const [kit, relayed, dashboard] = [await tryTheKit(), await tryTheRelay(), await tryTheDashboard()];
  console.log(JSON.stringify({ id, seen, health, metrics, spans, kit, relayed, dashboard }));
}

void main();
