// The other end of a relay, in a process of its own, for tests that kill it. Its environment: RECEIVER = { microservice, pattern, file }.
// It writes down what it gets before it answers, so that what it has answered is in the file.
import 'reflect-metadata';
import { openSync, writeSync } from 'node:fs';
import { Controller, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Ctx, EventPattern, MessagePattern, Payload } from '@nestjs/microservices';

const { microservice, pattern, file, answers } = JSON.parse(process.env.RECEIVER);
const output = openSync(file, 'a');

class Receiver {
  received(message, context) {
    writeSync(output, `${JSON.stringify({ ...message, metadata: context.getMetadata?.() })}\n`);
    // RabbitMQ with `noAck: false` keeps a message until then.
    if (microservice.options.noAck === false) context.getChannelRef().ack(context.getMessage());
    return 'received';
  }
}
const method = Object.getOwnPropertyDescriptor(Receiver.prototype, 'received');
(answers ? MessagePattern : EventPattern)(pattern)(Receiver.prototype, 'received', method);
Payload()(Receiver.prototype, 'received', 0);
Ctx()(Receiver.prototype, 'received', 1);
Controller()(Receiver);

class Root {}
Module({ controllers: [Receiver] })(Root);

const app = await NestFactory.createMicroservice(Root, { ...microservice, logger: false });
await app.listen();
process.send('ready');
