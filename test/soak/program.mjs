// The application of a soak, by SOAK = { url, rate, leak }. It imports the built package by its name, as applications do.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DelayQueueInspector, DelayQueueModule, DelayQueueProducer, fixed, OnDelayed } from 'nestjs-delay-queue';
import { randomOf } from '../chaos/random.mjs';

const { url, rate, leak } = JSON.parse(process.env.SOAK);
const TICK_MS = 50;
const MIB = 1024 * 1024;
const DRAIN_MS = 30_000;
const QUEUES = ['work', 'batch'];
const counted = { accepted: 0, runs: 0, failed: 0, cancelled: 0 };
const leaked = [];

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function work({ n, fails }, attempt) {
  counted.runs++;
  if (leak > 0) leaked.push(Buffer.alloc(leak).toString('latin1') + n);
  if (n % 10 === 0) await sleep(5);
  if (attempt <= fails) {
    counted.failed++;
    throw new Error(`asked to fail ${fails} times`);
  }
}

class Handlers {
  work(payload, job) {
    return work(payload, job.attempt);
  }

  batch(payloads, jobs) {
    return Promise.all(
      payloads.map((payload, n) => work(payload, jobs[n].attempt).catch((error) => jobs[n].fail(error))),
    );
  }
}
Injectable()(Handlers);
const decorate = (method, options) =>
  OnDelayed(method, options)(Handlers.prototype, method, Object.getOwnPropertyDescriptor(Handlers.prototype, method));
const shared = { attempts: 2, backoff: fixed(200), timeout: '10s' };
decorate('work', { ...shared, concurrency: 20, keepCompleted: { count: 500 } });
decorate('batch', { ...shared, concurrency: 2, batch: { size: 10, wait: 20 } });

class App {}
Module({ imports: [DelayQueueModule.forRoot({ connection: url, deadLetters: { max: 50 } })], providers: [Handlers] })(
  App,
);
const quiet = () => undefined;
const complain = (...parts) => console.error(...parts);
// What is asked to fail is told by a warning each time, and by an error when it dies.
const logger = { log: quiet, warn: quiet, debug: quiet, verbose: quiet, error: quiet, fatal: complain };
const app = await NestFactory.createApplicationContext(App, { logger });
app.enableShutdownHooks();
const producer = app.get(DelayQueueProducer);
const inspector = app.get(DelayQueueInspector);

let n = 0;
const random = randomOf(1);
/** Of 100 jobs, 5 fail; 2 of them for good. */
function payload() {
  const dice = random.below(100);
  return { n: random.below(1_000), fails: dice < 2 ? 9 : dice < 5 ? 1 : 0, customer: `c-${random.below(1_000)}` };
}
const delay = () => (n * 37) % 2_000;

/** What one call in a hundred is: mostly plain jobs, and each of the other ways now and then. */
async function call() {
  const kind = ++n % 50;
  const queue = QUEUES[random.below(4) === 0 ? 1 : 0];
  if (kind < 4)
    return void (await producer.enqueue(queue, payload(), {
      id: `r${n % 40}`,
      onDuplicate: 'replace',
      delay: delay(),
    }));
  if (kind < 6)
    return void (await producer.enqueue(queue, payload(), {
      id: `d${n % 20}`,
      onDuplicate: 'reschedule',
      delay: 300,
      maxWait: '1s',
    }));
  if (kind < 8)
    return void (await producer.enqueue(queue, payload(), {
      id: `u${n}`,
      uniqueFor: '2s',
      context: { call: String(n) },
    }));
  if (kind < 10) {
    const { id } = await producer.enqueue(queue, payload(), { delay: '10s', expiresIn: '1m' });
    const { outcome } = await producer.cancel(queue, id);
    if (outcome === 'cancelled') counted.cancelled++;
    return;
  }
  if (kind === 10)
    return void (await producer.enqueueMany(
      queue,
      Array.from({ length: 5 }, () => ({ payload: payload(), delay: delay() })),
    ));
  await producer.enqueue(queue, payload(), n % 3 === 0 ? {} : { delay: delay() });
}

let owed = 0;
let last = performance.now();
const calls = new Set();
const ticking = setInterval(() => {
  const now = performance.now();
  // After a pause, such as that of a garbage collection, not all at once.
  owed = Math.min(owed + ((now - last) / 1_000) * rate, rate);
  last = now;
  for (; owed >= 1; owed--) {
    const made = call().then(
      () => void counted.accepted++,
      (error) => {
        complain(error);
        process.exit(1);
      },
    );
    calls.add(made);
    void made.finally(() => calls.delete(made));
  }
}, TICK_MS);
const looking = setInterval(
  () => QUEUES.forEach((queue) => void inspector.list(queue, 'dead', { limit: 20 }).catch(complain)),
  1_000,
);

async function sample() {
  gc();
  await sleep(20);
  gc();
  const { heapUsed, external, rss } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo();
  const timers = resources.filter((type) => type === 'Timeout').length;
  const handles = process._getActiveHandles().length;
  return { heap: heapUsed / MIB, external: external / MIB, rss: rss / MIB, handles, timers, jobs: counted.runs };
}

async function finish() {
  clearInterval(ticking);
  clearInterval(looking);
  await Promise.all(calls);
  const began = performance.now();
  const counts = () => Promise.all(QUEUES.map((queue) => inspector.counts(queue)));
  const total = (all, ...names) => all.reduce((sum, one) => sum + names.reduce((part, name) => part + one[name], 0), 0);
  let now = await counts();
  while (total(now, 'delayed', 'due', 'running') > 0 && performance.now() - began < DRAIN_MS) {
    await sleep(50);
    now = await counts();
  }
  const seconds = (performance.now() - began) / 1_000;
  return { ...counted, dead: total(now, 'dead'), waiting: total(now, 'delayed', 'due', 'running'), seconds };
}

process.on('message', (asked) => {
  if (asked.sample) void sample().then((answer) => process.send({ sample: answer }));
  if (asked.finish) void finish().then((answer) => process.send({ finish: answer }));
});
process.send({ ready: true });
