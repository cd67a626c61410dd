import { describe, expect, it } from '@jest/globals';
import type { CanActivate } from '@nestjs/common';
import { MqttRecordBuilder, RmqRecordBuilder } from '@nestjs/microservices';
import { of } from 'rxjs';
import { DiscardJob, SnoozeJob } from '../../lib/handlers/outcomes.js';
import { RELAY_HEADERS } from '../../lib/relay/index.js';
import { relayClass } from '../helpers/relaying.js';
import { handling } from './handling.js';
import { CLIENT, fake, kafka, mqtt, nats, PAYLOAD, QUEUE, redis, relayed, rmq, tcp } from './relayed.js';
import type { Given } from './relayed.js';

/** What a real client would put on the wire. */
async function onTheWire(
  client: object,
  parts: (sent: unknown[]) => object,
  given?: Given,
  message?: Parameters<typeof relayed>[2],
) {
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
    const guarded = relayClass(QUEUE, { confirm: 'none' });
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

  it('to Kafka is confirmed when the producer of kafkajs has resolved, and not when it has failed', async () => {
    let answer = () => Promise.resolve();
    const client = Object.assign(kafka(), { connect: async () => undefined, _producer: { send: () => answer() } });
    expect(await relayed(client)).toEqual({ kind: 'completed' });
    answer = () => Promise.reject(new Error('NOT_ENOUGH_REPLICAS'));
    expect(await relayed(client)).toMatchObject({
      kind: 'failed',
      error: { code: 'ERR_DQ_RELAY', cause: { message: 'NOT_ENOUGH_REPLICAS' } },
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
