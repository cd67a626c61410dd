import { beforeEach, describe, expect, it } from '@jest/globals';
import type { JobState, OnDuplicate } from '../../lib/index.js';
import type { Peer } from './peer.js';
import { HOUR, STATES } from './shard.js';
import type { Seen, Shard, State } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let shard: Shard;
let peer: Peer;
beforeEach(() => {
  shard = here.fresh();
  peer = shard.peer();
});

/** What the world looks like afterwards; `there` is what stood there before. */
type After = (there: Seen, laterAt: number) => Seen;

const asBefore: After = (there) => there;
const gone: After = () => ({ state: 'none' });
const anew: After = (_, laterAt) => ({ state: 'delayed', payload: 'new', dueAt: laterAt });
const moved: After = (there, laterAt) => ({ ...there, state: 'delayed', dueAt: laterAt });
const revived: After = (there, laterAt) => ({ state: 'delayed', payload: there.payload, dueAt: laterAt });
const followedBy =
  (next: string): After =>
  (there) => ({ ...there, next });

/** Stands for an enqueue that throws DuplicateJobError. */
const THROWS = 'throws';
type Cell = readonly [outcome: string, state: JobState | undefined, after: After];

const answerOf = (call: Promise<unknown>) => call.catch((error: unknown) => error);
const refused = (found: JobState | undefined): unknown =>
  expect.objectContaining({ code: 'ERR_DQ_DUPLICATE_JOB', message: expect.stringContaining(found!) });

const A_DATE: unknown = expect.any(Date);

const CREATED: Cell = ['created', 'delayed', anew];
const FREE: readonly State[] = ['none', 'completed', 'cancelled', 'expired'];

const ENQUEUE: Record<OnDuplicate, Partial<Record<State, Cell>>> = {
  keep: {
    delayed: ['kept', 'delayed', asBefore],
    due: ['kept', 'due', asBefore],
    suspect: ['kept', 'due', asBefore],
    running: ['kept', 'running', asBefore],
    dead: ['kept', 'dead', asBefore],
  },
  replace: {
    delayed: ['replaced', 'delayed', anew],
    due: ['replaced', 'due', anew],
    suspect: ['replaced', 'due', anew],
    running: ['replaced', 'running', followedBy('new')],
    dead: ['replaced', 'dead', anew],
  },
  reschedule: {
    delayed: ['rescheduled', 'delayed', moved],
    due: ['rescheduled', 'due', moved],
    suspect: ['rescheduled', 'due', moved],
    running: ['rescheduled', 'running', followedBy('old')],
    dead: ['rescheduled', 'dead', revived],
  },
  reject: {
    delayed: [THROWS, 'delayed', asBefore],
    due: [THROWS, 'due', asBefore],
    suspect: [THROWS, 'due', asBefore],
    running: [THROWS, 'running', asBefore],
    dead: [THROWS, 'dead', asBefore],
  },
};

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

const CALLS: Record<string, { call: (laterAt: number) => Promise<unknown>; cells: Partial<Record<State, Cell>> }> = {
  cancel: {
    call: () => shard.producer.cancel(shard.queue, 'A'),
    cells: {
      delayed: ['cancelled', 'delayed', gone],
      due: ['cancelled', 'due', gone],
      suspect: ['cancelled', 'due', gone],
      running: ['running', 'running', asBefore],
      dead: ['dead', 'dead', asBefore],
    },
  },
  'cancel({ running: true })': {
    call: () => shard.producer.cancel(shard.queue, 'A', { running: true }),
    cells: {
      delayed: ['cancelled', 'delayed', gone],
      due: ['cancelled', 'due', gone],
      suspect: ['cancelled', 'due', gone],
      running: ['running', 'running', followedBy('cancelled')],
      dead: ['dead', 'dead', asBefore],
    },
  },
  reschedule: {
    call: (laterAt) => shard.producer.reschedule(shard.queue, 'A', { at: laterAt }),
    cells: {
      delayed: ['rescheduled', 'delayed', moved],
      due: ['rescheduled', 'due', moved],
      suspect: ['rescheduled', 'due', moved],
      running: ['running', 'running', asBefore],
      dead: ['dead', 'dead', asBefore],
    },
  },
  runNow: {
    call: () => shard.producer.runNow(shard.queue, 'A'),
    cells: {
      delayed: ['rescheduled', 'delayed', (there) => ({ ...there, state: 'due', dueAt: expect.any(Number) as never })],
      due: ['rescheduled', 'due', asBefore],
      suspect: ['rescheduled', 'due', asBefore],
      running: ['running', 'running', asBefore],
      dead: ['dead', 'dead', asBefore],
    },
  },
};

describe.each(Object.entries(CALLS))('%s', (name, { call, cells }) => {
  it.each(STATES)('finds a job that is %s', async (state) => {
    const [outcome, found, after] = cells[state] ?? ['notFound', undefined, gone];
    await shard.put(state, 'A');
    const there = await shard.see('A');
    const laterAt = (await shard.now()) + 2 * HOUR;

    const result = await call(laterAt);

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
