// A worker of several queues in a process of its own, to be killed. Imports the built package by its name.
// Its environment: PROGRAM = { connection, prefix, runs, queues: [{ queue, handler, waitMs }] }. Each run is noted in the list `runs` of Redis,
// when it begins, with the moment of its claim by the clock of the server, and when it ends.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { DelayQueueModule, OnDelayed } from 'nestjs-delay-queue';

const { connection, prefix, runs, queues } = JSON.parse(process.env.PROGRAM);
const notes = new Redis(connection);
class Handlers {}
for (const [n, { queue, handler, waitMs }] of queues.entries()) {
  const run = async (payload, { id, dueAt, latenessMs }) => {
    const claimedAt = dueAt.getTime() + latenessMs;
    const note = (kind) =>
      notes.rpush(runs, JSON.stringify({ kind, queue, id, pid: process.pid, claimedAt, ...payload }));
    await note('start');
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    await note('end');
  };
  Object.defineProperty(Handlers.prototype, `run${n}`, { value: run, writable: true, configurable: true });
  OnDelayed(queue, handler)(
    Handlers.prototype,
    `run${n}`,
    Object.getOwnPropertyDescriptor(Handlers.prototype, `run${n}`),
  );
}
Injectable()(Handlers);
class App {}
Module({
  imports: [DelayQueueModule.forRoot({ connection, prefix, shutdownHooksWarning: false })],
  providers: [Handlers],
})(App);
await NestFactory.createApplicationContext(App, { logger: false });
// The parent is gone: so is the reason to live.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.send('ready');
