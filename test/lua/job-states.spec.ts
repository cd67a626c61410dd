import { beforeEach, describe, expect, it } from '@jest/globals';
import type { EnqueueOptions, JobState, OnDuplicate } from '../../lib/index.js';
import { decodeEnvelope } from '../../lib/job/envelope.js';
import type { Peer } from './peer.js';
import { HOUR, STATES } from './shard.js';
import type { Seen, Shard } from './shard.js';
import { CALLS, CREATED, ENQUEUE, FREE, gone, THROWS } from './job-states.js';
import { shards } from './shards.js';

const here = shards();
let shard: Shard;
let peer: Peer;
beforeEach(() => {
  shard = here.fresh();
  peer = shard.peer();
});

const answerOf = (call: Promise<unknown>) => call.catch((error: unknown) => error);
const refused = (found: JobState | undefined): unknown =>
  expect.objectContaining({ code: 'ERR_DQ_DUPLICATE_JOB', message: expect.stringContaining(found!) });

const A_DATE: unknown = expect.any(Date);

describe.each(Object.keys(ENQUEUE) as OnDuplicate[])("enqueue with onDuplicate '%s'", (onDuplicate) => {
  it.each(STATES)('finds a job that is %s', async (state) => {
    const [outcome, found, after] = ENQUEUE[onDuplicate][state] ?? CREATED;
    expect(ENQUEUE[onDuplicate][state] === undefined).toBe(FREE.includes(state));
    await shard.put(state, 'A');
    const there = await shard.see('A');
    const snapshot = await shard.producer.get(shard.queue, 'A');
    const laterAt = (await shard.now()) + 2 * HOUR;

    const call = shard.producer.enqueue(shard.queue, 'new', { id: 'A', at: laterAt, onDuplicate });

    const dueAt = outcome === 'kept' ? snapshot!.dueAt : new Date(laterAt);
    expect(await answerOf(call)).toEqual(
      outcome === THROWS ? refused(found) : { id: 'A', queue: shard.queue, outcome, state: found, dueAt },
    );
    expect(await shard.see('A')).toEqual(after(there, laterAt));
  });
});

describe("enqueue with onDead 'keep'", () => {
  it.each(STATES)('finds a job that is %s', async (state) => {
    const [outcome, found, after] =
      state === 'dead' ? (['kept', 'dead', (there: Seen) => there] as const) : (ENQUEUE.keep[state] ?? CREATED);
    await shard.put(state, 'A');
    const there = await shard.see('A');
    const snapshot = await shard.producer.get(shard.queue, 'A');
    const laterAt = (await shard.now()) + 2 * HOUR;

    const result = await shard.producer.enqueue(shard.queue, 'new', { id: 'A', at: laterAt, onDead: 'keep' });

    const dueAt = outcome === 'kept' ? snapshot!.dueAt : new Date(laterAt);
    expect(result).toEqual({ id: 'A', queue: shard.queue, outcome, state: found, dueAt });
    expect(await shard.see('A')).toEqual(after(there, laterAt));
  });
});

describe("enqueue with replace and dueAt 'keep'", () => {
  it.each(STATES)('finds a job that is %s', async (state) => {
    await shard.put(state, 'A');
    const there = await shard.see('A');
    const snapshot = await shard.producer.get(shard.queue, 'A');
    const laterAt = (await shard.now()) + 2 * HOUR;
    const waits = ['delayed', 'due', 'quarantined'].includes(state);
    const [outcome, found, after] = ENQUEUE.replace[state] ?? CREATED;
    const options = { id: 'A', at: laterAt, onDuplicate: 'replace', dueAt: 'keep', expiresIn: HOUR } as const;

    const result = await shard.producer.enqueue(shard.queue, 'new', options);

    const dueAt = waits ? (there.dueAt ?? snapshot!.dueAt.getTime()) : laterAt;
    expect(result).toEqual({ id: 'A', queue: shard.queue, outcome, state: found, dueAt: new Date(dueAt) });
    const late = waits && dueAt <= laterAt - 2 * HOUR ? ({ state: 'due' } as const) : {};
    expect(await shard.see('A')).toEqual({ ...after(there, dueAt), ...late });
    // Its expiry counts from the time that it kept.
    const { jobs, followups } = await shard.read();
    expect(decodeEnvelope(followups['A'] ?? jobs['A']!)).toMatchObject({ dueAt, expiresAt: dueAt + HOUR });
  });

  it('keeps the time of what follows a run, of a retry, and of the first of one call', async () => {
    const replace = async (payload: string, options: EnqueueOptions) =>
      shard.producer.enqueue(shard.queue, payload, { id: 'A', onDuplicate: 'replace', ...options });
    const laterAt = (await shard.now()) + 2 * HOUR;
    const claim = await shard.put('running', 'A');
    await replace('v2', { at: laterAt });
    expect(await replace('v3', { dueAt: 'keep' })).toMatchObject({ dueAt: new Date(laterAt), state: 'running' });
    expect(await shard.see('A')).toMatchObject({ followup: 'v3' });
    await peer.settle(claim, 'A', { verb: 'complete' });
    expect(await shard.see('A')).toEqual({ state: 'delayed', payload: 'v3', dueAt: laterAt });

    await here.world.makeDue(shard.queue, 'A');
    await peer.settle(await peer.take('A'), 'A', { verb: 'retry', delayMs: HOUR, error: '{}' });
    const retry = (await shard.see('A')).dueAt!;
    expect(await replace('v4', { dueAt: 'keep' })).toMatchObject({ dueAt: new Date(retry), outcome: 'replaced' });
    expect(await shard.see('A')).toEqual({ state: 'delayed', payload: 'v4', dueAt: retry });

    const [, second] = await shard.producer.enqueueMany(shard.queue, [
      { payload: 1, id: 'B', at: laterAt },
      { payload: 2, id: 'B', onDuplicate: 'replace', dueAt: 'keep' },
    ]);
    expect(second).toMatchObject({ outcome: 'replaced', dueAt: new Date(laterAt) });
  });
});

describe('update', () => {
  it('changes the payload alone: header, expiry, attempts and order stay', async () => {
    const options = { id: 'A', attempts: 3, expiresIn: HOUR, context: { tenant: 't1' }, timeout: '5s' } as const;
    await shard.producer.enqueue(shard.queue, 'old', options);
    await peer.settle(await peer.take('A'), 'A', { verb: 'retry', delayMs: HOUR, error: '{"at":1}' });
    const before = decodeEnvelope((await shard.read()).jobs['A']!);
    const snapshot = await shard.producer.get(shard.queue, 'A');
    expect(await shard.producer.update(shard.queue, 'A', { n: 1 })).toMatchObject({
      outcome: 'updated',
      dueAt: snapshot!.dueAt,
    });
    expect(decodeEnvelope((await shard.read()).jobs['A']!)).toEqual({ ...before, body: '{"n":1}' });
    expect(await shard.producer.get(shard.queue, 'A')).toEqual({ ...snapshot, payload: { n: 1 } });
  });

  it('takes the job from the worker that lost its lease: it ran the old payload', async () => {
    const claim = await shard.put('quarantined', 'A');
    await shard.producer.update(shard.queue, 'A', 'new');
    expect((await peer.settle(claim, 'A', { verb: 'complete' })).lost).toEqual(['A']);
    expect(await shard.see('A')).toMatchObject({ state: 'quarantined', payload: 'new' });
  });

  it('leaves what follows a run as it is', async () => {
    await shard.put('running', 'A');
    await shard.producer.enqueue(shard.queue, 'next', { id: 'A', onDuplicate: 'replace' });
    expect(await shard.producer.update(shard.queue, 'A', 'new')).toMatchObject({ outcome: 'running' });
    expect(await shard.see('A')).toMatchObject({ payload: 'old', followup: 'next' });
  });

  it('says what is wrong with a job whose record is damaged or newer, and leaves it alone', async () => {
    await shard.put('delayed', 'A');
    const jobs = shard.key('jobs');
    for (const [record, code] of [
      ['nothing of ours', 'ERR_DQ_STORED_DATA'],
      [
        `1-${'A'.repeat(14)}{"a":
1`,
        'ERR_DQ_STORED_DATA',
      ],
      [
        `3-${'A'.repeat(14)}
1`,
        'ERR_DQ_LAYOUT',
      ],
    ] as const) {
      await here.world.redis.hset(jobs, 'A', record);
      const error = await answerOf(shard.producer.update(shard.queue, 'A', 'new'));
      expect(error).toMatchObject({ code, message: expect.stringContaining(`"${shard.queue}", "A"`) });
      expect(await here.world.redis.hget(jobs, 'A')).toBe(record);
    }
    const sound = await here.world.redis.hget(jobs, 'A');
    await here.world.redis.hdel(jobs, 'A');
    expect(await shard.producer.update(shard.queue, 'A', 'new')).toMatchObject({ outcome: 'notFound' });
    await here.world.redis.hset(jobs, 'A', sound!);
  });
});

describe('signal', () => {
  it('changes the payload and the due time alone: header, attempts and order stay, and the expiry moves along', async () => {
    const options = { id: 'A', attempts: 3, delay: 2 * HOUR, expiresIn: HOUR, context: { tenant: 't1' } } as const;
    await shard.producer.enqueue(shard.queue, 'old', options);
    const before = decodeEnvelope((await shard.read()).jobs['A']!);
    const { dueAt } = await shard.producer.signal(shard.queue, 'A', { n: 1 });
    const [due, now] = [dueAt!.getTime(), await shard.now()];
    expect(now - due).toBeLessThan(HOUR);
    const sooner = before.dueAt - due;
    const after = decodeEnvelope((await shard.read()).jobs['A']!);
    expect(after).toEqual({ ...before, body: '{"n":1}', dueAt: due, expiresAt: before.expiresAt! - sooner });
  });

  it('takes the job from the worker that lost its lease: it ran the old payload', async () => {
    const claim = await shard.put('quarantined', 'A');
    await shard.producer.signal(shard.queue, 'A', 'new');
    expect((await peer.settle(claim, 'A', { verb: 'complete' })).lost).toEqual(['A']);
    expect(await shard.see('A')).toMatchObject({ state: 'quarantined', payload: 'new' });
  });

  it('counts by its last payload, as long as the job waits', async () => {
    await shard.put('delayed', 'A');
    const first = await shard.producer.signal(shard.queue, 'A', 'first');
    expect(await shard.producer.signal(shard.queue, 'A', 'second')).toEqual({ ...first, state: 'due' });
    expect(await shard.see('A')).toMatchObject({ state: 'due', payload: 'second' });
  });
});

describe.each(Object.entries(CALLS))('%s', (name, { call, cells }) => {
  it.each(STATES)('finds a job that is %s', async (state) => {
    const [outcome, found, after] = cells[state] ?? ['notFound', undefined, gone];
    await shard.put(state, 'A');
    const there = await shard.see('A');
    const laterAt = (await shard.now()) + 2 * HOUR;

    const result = await call(shard, laterAt);

    const moves = ['rescheduled', 'updated', 'signalled'].includes(outcome);
    const dueAt = moves && { dueAt: name === 'reschedule' ? new Date(laterAt) : A_DATE };
    expect(result).toEqual({ id: 'A', queue: shard.queue, outcome, state: found, ...dueAt });
    expect(await shard.see('A')).toEqual(after(there, laterAt));
  });
});

it('runNow moves the due time of a delayed job to now, and leaves one that is due its place in the order', async () => {
  await shard.fill('A', 'B');
  await shard.producer.enqueue(shard.queue, 'C', { id: 'C', delay: '1h' });
  const before = await shard.now();
  await shard.producer.runNow(shard.queue, 'B');
  const { dueAt } = await shard.producer.runNow(shard.queue, 'C');
  expect(dueAt!.getTime()).toBeGreaterThanOrEqual(before);
  const { jobs } = await peer.claim(9);
  expect(jobs.map(({ id }) => id)).toEqual(['A', 'B', 'C']);
  expect(jobs[2]!.dueAt).toBe(dueAt!.getTime());
});

it('a delay counts from the moment the script runs, by the clock of the server', async () => {
  const before = await shard.now();
  const { dueAt } = await shard.producer.enqueue(shard.queue, 'new', { delay: '1h' });
  const after = await shard.now();
  expect(dueAt.getTime()).toBeGreaterThanOrEqual(before + HOUR);
  expect(dueAt.getTime()).toBeLessThanOrEqual(after + HOUR);
});

it('a moment in the past is due at once and keeps its due time', async () => {
  const { dueAt, state } = await shard.producer.enqueue(shard.queue, 'new', { id: 'A', at: 1_000 });
  expect([dueAt.getTime(), state]).toEqual([1_000, 'due']);
  expect((await peer.claim(1)).jobs[0]).toMatchObject({ id: 'A', dueAt: 1_000 });
});

it('what only a newer library can read of a stored job stays when this one writes its header anew', async () => {
  const { producer, queue } = shard;
  const newer = { s: { form: 2 }, l: 'later form', n: [1] };
  const header = async () => {
    const envelope = (await shard.read()).jobs['A']!;
    return JSON.parse(envelope.slice(envelope.indexOf('{'), envelope.indexOf('\n')));
  };
  await producer.enqueue(queue, 'old', { id: 'A', delay: HOUR, attempts: 3 });
  const stored = (await shard.read()).jobs['A']!;
  await shard.world.redis.hset(shard.key('jobs'), 'A', stored.replace('{"a":3}', JSON.stringify({ a: 3, ...newer })));
  expect(await producer.update(queue, 'A', 'new')).toMatchObject({ outcome: 'updated' });
  expect(await header()).toEqual({ a: 3, ...newer });
  const at = { local: '2090-01-01T08:00', timeZone: 'Europe/Berlin' };
  expect(await producer.reschedule(queue, 'A', { at })).toMatchObject({ outcome: 'rescheduled' });
  const { l, ...others } = await header();
  expect([others, l.slice(0, 2)]).toEqual([{ a: 3, s: newer.s, n: newer.n }, ['2090-01-01T08:00', 'Europe/Berlin']]);
  expect(await shard.see('A')).toMatchObject({ state: 'delayed', payload: 'new' });
});
