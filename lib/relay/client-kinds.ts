import { ClientGrpcProxy, ClientKafka, ClientMqtt, ClientNats, ClientRedis, ClientRMQ, ClientTCP } from '@nestjs/microservices'; // prettier-ignore
import type { ClientProxy } from '@nestjs/microservices';
import { InvalidOptionError } from '../delay-queue.errors.js';
import type { OutgoingMessage } from './outgoing-message.js';
import { kafkaMessage, mqttRecord, natsRecord, plainMessage, rmqRecord } from './messages.js';

/** One transport of `@nestjs/microservices`. */
export interface ClientKind {
  /** For messages. */
  readonly name: string;
  /** Why a broker's confirmation cannot be had; undefined where it can, and is the default. */
  readonly brokerProvesNothing?: string;
  /** Made by somebody else: what it is told to prove is believed, but nothing is assumed. */
  readonly isUnknown?: boolean;
  /** What `emit()` and `send()` are given. */
  readonly message: (outgoing: OutgoingMessage) => unknown;
  /** Its messages have no headers of their own, so they travel as metadata beside the data. */
  readonly inMetadata?: boolean;
}

const KAFKA: ClientKind = { name: 'Kafka', message: kafkaMessage };
const RMQ: ClientKind = { name: 'RabbitMQ', message: rmqRecord };
const MQTT: ClientKind = { name: 'MQTT', message: mqttRecord };
const KAFKA_UNASKED: ClientKind = {
  ...KAFKA,
  brokerProvesNothing: 'its option `send: { acks: 0 }` asks the brokers for no confirmation',
};
const NATS: ClientKind = {
  name: 'NATS',
  message: natsRecord,
  brokerProvesNothing: 'emit() resolves once the message is in a buffer of this process',
};
const REDIS: ClientKind = {
  name: 'Redis',
  message: plainMessage,
  inMetadata: true,
  brokerProvesNothing: 'a message that nobody listens for is gone, and emit() does not say so',
};
const TCP: ClientKind = {
  name: 'TCP',
  message: plainMessage,
  inMetadata: true,
  brokerProvesNothing: 'there is no broker, and emit() also resolves when the receiver is gone',
};
const UNKNOWN: ClientKind = { name: 'unknown', message: plainMessage, inMetadata: true, isUnknown: true };

/** @throws InvalidOptionError for what is no client, or one that takes no messages */
export function kindOf(client: unknown, field: string): ClientKind {
  if (client instanceof ClientKafka) return asksForNothing(client) ? KAFKA_UNASKED : KAFKA;
  if (client instanceof ClientRMQ) return RMQ;
  if (client instanceof ClientMqtt) return MQTT;
  if (client instanceof ClientNats) return NATS;
  if (client instanceof ClientRedis) return REDIS;
  if (client instanceof ClientTCP) return TCP;
  if (client instanceof ClientGrpcProxy) {
    throw new InvalidOptionError(
      `${field} is a gRPC client, which has no messages. Call the service in an @OnDelayed.`,
    );
  }
  if (!isClient(client)) {
    throw new InvalidOptionError(`${field} is no client of @nestjs/microservices: it has no emit() and send().`);
  }
  const foreign = namesOf(client).find((name) => OWN_NAMES.has(name));
  if (foreign === undefined) return UNKNOWN;
  // Its messages need records of its own copy: those of this one would be sent as data, and without their options.
  throw new InvalidOptionError(
    `${field} is a ${foreign} of another copy of @nestjs/microservices than nestjs-delay-queue/relay loads. ` +
      'Install one version of it: see `npm ls @nestjs/microservices`.',
  );
}

const OWN_NAMES = new Set(
  [ClientKafka, ClientRMQ, ClientMqtt, ClientNats, ClientRedis, ClientTCP, ClientGrpcProxy].map(({ name }) => name),
);

function asksForNothing(client: ClientKafka): boolean {
  return client['options']?.send?.acks === 0;
}

function isClient(client: unknown): client is ClientProxy {
  if (typeof client !== 'object' || client === null) return false;
  const { emit, send } = client as Partial<ClientProxy>;
  return typeof emit === 'function' && typeof send === 'function';
}

function namesOf(client: object): string[] {
  const names: string[] = [];
  for (let owner = Reflect.getPrototypeOf(client); owner; owner = Reflect.getPrototypeOf(owner)) {
    if (typeof owner.constructor === 'function') names.push(owner.constructor.name);
  }
  return names;
}
