// A relay to another service by TCP, both in this process.
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Controller, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClientsModule, MessagePattern, Payload, Transport } from '@nestjs/microservices';
import { type DelayedJob, DelayQueueModule, DelayQueueProducer } from 'nestjs-delay-queue';
import { RELAY_HEADERS, RelayDelayed } from 'nestjs-delay-queue/relay';

@Injectable()
class Relays {
  @RelayDelayed('package.relayed', { client: 'OTHER_SERVICE', pattern: 'relayed', confirm: 'reply' })
  relay({ text }: { text: string }, job: DelayedJob): object {
    return { text, id: job.id };
  }
}

let resolve: (message: object) => void;
const received = new Promise<object>((done) => (resolve = done));

@Controller()
class Receiver {
  @MessagePattern('relayed')
  receive(@Payload() message: object): void {
    resolve(message);
  }
}

@Module({ controllers: [Receiver] })
class ReceiverModule {}

/** @returns what the receiver got, and the name of the header that has the id */
export async function tryTheRelay(): Promise<{ message: object; header: string }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  const other = { transport: Transport.TCP, options: { port } } as const;

  @Module({
    imports: [
      ClientsModule.register([{ name: 'OTHER_SERVICE', ...other }]),
      DelayQueueModule.forRoot({ connection: 'memory://', shutdownHooksWarning: false }),
    ],
    providers: [Relays],
  })
  class RelayModule {}

  const receiver = await NestFactory.createMicroservice(ReceiverModule, { ...other, logger: false });
  await receiver.listen();
  const app = await NestFactory.createApplicationContext(RelayModule, { logger: false });
  await app.get(DelayQueueProducer).enqueue('package.relayed', { text: 'hello' }, { id: 'A' });
  const message = await received;
  await app.close();
  await receiver.close();
  return { message, header: RELAY_HEADERS.id };
}
