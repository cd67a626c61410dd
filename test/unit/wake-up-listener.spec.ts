import { EventEmitter } from 'node:events';
import { afterEach, expect, it } from '@jest/globals';
import { slotOf } from '../../lib/redis/keys.js';
import type { RedisClient } from '../../lib/redis/redis.client.js';
import { WakeUpListener } from '../../lib/redis/wake-up-listener.js';
import { eventually } from '../helpers/eventually.js';

const CHANNEL = 'dq:wake:me';
let listener: WakeUpListener;
afterEach(() => listener.stop());

/** A listener whose server answers SUBSCRIBE like this, and what the listener did. */
function listenerOn(subscribe: () => Promise<unknown>, timeoutMs = 1_000) {
  const happened: string[] = [];
  const subscriber = Object.assign(new EventEmitter(), { status: 'ready', subscribe });
  const publish = async () => {
    happened.push('published');
    subscriber.emit('message', CHANNEL, '');
  };
  const connection = {
    commands: { publish } as unknown as RedisClient,
    address: '127.0.0.1:6379',
    timeoutMs,
    isReady: true,
    isClosed: false,
    send: <T>(call: () => Promise<T>) => call(),
    replace: () => void happened.push('subscriber is cut off'),
  };
  listener = new WakeUpListener(subscriber as unknown as RedisClient, CHANNEL, connection, (line) =>
    happened.push(line),
  );
  return { listener, happened };
}

it('a subscriber to which nothing can come back was cut off every ten seconds', async () => {
  const { listener, happened } = listenerOn(() =>
    Promise.reject(new Error('NOPERM no permission to access a channel')),
  );
  await listener.subscribe();
  await listener.subscribed(60_000);
  listener.afterOutage();
  expect(happened).toEqual([expect.stringMatching(/may not subscribe/)]);
});

it('a subscription is tried by a message to itself, and again after an outage', async () => {
  const { listener, happened } = listenerOn(() => Promise.resolve(1));
  await listener.subscribe();
  expect(happened).toEqual(['published']);
  listener.afterOutage();
  expect(happened).toEqual(['published', 'published']);
});

it('a subscriber whose link died without a word was never cut off, where subscribing had been refused before', async () => {
  const answers = [() => Promise.reject(new Error("ERR unknown command 'SUBSCRIBE'")), () => new Promise(() => {})];
  const { listener, happened } = listenerOn(() => answers.shift()!(), 1);
  await listener.subscribe();
  void listener.subscribe();
  const expected = [expect.stringMatching(/does not know SUBSCRIBE/), 'subscriber is cut off'];
  await eventually(() => expect(happened).toEqual(expected));
});

it('on a Cluster the message to itself went to any node, also over a link that nobody had found dead', async () => {
  const asked: unknown[] = [];
  const node = (address: string) => {
    const [host, port] = address.split(':');
    return { options: { host, port: Number(port) }, publish: async () => void asked.push(address) };
  };
  const slots: string[][] = [];
  slots[slotOf(CHANNEL)] = ['b:2'];
  const nodes = [node('a:1'), node('b:2')];
  const refreshSlotsCache = () => void asked.push('who has the slots');
  const commands = { slots, nodes: () => nodes, refreshSlotsCache, publish: async () => void asked.push('any') };
  const subscriber = Object.assign(new EventEmitter(), { status: 'ready', subscribe: () => Promise.resolve(1) });
  const send = <T>(call: () => Promise<T>, key?: string) => {
    asked.push(key);
    return call();
  };
  const connection = { address: '', timeoutMs: 1_000, isReady: true, isClosed: false, send, replace: () => {} };
  const of = { ...connection, commands: commands as unknown as RedisClient };
  listener = new WakeUpListener(subscriber as unknown as RedisClient, CHANNEL, of, () => {});
  await listener.subscribe();
  // It replaces the node of this key where no answer comes.
  expect(asked).toEqual([CHANNEL, 'b:2']);
  slots.length = 0;
  listener.afterOutage();
  expect(asked).toEqual([CHANNEL, 'b:2', 'who has the slots', CHANNEL, 'any']);
});
