import { beforeEach, describe, expect, it } from '@jest/globals';
import type { OnDuplicate } from '../../lib/index.js';
import type { Settlement } from '../../lib/worker/settlement.js';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';
import { decodeEnvelope } from '../../lib/job/envelope.js';

const here = shards();
let shard: Shard;
let peer: Peer;
let claim: number;
/** When rescheduled runs are due; replaced ones are due at once. */
let laterAt: number;
beforeEach(async () => {
  shard = here.fresh();
  peer = shard.peer();
  claim = await shard.put('running', 'A', 'v1');
  laterAt = (await shard.now()) + HOUR;
});

type Call =
  readonly ['replace' | 'keep', payload: string] | readonly ['reschedule', payload?: string] | readonly ['cancel'];

async function say([verb, payload = 'unused']: Call): Promise<void> {
  const { producer, queue } = shard;
  if (verb === 'cancel') await producer.cancel(queue, 'A', { running: true });
  else if (verb === 'reschedule') await producer.enqueue(queue, payload, { id: 'A', onDuplicate: verb, at: laterAt });
  else await producer.enqueue(queue, payload, { id: 'A', onDuplicate: verb });
}

/** What was called while the job ran, and the payload of the one run that follows; undefined for none. */
const SAID: readonly (readonly [calls: readonly Call[], payload: string | undefined])[] = [
  [[['replace', 'v2']], 'v2'],
  [[['reschedule']], 'v1'],
  [[['cancel']], undefined],
  [
    [
      ['replace', 'v2'],
      ['replace', 'v3'],
    ],
    'v3',
  ],
  [[['replace', 'v2'], ['cancel']], undefined],
  [[['cancel'], ['replace', 'v2']], 'v2'],
  // What was cancelled is not run again: from then on the id is free for a new job.
  [[['cancel'], ['reschedule', 'v2']], 'v2'],
  [[['cancel'], ['keep', 'v2']], 'v2'],
  [[['cancel'], ['keep', 'v2'], ['keep', 'v3']], 'v2'],
  [[['cancel'], ['keep', 'v2'], ['replace', 'v3']], 'v3'],
  [[['cancel'], ['keep', 'v2'], ['reschedule']], 'v2'],
  [[['cancel'], ['keep', 'v2'], ['cancel']], undefined],
  [[['replace', 'v2'], ['cancel'], ['keep', 'v3']], 'v3'],
  [[['replace', 'v2'], ['reschedule']], 'v2'],
  [[['reschedule'], ['replace', 'v2']], 'v2'],
  [[['reschedule'], ['cancel']], undefined],
];

const ENDINGS: Record<string, Settlement | 'take-back'> = {
  complete: { verb: 'complete' },
  retry: { verb: 'retry', delayMs: 0, error: '{}' },
  snooze: { verb: 'snooze', delayMs: 0 },
  'snooze with a payload': { verb: 'snooze', delayMs: 0, content: '\n"snoozed"' },
  'dead letter': { verb: 'dead', reason: 'exhausted', error: '{}', charge: true },
  release: { verb: 'release', dueAt: 0 },
  expired: { verb: 'expired' },
  'take-back': 'take-back',
};

async function end(ending: Settlement | 'take-back'): Promise<{ lost: readonly string[]; quarantined: number }> {
  if (ending === 'take-back') await shard.expire(claim);
  const { lost, quarantined } = await peer.step(
    ending === 'take-back' ? { sweep: true } : { settle: [[claim, 'A', ending]] },
  );
  return { lost, quarantined };
}

const A_TIME: unknown = expect.any(Number);

const cases = SAID.map(([calls, payload]) => ({
  what: calls.map((call) => call.join(' ')).join(', then '),
  calls,
  payload,
}));

describe.each(cases)('$what while it runs', ({ calls, payload }) => {
  it.each(Object.keys(ENDINGS))('decides what comes after its %s', async (name) => {
    for (const call of calls) await say(call);
    expect(await shard.see('A')).toMatchObject({ state: 'running', payload: 'v1' });

    expect(await end(ENDINGS[name]!)).toEqual({ lost: [], quarantined: 0 });

    const rescheduled = calls.at(-1)![0] === 'reschedule';
    expect(await shard.see('A')).toEqual(
      payload === undefined
        ? { state: 'none' }
        : { state: rescheduled ? 'delayed' : 'due', payload, dueAt: rescheduled ? laterAt : A_TIME },
    );
    // One run more at most, and the end of the first, told late, is not the end of the second.
    await here.world.makeDue(shard.queue, 'A');
    const { jobs, claim: second } = await peer.claim(9);
    expect(jobs.map(({ attempts }) => attempts.charged)).toEqual(payload === undefined ? [] : [0]);
    expect((await peer.settle(claim, 'A', { verb: 'complete' })).lost).toEqual(['A']);
    await peer.settle(second, 'A', { verb: 'complete' });
    expect(await shard.see('A')).toEqual({ state: 'none' });
  });
});

it('the followup expires by its own options, counted from its own due time', async () => {
  const options = { id: 'A', onDuplicate: 'replace', at: laterAt, expiresIn: 5_000 } as const;
  await shard.producer.enqueue(shard.queue, 'v2', options);
  await peer.settle(claim, 'A', { verb: 'complete' });
  expect(decodeEnvelope((await shard.read()).jobs['A']!).expiresAt).toBe(laterAt + 5_000);
});

it('reschedule(), runNow() and a plain cancel() leave the followup as it is', async () => {
  const { producer, queue } = shard;
  await say(['replace', 'v2']);
  const before = await shard.stored();
  await producer.reschedule(queue, 'A', { at: laterAt });
  await producer.runNow(queue, 'A');
  await producer.cancel(queue, 'A');
  expect(await shard.stored()).toEqual(before);
});

it('get and list show the run, not what follows', async () => {
  await say(['replace', 'v2']);
  expect(await shard.producer.get(shard.queue, 'A')).toMatchObject({ state: 'running', payload: 'v1' });
  expect((await shard.inspector.list(shard.queue, 'running')).jobs).toMatchObject([{ id: 'A', payload: 'v1' }]);
});

it('a heartbeat names the runs that were cancelled, and no others', async () => {
  await shard.fill('B', 'C');
  const { claim: both } = await peer.claim(2);
  await shard.producer.cancel(shard.queue, 'B', { running: true });
  await shard.producer.enqueue(shard.queue, 'v2', { id: 'C', onDuplicate: 'replace' });
  const { aborted } = await peer.step({ renew: [{ claim }, { claim: both, held: 2 }] });
  expect(aborted).toEqual(['B']);
});

it('a heartbeat still names a run that was cancelled when its id was enqueued again, and not the run that follows', async () => {
  await say(['cancel']);
  await say(['keep', 'v2']);
  await say(['replace', 'v3']);
  expect((await peer.step({ renew: [{ claim }] })).aborted).toEqual(['A']);
  await peer.settle(claim, 'A', { verb: 'complete' });
  const { claim: second } = await peer.claim(1);
  expect((await peer.step({ renew: [{ claim: second }] })).aborted).toEqual([]);
});

it.each<[OnDuplicate, string]>([
  ['keep', 'replaced'],
  ['replace', 'replaced'],
  ['reschedule', 'replaced'],
  ['reject', 'throws'],
])('enqueue with %s over a run that is about to end by cancel() is %s', async (onDuplicate, outcome) => {
  await say(['cancel']);
  const options = { id: 'A', onDuplicate, at: laterAt, uniqueFor: 2 * HOUR } as const;
  const call = shard.producer.enqueue(shard.queue, 'v2', options).catch((error: unknown) => error);
  const running = { state: 'running', payload: 'v1', attempts: 1 };
  expect(await call).toMatchObject(
    outcome === 'throws' ? { code: 'ERR_DQ_DUPLICATE_JOB', state: 'running' } : { outcome, state: 'running', dueAt: new Date(laterAt) }, // prettier-ignore
  );
  expect(await shard.see('A')).toEqual(
    outcome === 'throws' ? { ...running, followup: 'cancelled' } : { ...running, followup: 'v2', aborts: true },
  );
  // Its window is the new job's own.
  expect(Object.keys((await shard.read()).unique)).toEqual(outcome === 'throws' ? [] : ['A']);
  expect(await shard.producer.get(shard.queue, 'A')).toMatchObject({ state: 'running', payload: 'v1' });
  await peer.settle(claim, 'A', { verb: 'retry', delayMs: 0, error: '{}' });
  expect(await shard.see('A')).toEqual(
    outcome === 'throws' ? { state: 'none' } : { state: 'delayed', payload: 'v2', dueAt: laterAt },
  );
  expect(await shard.problems()).toEqual([]);
});

it('a followup of one job of a batch does not touch its neighbours', async () => {
  await shard.fill('B', 'C', 'D');
  const { claim: batch } = await peer.claim(3);
  await shard.producer.enqueue(shard.queue, 'v2', { id: 'C', onDuplicate: 'replace' });
  const settle = ['B', 'C', 'D'].map((id) => [batch, id, { verb: 'complete' }] as const);
  expect((await peer.step({ settle })).lost).toEqual([]);
  expect([await shard.see('B'), await shard.see('D')]).toEqual([{ state: 'none' }, { state: 'none' }]);
  expect(await shard.see('C')).toMatchObject({ state: 'due', payload: 'v2' });
});

it('a run that failed and is followed by another counts as failed', async () => {
  const { failed: before } = await shard.inspector.totals(shard.queue);
  await say(['replace', 'v2']);
  await peer.settle(claim, 'A', { verb: 'retry', delayMs: 0, error: '{}' });
  expect((await shard.inspector.totals(shard.queue)).failed).toBe(before + 1);
});

it('a cancelled followup leaves no start of a burst behind', async () => {
  await shard.producer.enqueue(shard.queue, 'v2', { id: 'A', onDuplicate: 'replace', maxWait: HOUR });
  await say(['cancel']);
  await peer.settle(claim, 'A', { verb: 'complete' });
  expect((await shard.read()).debounce).toEqual({});
});
