import { describe, expect, it } from '@jest/globals';
import { DelayQueueError } from '../../../lib/index.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';
import { getterThrowing } from '../../helpers/throwing.js';

const here = inAWorld();
const end = endingWithEachTest();

const cycle: Record<string, unknown> = {};
cycle['self'] = cycle;

const WRONG: Record<string, unknown[]> = {
  ERR_DQ_INVALID_DELAY: [
    [-1, -0.001, NaN, Infinity, -Infinity, 3_155_760_000_001, 1e21].map((delay) => ({ delay })),
    ['', ' ', '3', '3x', '-1s', '3h later', '1 month', 'P1M', 'PT', 'tomorrow', '36526d'].map((delay) => ({ delay })),
    [null, true, [], {}, 5n, new Date()].map((delay) => ({ delay })),
    [NaN, Infinity, new Date(NaN), '2030-01-01', '5', null, true, [], {}].map((at) => ({ at })),
    [{ expiresIn: -1 }, { expiresIn: 0 }, { expiresAt: 'soon' }, { maxWait: 'x' }, { uniqueFor: -1 }, { timeout: 0 }],
  ].flat(),
  ERR_DQ_INVALID_OPTION: [
    [
      { delay: 1, at: 1 },
      { expiresIn: 1, expiresAt: 1 },
      { id: 'a', idFromPayload: true },
    ],
    [{ dealy: 5 }, { deley: '3h' }, { attempts: 0 }, { attempts: 1.5 }, { attempts: '3' }, { backoff: '1s' }],
    [{ onDuplicate: 'ignore' }, { idFromPayload: 'yes' }, { keepExpired: 1 }],
    [{ context: { a: 1 } }, { context: 'a' }, { context: { a: 'x'.repeat(5_000) } }],
    [null, '3h', 500, new Date(), new Map()],
  ].flat(),
  ERR_DQ_INVALID_ID: ['', 'a{b', 'a}b', 'line\nbreak', 'nul\0', 'x'.repeat(257), 5, null, {}].map((id) => ({ id })),
};
const QUEUES = ['', ' mail', 'mail ', 'a{b}', 'line\nbreak', 'x'.repeat(129), 5, null, undefined, {}];
const PAYLOADS: Record<string, unknown[]> = {
  ERR_DQ_PAYLOAD: [
    [undefined, 1n, () => 1, Symbol('s'), NaN, Infinity, new Map(), new Set(), cycle],
    [{ deep: [{ n: NaN }] }, { deep: 1n }, { deep: () => 1 }, { deep: new Map() }],
  ].flat(),
  ERR_DQ_PAYLOAD_TOO_LARGE: ['x'.repeat(262_144)],
};

/** A producer, and how much it said to Redis while `act` ran. */
async function refusals() {
  const proxy = end(await Proxy.before(here.world.url));
  const { producer } = await here.start({ options: { consume: false, connection: proxy.url } });
  let requests = 0;
  proxy.judge = (direction) => {
    if (direction === 'request') requests++;
    return 'pass';
  };
  const said = async (call: () => Promise<unknown>) => {
    const error = await call().then(
      (answer) => new Error(`was accepted: ${JSON.stringify(answer)}`),
      (thrown: unknown) => thrown,
    );
    return error instanceof DelayQueueError ? error.code : error;
  };
  return { producer: producer as any, said, requests: () => requests };
}

describe('Wrong input is refused before anything is sent', () => {
  it.each(Object.entries(WRONG))('options with %s', async (code, all) => {
    const { producer, said, requests } = await refusals();
    for (const options of all) {
      expect([options, await said(async () => producer.enqueue('mail', {}, options))]).toEqual([options, code]);
    }
    expect(requests()).toBe(0);
  });

  it.each(Object.entries(PAYLOADS))('payloads with %s', async (code, all) => {
    const { producer, said, requests } = await refusals();
    for (const payload of all) expect(await said(async () => producer.enqueue('mail', payload))).toBe(code);
    expect(requests()).toBe(0);
  });

  it('names of queues, in every call', async () => {
    const { producer, said, requests } = await refusals();
    for (const queue of QUEUES) {
      const calls = [
        () => producer.enqueue(queue, {}),
        () => producer.enqueueMany(queue, [{ payload: {} }]),
        () => producer.cancel(queue, 'id'),
        () => producer.reschedule(queue, 'id', { delay: 1 }),
        () => producer.runNow(queue, 'id'),
        () => producer.get(queue, 'id'),
      ];
      for (const call of calls) {
        expect([queue, await said(async () => call())]).toEqual([queue, 'ERR_DQ_INVALID_QUEUE']);
      }
    }
    expect(requests()).toBe(0);
  });

  it('a whole bulk, when one item of it is wrong', async () => {
    const { producer, said, requests } = await refusals();
    const good = Array.from({ length: 300 }, (_, n) => ({ payload: n }));
    for (const [bad, code] of [
      [{ payload: 1n }, 'ERR_DQ_PAYLOAD'],
      [{ payload: 1, delay: -1 }, 'ERR_DQ_INVALID_DELAY'],
      [{ pyload: 1 }, 'ERR_DQ_INVALID_OPTION'],
      [null, 'ERR_DQ_INVALID_OPTION'],
    ] as const) {
      expect(await said(async () => producer.enqueueMany('mail', [...good, bad]))).toBe(code);
    }
    expect(requests()).toBe(0);
  });

  it('moves to nowhere', async () => {
    const { producer, said, requests } = await refusals();
    for (const to of [undefined, null, {}, { delay: 1, at: 1 }, { delay: 1, by: 2 }]) {
      expect(await said(async () => producer.reschedule('mail', 'id', to))).toBe('ERR_DQ_INVALID_OPTION');
    }
    for (const to of [{ delay: -1 }, { delay: 'x' }, { at: 'x' }, { at: new Date(NaN) }]) {
      expect(await said(async () => producer.reschedule('mail', 'id', to))).toBe('ERR_DQ_INVALID_DELAY');
    }
    expect(requests()).toBe(0);
  });
});

it('options of a call about one job that cannot be read are refused by name', async () => {
  const { producer } = await here.start({ options: { consume: false } });
  const unreadable = (option: string): any => getterThrowing(option, new Error('not there'));
  const calls: [string, Promise<unknown>][] = [
    ['cancel({ group })', producer.cancel('mail', 'a', unreadable('running'))],
    ['reschedule(queue, id, to, options)', producer.reschedule('mail', 'a', { delay: 1 }, unreadable('group'))],
    ['reschedule(queue, id, to)', producer.reschedule('mail', 'a', unreadable('at'))],
    ['runNow(queue, id, options)', producer.runNow('mail', 'a', unreadable('group'))],
    ['update(queue, id, payload, options)', producer.update('mail', 'a', 1, unreadable('group'))],
    ['get(queue, id, options)', producer.get('mail', 'a', unreadable('group'))],
  ];
  for (const [call, answer] of calls) {
    const error = await answer.catch((reason: Error) => reason);
    expect(error).toMatchObject({ code: 'ERR_DQ_INVALID_OPTION', cause: { message: 'not there' } });
    expect((error as Error).message).toContain(call);
  }
});
