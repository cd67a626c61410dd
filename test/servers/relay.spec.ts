import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RmqRecordBuilder, Transport } from '@nestjs/microservices';
import type { ClientProvider, MicroserviceOptions } from '@nestjs/microservices';
import { serverOnPath, startLocalRedis } from '../../tools/local-redis.mjs';
import { Tether } from '../../tools/tether.mjs';
import type { RelayConfirm } from '../../lib/relay/index.js';
import { endingWithEachTest } from '../helpers/ending.js';
import { inAWorld } from '../helpers/in-a-world.js';
import { RelayReceiver } from '../helpers/relay-receiver.js';
import { PATTERN, startRelay, underLoad } from '../helpers/relaying.js';
import type { RelaySettings } from '../helpers/relaying.js';
import { startBroker } from './brokers.mjs';
import type { Broker } from './brokers.mjs';

// Servers of Debian, killed by SIGKILL and started again while jobs are handed to them. What is confirmed must arrive.

const here = inAWorld();
const end = endingWithEachTest();
const JOBS = 1_500;
/** RabbitMQ alone takes up to a minute to start. */
const LIMIT_MS = 600_000;
let tether: Tether;
let queues = 0;

beforeAll(async () => {
  tether = await Tether.open();
});
afterAll(() => tether.close());

type Killed = Pick<Broker, 'kill' | 'restart'>;
type Fault = () => Promise<void>;

interface Wire {
  readonly receiver: MicroserviceOptions;
  readonly sender: ClientProvider;
}

/** Hands jobs to a receiver in another process, with faults on the way. @returns what underLoad() does */
async function relayed(
  wire: Wire,
  settings: { confirm: RelayConfirm; message?: RelaySettings['message'] },
  faults: (receiver: RelayReceiver) => Fault[],
) {
  const queue = `relay-${queues++}`;
  const answers = settings.confirm === 'reply';
  const receiver = end(await RelayReceiver.start({ microservice: wire.receiver, pattern: PATTERN, answers }));
  const app = await startRelay(here, { queue, by: wire.sender, timeout: '3s', ...settings });
  const result = await underLoad({ app, queue, receiver, jobs: JOBS }, faults(receiver));
  process.stderr.write(`${queue}: ${result.lost.length} of ${JOBS} lost, ${result.doubled} came once more\n`);
  return result;
}

/** While the receiver is away, what is confirmed is in the server alone; and that is killed. */
const killedOneAfterTheOther = (server: Killed) => (receiver: RelayReceiver) => [
  () => server.restart(),
  () => receiver.kill(),
  () => server.restart(),
  () => receiver.restart(),
];
const bothKilled = (server: Killed) => (receiver: RelayReceiver) => [
  () => server.restart(),
  () => receiver.restart(),
  () => server.restart(),
];

describe('A relay by RabbitMQ', () => {
  let rabbitmq: Broker;
  beforeAll(async () => {
    rabbitmq = await startBroker(tether, 'rabbitmq-server');
  }, LIMIT_MS);

  const wire = (queue: string): Wire => {
    const urls = [`amqp://127.0.0.1:${rabbitmq.port}`];
    const options = { urls, queue, queueOptions: { durable: true }, socketOptions: { reconnectTimeInSeconds: 1 } };
    return {
      sender: { transport: Transport.RMQ, options },
      receiver: { transport: Transport.RMQ, options: { ...options, noAck: false } },
    };
  };

  it(
    "that waits for 'broker' loses nothing when broker and receiver are killed under load",
    async () => {
      const { lost } = await relayed(wire('orders'), { confirm: 'broker' }, killedOneAfterTheOther(rabbitmq));
      expect(lost).toEqual([]);
    },
    LIMIT_MS,
  );

  it(
    'loses what was confirmed, if the application makes its messages transient',
    async () => {
      const message: RelaySettings['message'] = (_, { id, attempt }) =>
        new RmqRecordBuilder({ id, attempt }).setOptions({ persistent: false }).build();
      const { lost } = await relayed(wire('brief'), { confirm: 'broker', message }, killedOneAfterTheOther(rabbitmq));
      expect(lost.length).toBeGreaterThan(JOBS / 10);
    },
    LIMIT_MS,
  );
});

describe('A relay by NATS', () => {
  let server: Broker;
  beforeAll(async () => {
    server = await startBroker(tether, 'nats-server');
  }, LIMIT_MS);

  const wire = (): Wire => {
    const servers = `127.0.0.1:${server.port}`;
    const options = { servers, maxReconnectAttempts: -1, reconnectTimeWait: 100 };
    return { sender: { transport: Transport.NATS, options }, receiver: { transport: Transport.NATS, options } };
  };

  it(
    "that waits for 'reply' loses nothing when server and receiver are killed under load",
    async () => {
      const { lost } = await relayed(wire(), { confirm: 'reply' }, bothKilled(server));
      expect(lost).toEqual([]);
    },
    LIMIT_MS,
  );

  it(
    "that waits for 'none' loses what it sends while nobody listens",
    async () => {
      const { lost } = await relayed(wire(), { confirm: 'none' }, (receiver) => [
        () => receiver.kill(),
        () => receiver.restart(),
      ]);
      expect(lost.length).toBeGreaterThan(JOBS / 10);
    },
    LIMIT_MS,
  );
});

describe('A relay by Redis', () => {
  it(
    "that waits for 'reply' loses nothing when server and receiver are killed under load",
    async () => {
      const server = await startLocalRedis(tether, serverOnPath()!);
      const options = { port: server.port, retryAttempts: 10_000, retryDelay: 100 };
      const wire: Wire = {
        sender: { transport: Transport.REDIS, options },
        receiver: { transport: Transport.REDIS, options },
      };
      const killed: Killed = {
        kill: (signal) => server.kill(signal),
        restart: async () => {
          await server.kill('SIGKILL');
          await server.restart();
        },
      };
      const { lost } = await relayed(wire, { confirm: 'reply' }, bothKilled(killed));
      expect(lost).toEqual([]);
    },
    LIMIT_MS,
  );
});

describe('A relay by Mosquitto', () => {
  it(
    "that waits for 'broker' loses nothing when the receiver is killed, and the broker stopped and started again",
    async () => {
      const mosquitto = await startBroker(tether, 'mosquitto');
      const options = { url: `mqtt://127.0.0.1:${mosquitto.port}`, reconnectPeriod: 200 };
      // Its session outlives it, so that the broker keeps its messages.
      const session = { clientId: 'orders', clean: false, subscribeOptions: { qos: 1 as const } };
      const wire: Wire = {
        sender: { transport: Transport.MQTT, options },
        receiver: { transport: Transport.MQTT, options: { ...options, ...session } },
      };
      // Not killed: Mosquitto confirms a message before it is on the disk.
      const stopped: Killed = {
        kill: (signal) => mosquitto.kill(signal),
        restart: async () => {
          await mosquitto.kill('SIGTERM');
          await mosquitto.restart();
        },
      };
      const { lost } = await relayed(wire, { confirm: 'broker' }, killedOneAfterTheOther(stopped));
      expect(lost).toEqual([]);
    },
    LIMIT_MS,
  );
});
