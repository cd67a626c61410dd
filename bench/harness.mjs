// Shared by the scenarios: a Nest application around one decorated handler, on a prefix of its own.
import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import { Injectable, Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { DelayQueueModule, DelayQueueProducer, OnDelayed } from 'nestjs-delay-queue';

export const REDIS_URL = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
export const PAYLOAD = { paymentId: 'payment-0000000000000000', amount: 1999, currency: 'EUR', n: 1 };

/** Decorators without a compiler: the bench runs as plain JavaScript on the built package. */
function decorate(target, method, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(target.prototype, method);
  for (const decorator of decorators) decorator(target.prototype, method, descriptor);
}

export async function startApp({ queue, concurrency, prefix, handle, consume = true, ...options }) {
  class Handlers {
    async run(payload, job) {
      return handle(payload, job);
    }
  }
  Injectable()(Handlers);
  decorate(Handlers, 'run', OnDelayed(queue, { concurrency, ...options }));
  class App {}
  Module({
    imports: [
      DelayQueueModule.forRoot({
        connection: REDIS_URL,
        prefix,
        consume,
        startupChecks: 'off',
        shutdownHooksWarning: false,
      }),
    ],
    providers: consume ? [Handlers] : [],
  })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: ['error'] });
  return { app, producer: app.get(DelayQueueProducer) };
}

export function newPrefix() {
  return `bench-${randomBytes(4).toString('hex')}`;
}

/** Ends a scenario: every job must have run, and nothing of them may be left. */
export async function assertDrained(redis, prefix, queue) {
  for (const name of ['due', 'running', 'suspects', 'dead']) {
    const left = await redis.zcard(`${prefix}:{${queue}}:${name}`);
    if (left > 0) throw new Error(`${left} jobs are left in ${name}`);
  }
  const records = await redis.hlen(`${prefix}:{${queue}}:jobs`);
  if (records > 0) throw new Error(`${records} records are left in jobs`);
}

export async function removeAll(redis, prefix) {
  for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 1000 })) {
    if (keys.length > 0) await redis.unlink(...keys);
  }
}

export function connect() {
  return new Redis(REDIS_URL);
}

export function percentile(sorted, part) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

Logger.overrideLogger(['error', 'fatal']);
