import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { defineQueue, InvalidOptionError } from '../../../lib/index.js';
import type { DelayQueueProducer, StandardSchema } from '../../../lib/index.js';
import { devalueCodec } from '../../../lib/devalue/index.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

const late = async (): Promise<never> => {
  throw new Error('later');
};
const missing = new TypeError('there is no "4711-secret".');
/** As long as a log line shows of an error, and the value goes on behind that. */
const SECRET = 'secret-4711-and-so-on';
const long = new TypeError(`${'.'.repeat(190)}${SECRET}`);
let thrown = missing;
const fails = () => {
  throw thrown;
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

const schema = (validate: () => unknown) =>
  ({ '~standard': { version: 1, vendor: 'own', validate } }) as StandardSchema;
const rejects = () => Promise.reject(thrown);

const FAILING: [string, object, string, (producer: DelayQueueProducer, payload: object) => Promise<unknown>][] = [
  ['id() of a definition', {}, 'defineQueue("mail", { id })', (producer, payload) =>
    producer.enqueue(defineQueue('mail', { id: fails }), payload)],
  ['group() of a definition', {}, 'defineQueue("mail", { group })', (producer, payload) =>
    producer.enqueueMany(defineQueue('mail', { group: fails }), [{ payload }])],
  ['the schema of a definition', {}, 'Queue "mail": the schema of the payload', (producer, payload) =>
    producer.enqueue(defineQueue('mail', { schema: schema(fails) }), payload)],
  ['the promise of a schema', {}, 'Queue "mail": the schema of the payload', (producer, payload) =>
    producer.enqueue(defineQueue('mail', { schema: schema(rejects) }), payload)],
  ['identity() of a codec', { codec: { ...bytes, identity: fails } }, 'enqueue("mail", { idFromPayload }): identity() of codec "bytes"', (producer, payload) =>
    producer.enqueue('mail', payload, { idFromPayload: true })],
]; // prettier-ignore

describe('An enqueue that asks the application, which does not answer as it should', () => {
  it.each(CASES)('is refused, and the process goes on: %s', async (_, options, message, enqueue) => {
    const { producer, inspector } = await here.start({ options: { consume: false, ...options } });
    const refusal = await enqueue(producer).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(InvalidOptionError);
    expect((refusal as Error).message).toMatch(message);
    await turn(); // A rejection that nobody hears of ends the process in the turn after it.
    expect(await inspector.queues()).toEqual([]);
  });

  it.each(FAILING)(
    'is refused with the cause, and without values of the payload: %s threw',
    async (_, options, field, enqueue) => {
      const { producer, inspector } = await here.start({ options: { consume: false, ...options } });
      const refusal = (await enqueue(producer, { id: '4711-secret' }).catch((error: unknown) => error)) as Error;
      expect(refusal).toBeInstanceOf(InvalidOptionError);
      expect(refusal.message).toBe(`${field} threw TypeError: there is no "[payload.id]".`);
      expect(refusal.cause).toBe(missing);
      expect(await inspector.queues()).toEqual([]);
    },
  );

  it.each(FAILING)(
    'is refused without the half of a value where the text is cut: %s threw',
    async (_, options, field, enqueue) => {
      thrown = long;
      try {
        const { producer } = await here.start({ options: { consume: false, ...options } });
        const refusal = (await enqueue(producer, { id: SECRET }).catch((error: unknown) => error)) as Error;
        expect(refusal.message).toBe(`${field} threw TypeError: ${'.'.repeat(190)}[payload.i...`);
        expect(refusal.cause).toBe(long);
      } finally {
        thrown = missing;
      }
    },
  );

  it.each<[string, object, RegExp, (producer: DelayQueueProducer, given: Promise<never>) => Promise<unknown>]>([
    ['the payload', {}, /payload is a Promise/, (producer, given) => producer.enqueue('mail', given)],
    ['a part of it', {}, /payload\.a is a Promise/, (producer, given) => producer.enqueue('mail', { a: given })],
    ['a part of it, with devalue', { codec: devalueCodec() }, /payload\.a: Cannot stringify/, (producer, given) =>
      producer.enqueue('mail', { a: given })],
    ['what its toJSON() gives', {}, /payload is a Promise/, (producer, given) =>
      producer.enqueue('mail', { toJSON: () => given })],
    ['the group', {}, /group }\): a promise/, (producer, given) => producer.enqueue('mail', 1, { group: given as never })],
    ['the delay', {}, /delay }\): a promise/, (producer, given) => producer.enqueue('mail', 1, { delay: given as never })],
    ['the time', {}, /at }\): a promise/, (producer, given) => producer.enqueue('mail', 1, { at: given as never })],
    ['the payload of a schedule', {}, /payload is a Promise/, (producer, given) =>
      producer.schedule('mail', 's', { every: '1h' }, given)],
    ['the payload of a signal', {}, /payload is a Promise/, (producer, given) => producer.signal('mail', 's', given)],
  ])('is refused, and the process goes on: %s is a promise that rejects', async (_, options, message, enqueue) => {
    const { producer, inspector } = await here.start({ options: { consume: false, ...options } });
    await expect(enqueue(producer, late())).rejects.toThrow(message);
    await turn(); // A rejection that nobody hears of ends the process in the turn after it.
    expect(await inspector.queues()).toEqual([]);
  }); // prettier-ignore

  it('is refused with the cause: capture() of the contextProvider threw', async () => {
    const options = { consume: false, contextProvider: { capture: fails, run: () => undefined as never } };
    const { producer } = await here.start({ options });
    const refusal = (await producer.enqueue('mail', {}).catch((error: unknown) => error)) as Error;
    expect(refusal).toBeInstanceOf(InvalidOptionError);
    expect(refusal.message).toContain('enqueue("mail"): contextProvider.capture() threw TypeError: there is no ');
    expect(refusal.cause).toBe(missing);
    // The call is named that was made.
    const of = (call: Promise<unknown>) =>
      call.then(String, ({ message }: Error) => message.split(' contextProvider')[0]);
    expect(await of(producer.schedule('mail', 'daily', { every: '1d' }, {}))).toBe('schedule("mail", { context }):');
    expect(await of(producer.enqueueMany('mail', [{ payload: 1, delay: 1 }]))).toBe(
      'enqueueMany("mail", item 0: { context }):',
    );
  });
});
