import { describe, expect, it } from '@jest/globals';
import type { JobState } from '../../../lib/index.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import type { Holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;

describe('a job under an id that is', () => {
  type Outcome = 'created' | 'kept' | 'replaced' | 'rescheduled' | 'refused';
  const TABLE: [JobState | 'none', ...Outcome[]][] = [
    //          keep       replace     reschedule     reject
    ['none', 'created', 'created', 'created', 'created'],
    ['delayed', 'kept', 'replaced', 'rescheduled', 'refused'],
    ['due', 'kept', 'replaced', 'rescheduled', 'refused'],
    ['running', 'kept', 'replaced', 'rescheduled', 'refused'],
    ['dead', 'replaced', 'replaced', 'rescheduled', 'refused'],
  ];
  const MODES = ['keep', 'replace', 'reschedule', 'reject'] as const;
  const cases = TABLE.flatMap(([state, ...outcomes]) =>
    MODES.map((mode, index) => [state, mode, outcomes[index]!] as const),
  );

  /** What is stored about job `a`: where, what, in how many hours, and whether something follows its run. */
  async function stored({ queue, producer }: Holding) {
    const job = await producer.get(queue, 'a');
    const { followups } = await here.world.read(queue);
    const hours = job && (Math.round((job.dueAt.getTime() - (await here.world.now())) / HOUR) || 0);
    return { state: job?.state, payload: job?.payload, attempts: job?.attempts, hours, follows: 'a' in followups };
  }

  it.each(cases)('%s with %s is %s', async (found, onDuplicate, outcome) => {
    const held = await holding(here);
    const { queue, producer } = held;
    await held.bring('a', found);
    const before = await stored(held);
    const answer = await producer
      .enqueue(queue, 'new', { id: 'a', onDuplicate, delay: 2 * HOUR })
      .catch((error: unknown) => error);

    const refused = { name: 'DuplicateJobError', code: 'ERR_DQ_DUPLICATE_JOB', queue, id: 'a', state: found };
    const done = { id: 'a', queue, outcome, state: found === 'none' ? 'delayed' : found };
    expect(answer).toMatchObject(outcome === 'refused' ? refused : done);

    const payload = outcome === 'rescheduled' ? 'old' : 'new';
    const moved = { state: 'delayed', payload, attempts: 0, hours: 2, follows: false };
    const after = found === 'running' ? { ...before, follows: true } : moved;
    expect(await stored(held)).toEqual(outcome === 'kept' || outcome === 'refused' ? before : after);
    expect(await here.world.violations(queue)).toEqual([]);
  });

  it.each<[JobState | 'none', string, string]>([
    ['none', 'notFound', 'notFound'],
    ['delayed', 'cancelled', 'rescheduled'],
    ['due', 'cancelled', 'rescheduled'],
    ['running', 'running', 'running'],
    ['dead', 'dead', 'dead'],
  ])('%s is %s by cancel(), and %s by reschedule() and runNow()', async (found, onCancel, onMove) => {
    const held = await holding(here);
    const { queue, producer } = held;
    const state = found === 'none' ? undefined : found;
    await held.bring('a', found);
    const before = await stored(held);
    const moves = onMove === 'rescheduled';

    const moved = await producer.reschedule(queue, 'a', { delay: '3h' });
    const dueAt = moves ? (await producer.get(queue, 'a'))?.dueAt : undefined;
    expect(moved).toEqual({ id: 'a', queue, outcome: onMove, state, dueAt });
    expect(await stored(held)).toEqual(moves ? { ...before, state: 'delayed', hours: 3 } : before);

    await held.inspector.pause(queue);
    expect(await producer.runNow(queue, 'a')).toMatchObject({ id: 'a', queue, outcome: onMove });
    expect(await stored(held)).toEqual(moves ? { ...before, state: 'due', hours: 0 } : before);

    const cancelled = await producer.cancel(queue, 'a');
    expect(cancelled).toEqual({ id: 'a', queue, outcome: onCancel, state: moves ? 'due' : state });
    expect((await stored(held)).state).toBe(moves ? undefined : state);
    expect(await here.world.violations(queue)).toEqual([]);
  });

  it.each([
    ['replace', 0],
    ['reschedule', 1],
  ] as const)('delayed after a failure, with %s, has %i attempts behind it', async (onDuplicate, attempts) => {
    const { queue, producer, bring, held, state } = await holding(here, { backoff: () => HOUR });
    await bring('a', 'running');
    held[0]!.end(new Error('no'));
    await eventually(async () => expect(await state('a')).toBe('delayed'));
    await producer.enqueue(queue, 'new', { id: 'a', onDuplicate, delay: HOUR });
    expect(await producer.get(queue, 'a')).toMatchObject({ state: 'delayed', attempts });
  });

  it('running is run exactly once more when it is replaced, with the newest payload and all its attempts', async () => {
    const { queue, producer, bring, run, held } = await holding(here, { backoff: () => HOUR });
    await bring('a', 'running');
    await producer.enqueue(queue, 'newer', { id: 'a', onDuplicate: 'replace' });
    await producer.enqueue(queue, 'newest', { id: 'a', onDuplicate: 'replace' });
    held[0]!.end(new Error('the old one fails'));
    const { job, end } = await run(2);
    expect(job).toMatchObject({ payload: 'newest', attempt: 1 });
    end();
    await eventually(async () => expect(await producer.get(queue, 'a')).toBeUndefined());
    expect(held).toHaveLength(2);
  });

  it('running is run again with the same payload when it is rescheduled', async () => {
    const { queue, producer, bring, held } = await holding(here);
    await bring('a', 'running');
    await producer.enqueue(queue, 'new', { id: 'a', onDuplicate: 'reschedule', delay: HOUR });
    held[0]!.end();
    await eventually(async () => {
      expect(await producer.get(queue, 'a')).toMatchObject({ state: 'delayed', payload: 'old' });
    });
  });

  it('cancelled while it ran, and enqueued again, was never run: it runs once more when that run has ended', async () => {
    const { queue, producer, bring, run, held, state } = await holding(here, { lease: 500 });
    await bring('a', 'running');
    await producer.cancel(queue, 'a', { running: true });
    expect(await producer.enqueue(queue, 'new', { id: 'a' })).toMatchObject({ outcome: 'replaced', state: 'running' });
    expect(await producer.enqueue(queue, 'newer', { id: 'a' })).toMatchObject({ outcome: 'kept', state: 'running' });
    expect(await producer.get(queue, 'a')).toMatchObject({ state: 'running', payload: 'old' });

    const first = held[0]!;
    await eventually(() => expect(first.job.signal.aborted).toBe(true));
    expect(first.job.signal.reason).toMatchObject({ code: 'ERR_DQ_CANCELLED', id: 'a' });
    expect(held).toHaveLength(1);
    first.end(new Error('aborted'));
    const { job, end } = await run(2);
    expect(job).toMatchObject({ payload: 'new', attempt: 1 });
    expect(job.signal.aborted).toBe(false);
    end();
    await eventually(async () => expect(await state('a')).toBeUndefined());
    expect(held).toHaveLength(2);
    expect(await here.world.problems(queue)).toEqual([]);
  });

  it('of which one was cancelled while it ran is replaced by one call for many, and the others are kept', async () => {
    const { queue, producer, bring, held, state } = await holding(here);
    await bring('a', 'running');
    await bring('b', 'running');
    await producer.cancel(queue, 'a', { running: true });
    const answers = await producer.enqueueMany(queue, [
      { payload: 1, id: 'a', delay: '1h' },
      { payload: 2, id: 'a', delay: '1h' },
      { payload: 3, id: 'b', delay: '1h' },
    ]);
    expect(answers.map(({ outcome }) => outcome)).toEqual(['replaced', 'kept', 'kept']);
    for (const { end } of held) end();
    await eventually(async () => expect([await state('a'), await state('b')]).toEqual(['delayed', undefined]));
    expect(await producer.get(queue, 'a')).toMatchObject({ payload: 1 });
  });
});
