import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { defineQueue, InvalidOptionError } from '../../../lib/index.js';
import type { DelayQueueProducer } from '../../../lib/index.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

const late = async (): Promise<never> => {
  throw new Error('later');
};
const bytes = { name: 'bytes', encode: (value: unknown) => Buffer.from(JSON.stringify(value)), decode: () => ({}) };

/** What the application may give to `forRoot()` and `defineQueue()`, and the answer to an enqueue that asks it. */
const CASES: [string, object, RegExp, (producer: DelayQueueProducer) => Promise<unknown>][] = [
  [
    'capture() of the contextProvider gave a promise',
    { contextProvider: { capture: late, run: () => undefined } },
    /^enqueue\("mail"\): contextProvider\.capture\(\) gave a promise\. It must answer at once\.$/,
    (producer) => producer.enqueue('mail', {}),
  ],
  ...[5, 'eu', ['a'], new Map([['tenant', 'eu']]), Symbol('tenant')].map((given): (typeof CASES)[number] => [
    `capture() gave ${typeof given} of the kind ${Object.prototype.toString.call(given)}`,
    { contextProvider: { capture: () => given, run: () => undefined } },
    /^enqueue\("mail"\): contextProvider\.capture\(\): .* is not a map of texts\.$/,
    (producer) => producer.enqueue('mail', {}),
  ]),
  [
    'id() of a definition gave a promise',
    {},
    /^defineQueue\("mail", { id }\) gave a promise\. It must answer at once\.$/,
    (producer) => producer.enqueue(defineQueue('mail', { id: late as never }), {}),
  ],
  [
    'identity() of a codec gave a promise',
    { codec: { ...bytes, identity: late } },
    /: identity\(\) of codec "bytes" gave a promise\. It must answer at once\.$/,
    (producer) => producer.enqueue('mail', {}, { idFromPayload: true }),
  ],
  [
    'identity() of a codec gave a number',
    { codec: { ...bytes, identity: () => 5 } },
    /: identity\(\) of codec "bytes" gave number\. It must give text or bytes\.$/,
    (producer) => producer.enqueue('mail', {}, { idFromPayload: true }),
  ],
];

describe('An enqueue that asks the application, which does not answer as it should', () => {
  it.each(CASES)('is refused, and the process goes on: %s', async (_, options, message, enqueue) => {
    const { producer, inspector } = await here.start({ options: { consume: false, ...options } });
    const refusal = await enqueue(producer).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(InvalidOptionError);
    expect((refusal as Error).message).toMatch(message);
    await turn(); // A rejection that nobody hears of ends the process in the turn after it.
    expect(await inspector.queues()).toEqual([]);
  });
});
