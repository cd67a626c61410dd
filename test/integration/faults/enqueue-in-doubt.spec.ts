import { afterEach, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { UnavailableError } from '../../../lib/index.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';
import { callsOf } from '../../helpers/script-calls.js';

const here = inAWorld({});
const end = endingWithEachTest();
const isEnqueue = callsOf('enqueue');
afterEach(() => here.world.redis.config('SET', 'maxmemory', '0'));

async function farProducer(commandTimeout: string) {
  const proxy = end(await Proxy.before(here.world.url));
  const options = { consume: false as const, connection: proxy.url, commandTimeout };
  const { producer } = await here.start({ options });
  await producer.enqueue('mail', {}, { id: 'warm-up', delay: '1h' });
  const failure = (id: string) =>
    producer.enqueue('mail', {}, { id, delay: '1h' }).then(
      () => undefined,
      (error: UnavailableError) => error,
    );
  return { proxy, failure };
}

it('an enqueue whose answer was lost, and whose resend met a full server, claimed not to be accepted', async () => {
  const { proxy, failure } = await farProducer('10s');
  // The first enqueue arrives; from then on nothing comes back and nothing more gets through until the server is full.
  let arrived = false;
  let full = false;
  proxy.judge = (direction, chunk) => {
    if (full || (direction === 'request' && !arrived && !isEnqueue(chunk))) return 'pass';
    if (arrived || direction === 'reply') return 'cut';
    arrived = true;
    return 'pass';
  };
  const failing = failure('A');
  await eventually(async () => expect((await here.world.read('mail')).jobs).toHaveProperty('A'));
  await here.world.redis.config('SET', 'maxmemory', '1');
  full = true;
  const error = (await failing)!;
  expect(error).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', maybeAccepted: true, id: 'A', ids: ['A'] });
  expect(error.message).toMatch(/may have taken effect/);
});

it('an enqueue that had failed was sent again for as long as nobody answered', async () => {
  const { proxy, failure } = await farProducer('400ms');
  let sent = 0;
  proxy.judge = (direction, chunk) => {
    if (direction === 'request' && isEnqueue(chunk)) sent++;
    const isAnswer = direction === 'reply' && / [ckprx] [ldrxc-] \d/.test(chunk.toString());
    return isAnswer ? 'cut' : 'pass';
  };
  expect(await failure('B')).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', maybeAccepted: true });
  const before = sent;
  expect(before).toBeGreaterThan(0);
  await sleep(2_500); // the longest pause between two tries is two seconds
  expect(sent).toBe(before);
});
