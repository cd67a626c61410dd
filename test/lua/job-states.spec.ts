import { beforeEach, describe, expect, it } from '@jest/globals';
import type { JobState, OnDuplicate } from '../../lib/index.js';
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

describe.each(Object.entries(CALLS))('%s', (name, { call, cells }) => {
  it.each(STATES)('finds a job that is %s', async (state) => {
    const [outcome, found, after] = cells[state] ?? ['notFound', undefined, gone];
    await shard.put(state, 'A');
    const there = await shard.see('A');
    const laterAt = (await shard.now()) + 2 * HOUR;

    const result = await call(shard, laterAt);

    const dueAt = outcome === 'rescheduled' && { dueAt: name === 'runNow' ? A_DATE : new Date(laterAt) };
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
