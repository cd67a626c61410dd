import { EventEmitter } from 'node:events';
import { afterEach, expect, it } from '@jest/globals';
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
