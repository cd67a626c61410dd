// A worker in a process of its own, which kills itself by SIGKILL at one point of its talk with Redis. Imports the built package by its name.
// Its environment: PROGRAM = { connection, prefix, queue, runs, killAt }. `killAt`: an even number n kills it before it sends its n/2-th
// message, an odd one when an answer comes after that. Each run is noted in the list `runs` of Redis.
import 'reflect-metadata';
import { Socket } from 'node:net';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { DelayQueueModule, OnDelayed } from 'nestjs-delay-queue';

const { connection, prefix, queue, runs, killAt } = JSON.parse(process.env.PROGRAM);
const die = () => process.kill(process.pid, 'SIGKILL');

let sent = 0;
const [write, push] = ['write', 'push'].map((name) => Reflect.get(Socket.prototype, name));
Socket.prototype.write = function (...args) {
  if (this.remotePort !== undefined && ++sent * 2 >= killAt) die();
  return write.apply(this, args);
};
Socket.prototype.push = function (...args) {
  if (sent * 2 + 1 >= killAt) die();
  return push.apply(this, args);
};

const notes = new Redis(connection);
class Handlers {
  async run(_, job) {
    await notes.rpush(runs, `${job.schedule.id} ${job.schedule.at.getTime()}`);
  }
}
Injectable()(Handlers);
OnDelayed(queue, { concurrency: 20 })(
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
process.on('disconnect', die);
