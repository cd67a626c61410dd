// A Nest application in a process of its own, for tests that kill or freeze it. Imports the built package by its name.
// Its environment: WORKER = { connection, prefix, queue, handler options, second: { queue, handler }, dieBefore }; it tells what it does by IPC
// messages. `dieBefore` is the source of a regular expression: the process kills itself by SIGKILL instead of sending what matches.
import 'reflect-metadata';
import { Socket } from 'node:net';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  DiscardJob,
  OnDelayed,
  SnoozeJob,
} from 'nestjs-delay-queue';

const {
  connection,
  prefix,
  queue,
  handler = {},
  options = {},
  second,
  skewMs = 0,
  dieBefore,
} = JSON.parse(process.env.WORKER);
if (dieBefore) {
  const pattern = new RegExp(dieBefore);
  const write = Reflect.get(Socket.prototype, 'write');
  Socket.prototype.write = function (...args) {
    if (pattern.test(String(args[0]))) process.kill(process.pid, 'SIGKILL');
    return write.apply(this, args);
  };
}
if (skewMs !== 0) {
  const RealDate = Date;
  globalThis.Date = class extends RealDate {
    constructor(...args) {
      if (args.length === 0) super(RealDate.now() + skewMs);
      else super(...args);
    }
    static now() {
      return RealDate.now() + skewMs;
    }
  };
}
const tell = (kind, data = {}) => process.send?.({ kind, pid: process.pid, ...data });

/** Holds up the event loop. */
const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

let letGo;
const isLetGo = new Promise((resolve) => (letGo = resolve));

/** What a payload asks its handler to do. */
async function behave(payload, job) {
  const { id, attempt, latenessMs, queue: from } = job;
  job.signal.addEventListener('abort', () => tell('aborted', { id, attempt, reason: job.signal.reason?.code }));
  tell('start', { id, attempt, latenessMs, queue: from, dueAt: job.dueAt.getTime(), payload });
  if (payload.exit && attempt <= payload.exit) {
    if (payload.afterMs) await new Promise((resolve) => setTimeout(resolve, payload.afterMs));
    process.kill(process.pid, 'SIGKILL');
  }
  if (payload.blockMs && attempt <= (payload.blockTimes ?? attempt)) block(payload.blockMs);
  if (payload.waitMs) await new Promise((resolve) => setTimeout(resolve, payload.waitMs));
  if (payload.untilLetGo) await isLetGo;
  if (payload.hang) await new Promise(() => {});
  if (payload.untilAborted === true || payload.untilAborted >= attempt)
    await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
  if (payload.failTimes >= attempt) throw new Error('asked to fail');
  if (payload.discard) throw new DiscardJob('asked to');
  if (payload.snooze > job.snoozes) throw new SnoozeJob(payload.snoozeMs ?? 0);
  tell('end', { id, attempt });
}

/** A batch does what each of its payloads asks for; one that fails does so alone. */
async function behaveTogether(payloads, jobs) {
  tell('batch', { ids: jobs.map(({ id }) => id) });
  await Promise.all(jobs.map((job, n) => behave(payloads[n], job).catch((error) => job.fail(error))));
}

class Handlers {
  run(payload, job) {
    return handler.batch ? behaveTogether(payload, job) : behave(payload, job);
  }
}
Injectable()(Handlers);
OnDelayed(queue, handler)(Handlers.prototype, 'run', Object.getOwnPropertyDescriptor(Handlers.prototype, 'run'));
/** A queue of another instance. */
class SecondHandlers {
  run(payload, job) {
    return behave(payload, job);
  }
}
Injectable()(SecondHandlers);
if (second) {
  const method = Object.getOwnPropertyDescriptor(SecondHandlers.prototype, 'run');
  OnDelayed(second.queue, { ...second.handler, instance: 'second' })(SecondHandlers.prototype, 'run', method);
}
class App {}
const root = (name, more) =>
  DelayQueueModule.forRoot({ ...(name && { name }), connection, prefix, shutdownHooksWarning: false, ...more });
Module({
  imports: [root(undefined, options), ...(second ? [root('second')] : [])],
  providers: [Handlers, ...(second ? [SecondHandlers] : [])],
})(App);

const logger = Object.fromEntries(
  ['log', 'warn', 'error', 'debug', 'verbose', 'fatal'].map((level) => [
    level,
    (message) => tell('log', { level, message: String(message) }),
  ]),
);
const app = await NestFactory.createApplicationContext(App, { logger });
app.enableShutdownHooks();
process.on('message', ({ call, enqueue, move, remove, lets }) => {
  if (lets) return letGo();
  if (remove) return void app.get(DelayQueueInspector).remove(...remove);
  if (move) return void app.get(DelayQueueInspector).move(...move);
  const [to, payload, jobOptions] = enqueue;
  const enqueued = app.get(DelayQueueProducer).enqueue(to, payload, jobOptions);
  const answer = enqueued.then(
    ({ id, dueAt }) => ({ id, dueAt: dueAt.getTime() }),
    (error) => ({ message: error.message }),
  );
  void answer.then((data) => tell('enqueued', { call, ...data }));
});
// The parent is gone: so is the reason to live.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
tell('ready');
