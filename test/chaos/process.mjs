// One process of a fault run, a worker or a producer, by CHAOS = { name, role, url, prefix, queue, history, seed, leaseMs,
// rate, limits, schedules }. It imports the built library, module by module.
import 'reflect-metadata';
import { Injectable, Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { openHistory, watchForStalls } from './historian.mjs';
import { produce } from './producer.mjs';
import { LIBRARY, listenIn } from './recorder.mjs';

const { DelayQueueModule, DelayQueueProducer, DiscardJob, fixed, OnDelayed, SnoozeJob } = await import(LIBRARY);

const settings = JSON.parse(process.env.CHAOS);
const { name, role, url, prefix, queue, leaseMs, limits, schedules } = settings;
const history = openHistory(settings.history, name);
const tokenOf = await listenIn(history);
watchForStalls(history);

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Does what its payload says, and writes down that it did. */
async function run({ version, does, ms, times }, job) {
  const { id, attempt, maxAttempts } = job;
  const token = tokenOf(id);
  history.write({ ev: 'start', id, token, version, attempt, maxAttempts });
  const effect = (how) => history.write({ ev: 'effect', id, token, how });
  if (does === 'hang' && attempt <= times) {
    effect('hung'); // and never settles; deaf to its signal, like code that knows nothing of it
    return new Promise(() => {});
  }
  if (ms > 0) await sleep(ms);
  if (does === 'fail' && attempt <= times) {
    effect('failed');
    throw new Error('asked to fail');
  }
  if (does === 'discard') {
    effect('discarded');
    throw new DiscardJob('asked to');
  }
  if (does === 'snooze' && job.snoozes < times) {
    effect('snoozed');
    throw new SnoozeJob(200);
  }
  if (does === 'extend') {
    await job.extend(leaseMs * 2).catch(() => undefined);
    await sleep(ms);
  }
  effect('ok');
}

class Handlers {
  run(payload, job) {
    return run(payload, job);
  }
}
Injectable()(Handlers);
const rateOf = ({ max, perMs }) => ({ max, per: perMs });
const handler = {
  concurrency: 10,
  lease: leaseMs,
  attempts: 10,
  backoff: fixed(300),
  ...(limits && {
    globalConcurrency: limits.concurrency,
    rateLimit: rateOf(limits.rate),
    groups: { concurrency: limits.groupConcurrency, rateLimit: rateOf(limits.groupRate) },
  }),
};
OnDelayed(queue, handler)(Handlers.prototype, 'run', Object.getOwnPropertyDescriptor(Handlers.prototype, 'run'));
class App {}
Module({
  imports: [
    DelayQueueModule.forRoot({
      connection: url,
      prefix,
      connect: 'lazy', // it may be started while Redis is down
      startupChecks: 'off',
      shutdownHooksWarning: false,
      consume: role === 'worker',
      commandTimeout: 1_500,
      drainTimeout: 2_000,
      deadLetters: { max: 1_000_000 },
    }),
  ],
  providers: [Handlers],
})(App);

Logger.overrideLogger(false);
const app = await NestFactory.createApplicationContext(App, { logger: false });
app.enableShutdownHooks();
const producer = app.get(DelayQueueProducer);
const scheduled = Promise.all(schedules.map(makeSchedule));
// Nothing disturbs the first ones, so each schedule is there before the faults begin.
if (name.endsWith('.1')) await scheduled;
const stop = role === 'producer' ? produce(producer, history, settings) : undefined;

/** Each process makes all of them, also one that was started again. */
async function makeSchedule({ id, everyMs, until, missed, overlap, ms }) {
  const payload = { version: `{${id}}`, does: 'ok', ms };
  const options = { missed, overlap, until: new Date(until), ...(missed === 'skip' && { grace: '1s' }) };
  try {
    const { outcome, next } = await producer.schedule(queue, id, { every: everyMs }, payload, options);
    history.write({ ev: 'scheduled', id, outcome, next: next?.getTime() });
  } catch (error) {
    history.write({ ev: 'scheduled', id, outcome: error.code ?? String(error) });
  }
}

async function countOccurrences() {
  const { schedules: all } = await producer.listSchedules(queue);
  for (const { id, counts } of all) history.write({ ev: 'counted', id, ...counts });
}

process.on('message', ({ block, enough, count }) => {
  // Holds up the event loop, which the watch for stalls writes down.
  if (block) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, block);
    process.send({ blocked: true });
  }
  if (count) void countOccurrences().finally(() => process.send({ counted: true }));
  if (enough) void stop?.().then(() => process.send({ enough: true }));
});
process.send({ ready: true });
