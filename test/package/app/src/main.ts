// Enqueues one job, waits until its handler ran, asks for /health, and prints what it saw.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { DelayQueueProducer } from 'nestjs-delay-queue';
import { AppModule, GreetingHandler } from './app.module.js';
import { tryTheKit } from './kit.js';

async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] });
  app.enableShutdownHooks();
  await app.listen(0, '127.0.0.1');
  const { id } = await app.get(DelayQueueProducer).enqueue('package.greeting', { text: 'hello' }, { delay: '20ms' });
  const seen = await app.get(GreetingHandler).seen;
  const response = await fetch(`${await app.getUrl()}/health`);
  const health = { status: response.status, body: await response.json() };
  await app.close();
  console.log(JSON.stringify({ id, seen, health, kit: await tryTheKit() }));
}

void main();
