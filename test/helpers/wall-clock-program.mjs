// A worker in a process of its own, with zone data that are not those of its Node. Imports the built package by its name.
// Its environment: PROGRAM = { connection, prefix, queue, runs, concurrency, lease, waitMs, zoneData: { version, aheadMs }, awayMs }. By these
// zone data the clocks of a zone show so much more (`aheadMs`, by zone). What it sends to Redis is `awayMs` on its way. Each run is
// noted in the list `runs` of Redis, when it begins and when it ends.
import 'reflect-metadata';
import { Socket } from 'node:net';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';

const settings = JSON.parse(process.env.PROGRAM);
const { connection, prefix, queue, runs, concurrency, lease, waitMs, zoneData, awayMs } = settings;
if (zoneData) {
  const { version: tz, aheadMs } = zoneData;
  Object.defineProperty(process, 'versions', { value: { ...process.versions, tz } });
  // oxlint-disable-next-line typescript/unbound-method -- called with its own `this` below
  const real = Intl.DateTimeFormat.prototype.formatToParts;
  Intl.DateTimeFormat.prototype.formatToParts = function (at) {
    return real.call(this, Number(at) + (aheadMs[this.resolvedOptions().timeZone] ?? 0));
  };
}
const notes = new Redis(connection);
await notes.ping();
if (awayMs) {
  // oxlint-disable-next-line typescript/unbound-method -- called with its own `this` below
  const write = Socket.prototype.write;
  Socket.prototype.write = function (...args) {
    if (this.remotePort === undefined || this === notes.stream) return write.apply(this, args);
    setTimeout(() => this.destroyed || write.apply(this, args), awayMs);
    return true;
  };
}
// Only now: it looks at the zone data when it is loaded.
const { DelayQueueModule, OnDelayed } = await import('nestjs-delay-queue');

class Handlers {
  async run(_, { id, attempt, dueAt }) {
    const note = (kind) =>
      notes.rpush(runs, JSON.stringify([kind, id, process.pid, attempt, Date.now(), dueAt.getTime()]));
    await note('start');
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    await note('end');
  }
}
Injectable()(Handlers);
OnDelayed(queue, { concurrency, lease })(
  Handlers.prototype,
  'run',
  Object.getOwnPropertyDescriptor(Handlers.prototype, 'run'),
);
class App {}
Module({
  imports: [DelayQueueModule.forRoot({ connection, prefix, shutdownHooksWarning: false })],
  providers: [Handlers],
})(App);
await NestFactory.createApplicationContext(App, { logger: false });
// The parent is gone: so is the reason to live.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.send('ready');
