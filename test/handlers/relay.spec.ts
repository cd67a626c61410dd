import { describe, expect, it } from '@jest/globals';
import { Injectable, Scope } from '@nestjs/common';
import type { CanActivate, Type } from '@nestjs/common';
import {
  ClientKafka,
  ClientMqtt,
  ClientNats,
  ClientRedis,
  ClientRMQ as RabbitClient,
  ClientTCP,
  MqttRecordBuilder,
  RmqRecordBuilder,
} from '@nestjs/microservices';
import { NEVER, Observable, of, throwError } from 'rxjs';
import { RelayError } from '../../lib/delay-queue.errors.js';
import type { HandlerOutcome } from '../../lib/handlers/handler-outcome.js';
import { DiscardJob, SnoozeJob } from '../../lib/handlers/outcomes.js';
import type { DelayedJob } from '../../lib/job/delayed-job.js';
import { RELAY_HEADERS, RelayDelayed } from '../../lib/relay/index.js';
import type { RelayOptions } from '../../lib/relay/index.js';
import { aJob, handling } from './handling.js';

const QUEUE = 'order.expired';
const CLIENT = 'ORDERS_CLIENT';
const PAYLOAD = { orderId: 'o1' };

type Given = Partial<RelayOptions>;
type Message = (payload: any, job: DelayedJob) => unknown;

/** A provider class with one relay. */
function relayClass(given: Given = {}, message: Message = () => undefined): Type<unknown> {
  class Orders {
    expired(payload: unknown, job: DelayedJob): unknown {
      return message(payload, job);
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Orders.prototype, 'expired')!;
  RelayDelayed(QUEUE, { client: CLIENT, pattern: 'order.expired', ...given })(Orders.prototype, 'expired', descriptor);
  return Orders;
}

const boot = (client: unknown, given?: Given, message?: Message) =>
  handling({ providers: [relayClass(given, message), { provide: CLIENT, useValue: client }] });

/** A client of somebody else's, which does as it is told. */
function fake(answer: () => Observable<unknown> = () => of(undefined)) {
  const sent: [how: string, pattern: unknown, data: unknown][] = [];
  const note = (how: string) => (pattern: unknown, data: unknown) => {
    sent.push([how, pattern, data]);
    return answer();
  };
  return { sent, emit: note('emit'), send: note('send') };
}

async function relayed(client: unknown, given?: Given, message?: Message, job: object = {}): Promise<HandlerOutcome> {
  const { run } = await boot(client, given, message);
  return run(QUEUE, PAYLOAD, { dueAt: Date.UTC(2030, 0, 1), ...job });
}

const kafka = (send?: { acks: number }) => new ClientKafka({ client: { brokers: ['127.0.0.1:1'] }, send } as object);
const rmq = () => new RabbitClient({ urls: ['amqp://127.0.0.1:1'], queue: 'orders' });
const mqtt = () => new ClientMqtt({ url: 'mqtt://127.0.0.1:1', protocolVersion: 5 } as object);
const nats = () => new ClientNats({ servers: ['127.0.0.1:1'] });
const redis = () => new ClientRedis({});
const tcp = () => new ClientTCP({});

/** What a real client would put on the wire. */
async function onTheWire(client: object, parts: (sent: unknown[]) => object, given?: Given, message?: Message) {
  const sent: unknown[] = [];
  Object.assign(client, { connect: async () => undefined }, parts(sent));
  expect(await relayed(client, given, message)).toEqual({ kind: 'completed' });
  expect(sent).toHaveLength(1);
  return sent[0] as any;
}
const HEADERS = {
  [RELAY_HEADERS.id]: 'job-1',
  [RELAY_HEADERS.queue]: QUEUE,
  [RELAY_HEADERS.dueAt]: '2030-01-01T00:00:00.000Z',
  [RELAY_HEADERS.attempt]: '1',
};

describe('at boot', () => {
  it.each([
    ['RabbitMQ', rmq],
    ['Kafka', kafka],
    ['MQTT', mqtt],
  ])('a client of %s needs no `confirm`', async (_, client) => {
    await expect(boot(client())).resolves.toBeDefined();
  });

  it.each([
    ['TCP', tcp],
    ['NATS', nats],
    ['Redis', redis],
    ['Kafka', () => kafka({ acks: 0 })],
  ])('a client of %s that proves nothing is refused without `confirm`', async (name, client) => {
    await expect(boot(client())).rejects.toThrow(
      `@RelayDelayed on Orders.expired: confirm: the ${name} client "${CLIENT}" proves nothing by itself`,
    );
    await expect(boot(client(), { confirm: 'broker' })).rejects.toThrow("cannot prove 'broker'");
    await expect(boot(client(), { confirm: 'reply' })).resolves.toBeDefined();
    await expect(boot(client(), { confirm: 'none' })).resolves.toBeDefined();
  });

  it('a client of somebody else is refused without `confirm`, and believed with it', async () => {
    await expect(boot(fake())).rejects.toThrow('what its emit() proves is unknown');
    await expect(boot(fake(), { confirm: 'broker' })).resolves.toBeDefined();
  });

  it.each<[string, unknown, Given, string]>([
    ['no client', { emit: () => of(1) }, {}, 'is no client of @nestjs/microservices'],
    ['a word for `confirm` that there is not', rmq(), { confirm: 'ack' as 'broker' }, 'is not one of'],
    ['no pattern', rmq(), { pattern: '' }, 'is no pattern'],
    ['a batch', rmq(), { batch: { size: 2 } } as Given, 'one message for each job'],
  ])('%s is refused', async (_, client, given, said) => {
    await expect(boot(client, given)).rejects.toThrow(`@RelayDelayed on Orders.expired: `);
    await expect(boot(client, given)).rejects.toThrow(said);
  });

  it('a client of another copy of the package is refused: its messages would lose their options', async () => {
    class ClientRMQ {
      emit = () => of(1);
      send = () => of(1);
    }
    await expect(boot(new ClientRMQ(), { confirm: 'broker' })).rejects.toThrow('another copy of @nestjs/microservices');
  });

  it('a class that is made for each job is refused, and one that Nest has not constructed', async () => {
    const perJob = relayClass();
    Injectable({ scope: Scope.REQUEST })(perJob);
    const client = { provide: CLIENT, useValue: rmq() };
    await expect(handling({ providers: [perJob, client] })).rejects.toThrow('made anew for each job');
    const ByFactory = relayClass();
    const factory = { provide: ByFactory, useFactory: () => new ByFactory() };
    await expect(handling({ providers: [factory, client] })).rejects.toThrow('has not injected');
  });

  it('Nest itself names a client that nobody provides', async () => {
    await expect(handling({ providers: [relayClass()] })).rejects.toThrow(CLIENT);
  });

  it('a token that is not there yet is refused where the decorator stands', () => {
    expect(() => relayClass({ client: undefined })).toThrow('look for a circular import');
  });
});

describe('a message', () => {
  it('is the payload, or what the method returns', async () => {
    const client = fake();
    await relayed(client, { confirm: 'broker' });
    await relayed(client, { confirm: 'reply' }, ({ orderId }, job) => ({ orderId, jobId: job.id }));
    await relayed(client, { confirm: 'none' }, async () => 'later');
    await relayed(client, { confirm: 'none', pattern: { cmd: 'x' } }, () => of(1, 2));
    expect(client.sent).toEqual([
      ['emit', 'order.expired', PAYLOAD],
      ['send', 'order.expired', { orderId: 'o1', jobId: 'job-1' }],
      ['emit', 'order.expired', 'later'],
      ['emit', { cmd: 'x' }, 2],
    ]);
  });

  it('is not sent when the method throws, snoozes or discards, nor when a guard refuses', async () => {
    const client = fake();
    const throwing = (thrown: unknown) => () => {
      throw thrown;
    };
    const broken = new Error('broken');
    expect(await relayed(client, { confirm: 'none' }, throwing(broken))).toEqual({ kind: 'failed', error: broken });
    expect(await relayed(client, { confirm: 'none' }, throwing(new SnoozeJob('1s')))).toMatchObject({
      kind: 'snoozed',
    });
    expect(await relayed(client, { confirm: 'none' }, throwing(new DiscardJob('old')))).toMatchObject({
      kind: 'discarded',
      reason: 'old',
    });
    const guarded = relayClass({ confirm: 'none' });
    const guard: CanActivate = { canActivate: () => false };
    Reflect.defineMetadata('__guards__', [guard], guarded);
    const { run } = await handling({ providers: [guarded, { provide: CLIENT, useValue: client }] });
    expect(await run(QUEUE, PAYLOAD)).toMatchObject({ kind: 'failed' });
    expect(client.sent).toEqual([]);
  });

  it('that is null is a dead letter for a client that cannot send it, not ten attempts', async () => {
    expect(await relayed(fake(), { confirm: 'none' }, undefined, { payload: null })).toMatchObject({
      kind: 'discarded',
      reason: expect.stringContaining('null'),
    });
  });

  it('to RabbitMQ is persistent, and says of which job it is', async () => {
    const channel = (sent: unknown[]) => ({
      channel: {
        sendToQueue: (queue: string, content: Buffer, options: object, done: () => void) => {
          sent.push({ queue, content: JSON.parse(content.toString()), options });
          done();
        },
      },
    });
    expect(await onTheWire(rmq(), channel)).toEqual({
      queue: 'orders',
      content: { pattern: 'order.expired', data: PAYLOAD },
      options: { persistent: true, messageId: 'job-1', headers: HEADERS },
    });
    const record = () => new RmqRecordBuilder('mine').setOptions({ priority: 3, headers: { own: 'x' } }).build();
    expect(await onTheWire(rmq(), channel, {}, record)).toMatchObject({
      content: { data: 'mine' },
      options: { persistent: true, priority: 3, headers: { ...HEADERS, own: 'x' } },
    });
  });

  it('to MQTT has QoS 1 at least, unless nothing is to be proved', async () => {
    const mqttClient = (sent: unknown[]) => ({
      mqttClient: {
        publish: (topic: string, content: string, options: object, done: () => void) => {
          sent.push({ topic, content: JSON.parse(content), options });
          done();
        },
      },
    });
    const properties = { userProperties: HEADERS };
    const content = { pattern: 'order.expired', data: PAYLOAD };
    expect(await onTheWire(mqtt(), mqttClient)).toEqual({
      topic: 'order.expired',
      content,
      options: { qos: 1, properties },
    });
    expect(await onTheWire(mqtt(), mqttClient, { confirm: 'none' })).toMatchObject({ options: { qos: 0 } });
    const record = (qos: 0 | 2) => () => new MqttRecordBuilder(1).setQoS(qos).setRetain(true).build();
    expect(await onTheWire(mqtt(), mqttClient, {}, record(0))).toMatchObject({ options: { qos: 1, retain: true } });
    expect(await onTheWire(mqtt(), mqttClient, {}, record(2))).toMatchObject({ options: { qos: 2, retain: true } });
  });

  it('to Kafka has the id of the job as its key, and is the value even if it looks like a message', async () => {
    const producer = (sent: unknown[]) => ({
      _producer: { send: async (message: unknown) => void sent.push(message) },
    });
    expect(await onTheWire(kafka(), producer, {}, () => ({ key: 1, value: 2 }))).toEqual({
      topic: 'order.expired',
      messages: [{ key: 'job-1', value: '{"key":1,"value":2}', headers: HEADERS }],
    });
  });

  it('to NATS has headers', async () => {
    const natsClient = (sent: unknown[]) => ({
      natsClient: { publish: (...args: unknown[]) => void sent.push(args) },
    });
    const [subject, data, { headers }] = await onTheWire(nats(), natsClient, { confirm: 'none' });
    expect([subject, JSON.parse(data)]).toEqual(['order.expired', { pattern: 'order.expired', data: PAYLOAD }]);
    for (const [name, value] of Object.entries(HEADERS)) expect(headers.get(name)).toBe(value);
  });

  it('to TCP and Redis carries the same as metadata, beside that of the application', async () => {
    const client = tcp();
    client.setOnDispatchHook((packet) => {
      packet.metadata = { tenant: 'eu' };
    });
    const socket = (sent: unknown[]) => ({ socket: { sendMessage: (packet: unknown) => void sent.push(packet) } });
    const packet = { pattern: 'order.expired', data: PAYLOAD, metadata: { ...HEADERS, tenant: 'eu' } };
    expect(await onTheWire(client, socket, { confirm: 'none' })).toEqual(packet);
    // A second relay by the same client.
    expect(await onTheWire(client, socket, { confirm: 'none' })).toEqual(packet);
    const pubClient = (sent: unknown[]) => ({
      pubClient: {
        publish: (channel: string, text: string, done: () => void) => {
          sent.push([channel, JSON.parse(text).metadata]);
          done();
        },
      },
    });
    expect(await onTheWire(redis(), pubClient, { confirm: 'none' })).toEqual(['order.expired', HEADERS]);
  });
});

describe('a confirmation', () => {
  it.each([
    ['a text, as RabbitMQ has it', 'Error: Connection lost. Trying to reconnect...'],
    ['an object, as a receiver answers it', { status: 'error', message: 'Internal server error' }],
    ['an error', new Error('ECONNREFUSED')],
  ])('that fails with %s fails the attempt with an error that says which client', async (_, cause) => {
    const client = fake(() => throwError(() => cause));
    const outcome = (await relayed(client, { confirm: 'reply' })) as { kind: string; error: RelayError };
    expect(outcome.kind).toBe('failed');
    expect(outcome.error).toBeInstanceOf(RelayError);
    expect(outcome.error).toMatchObject({ code: 'ERR_DQ_RELAY', queue: QUEUE, id: 'job-1', retryable: true, cause });
    expect(outcome.error.message).toBe(
      'Client "ORDERS_CLIENT" did not confirm the message for job "job-1" of queue "order.expired".',
    );
  });

  it('that throws instead fails the attempt as well', async () => {
    const broken = { ...fake(), emit: () => [][0]! as never };
    expect(await relayed(broken, { confirm: 'none' })).toMatchObject({
      kind: 'failed',
      error: { code: 'ERR_DQ_RELAY' },
    });
  });

  it('is waited for until it is there', async () => {
    let confirm: () => void = () => undefined;
    const client = fake(() => new Observable((observer) => (confirm = () => observer.complete())));
    let ended = false;
    const running = relayed(client, { confirm: 'broker' }).finally(() => (ended = true));
    while (client.sent.length === 0) await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(ended).toBe(false);
    confirm();
    expect(await running).toEqual({ kind: 'completed' });
  });

  it('is no longer waited for when the run is over, and nothing is sent after that', async () => {
    let listening = 0;
    const client = fake(
      () =>
        new Observable(() => {
          listening++;
          return () => listening--;
        }),
    );
    const { handlers } = await boot(client, { confirm: 'reply' });
    const job = aJob({ queue: QUEUE, payload: PAYLOAD });
    const running = handlers[0]!.invoke(job);
    while (client.sent.length === 0) await new Promise(setImmediate);
    expect(listening).toBe(1);
    const reason = new Error('timeout');
    job.abort(reason);
    expect(await running).toEqual({ kind: 'failed', error: reason });
    expect(listening).toBe(0);
    expect(await handlers[0]!.invoke(job)).toEqual({ kind: 'failed', error: reason });
    expect(client.sent).toHaveLength(1);
  });

  it('always has a limit, ten seconds unless another one is given', async () => {
    const silent = fake(() => NEVER);
    const limits = async (given: Given) => (await boot(silent, { confirm: 'none', ...given })).handlers[0]!.options;
    expect(await limits({})).toMatchObject({ timeout: 10_000 });
    expect(await limits({ timeout: '2s' })).toMatchObject({ timeout: '2s' });
  });
});
