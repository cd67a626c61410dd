import { beforeEach, describe, expect, it } from '@jest/globals';
import { parseStep, STEP_SEQUENCE_AT } from '../../lib/redis/step.protocol.js';
import type { StepReply } from '../../lib/redis/step.protocol.js';
import type { Settlement } from '../../lib/worker/settlement.js';
import { TestSession } from './peer.js';
import type { Ask, Peer } from './peer.js';
import { place } from './placed.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let shard: Shard;
let peer: Peer;
let session: TestSession;
beforeEach(() => {
  shard = here.fresh();
  peer = shard.peer();
  session = new TestSession(shard);
});

const COMPLETE: Settlement = { verb: 'complete' };
const byId = ({ jobs }: StepReply) => jobs.toSorted((one, other) => (one.id < other.id ? -1 : 1));
const idsOf = ({ jobs }: { jobs: readonly { id: string }[] }) => jobs.map(({ id }) => id).sort();

describe('a step that is sent again', () => {
  it('claims nothing new and answers the same batch', async () => {
    await shard.fill('A', 'B', 'C');
    const first = await peer.claim(2);
    const before = await shard.stored();
    const second = await peer.again();
    expect(second.claim).toBe(first.claim);
    expect(idsOf(second)).toEqual(['A', 'B']);
    expect(second.jobs).toEqual(first.jobs);
    expect(await shard.stored()).toEqual(before);
  });

  it.each([
    { kind: 'a plain queue', group: false },
    { kind: 'a queue with groups', group: true },
  ])('tells when jobs of $kind were due by then, also those that were put off', async ({ group }) => {
    const ids = ['given back', 'left to others', 'retried', 'snoozed'];
    await shard.fill(...ids);
    const { claim, jobs } = await peer.claim(4);
    if (group) await place(shard, { id: 'grouped', group: 'g', spec: `ka${(await shard.now()) - 1}` });
    const givenBack = jobs.find(({ id }) => id === 'given back')!;
    await peer.step({
      settle: [
        [claim, 'given back', { verb: 'release', dueAt: givenBack.dueAt }],
        [claim, 'left to others', { verb: 'release', dueAt: (await shard.now()) - 1 }],
        [claim, 'retried', { verb: 'retry', delayMs: 0, error: '{}' }],
        [claim, 'snoozed', { verb: 'snooze', delayMs: 0 }],
      ],
    });
    const first = byId(await peer.claim(5));
    expect(idsOf({ jobs: first })).toEqual(group ? ['given back', 'grouped', ...ids.slice(1)] : ids);
    const again = await peer.again();
    expect([byId(again), again.lost, again.superseded]).toEqual([first, [], []]);
  });

  it('leaves out jobs that have gone since', async () => {
    await shard.fill('A', 'B', 'C', 'D');
    const { claim } = await peer.claim(4);
    const other = shard.peer();
    await other.settle(claim, 'A', COMPLETE);
    await other.settle(claim, 'B', { verb: 'retry', delayMs: 0, error: '{}' });
    await other.session.call('extend', [0, claim, 'C', HOUR]);
    const again = await peer.again();
    expect([again.claim, idsOf(again)]).toEqual([claim, ['D']]);
  });

  it('is answered for as long as it holds its jobs, also when nobody asks for longer than sessions are remembered', async () => {
    await shard.fill('A');
    await peer.claim(1, { leaseMs: HOUR });
    const forMs = await shard.world.redis.pttl(peer.session.key);
    expect(forMs).toBeGreaterThan(HOUR - 60_000);
    expect(forMs).toBeLessThanOrEqual(HOUR);
  });

  it('gives out no batch of which the lease ended and somebody else took the jobs', async () => {
    await shard.fill('A', 'B');
    const { claim } = await peer.claim(2);
    await shard.expire(claim);
    const other = shard.peer();
    const taken = await other.step({ sweep: true, quarantineLimit: 2 });
    expect(idsOf(taken)).toEqual(['A', 'B']);
    expect((await peer.again()).jobs).toEqual([]);
  });

  it('settles nothing twice: a job that it completed is not reported as lost', async () => {
    await shard.fill('A', 'B');
    const { claim } = await peer.claim(2);
    const settle = ['A', 'B', 'stranger'].map((id) => [claim, id, COMPLETE] as const);
    const first = await peer.step({ settle });
    expect(first.lost).toEqual(['stranger']);
    expect((await peer.again()).lost).toEqual(['stranger']);
    expect((await shard.inspector.totals(shard.queue)).completed).toBe(2);
  });

  it('repeats which outcomes gave way to a cancellation, and which jobs were lost', async () => {
    await shard.fill('A', 'B');
    const { claim } = await peer.claim(2);
    await shard.producer.cancel(shard.queue, 'A', { running: true });
    const retry: Settlement = { verb: 'retry', delayMs: HOUR, error: '{}' };
    const settle = ['A', 'stranger', 'B'].map((id) => [claim, id, retry] as const);
    const answer = { lost: ['stranger'], superseded: ['A'] };
    expect(await peer.step({ settle })).toMatchObject(answer);
    expect(await peer.again()).toMatchObject(answer);
    expect(await shard.see('A')).toEqual({ state: 'none' });
  });

  it('retries nothing twice', async () => {
    await shard.fill('A');
    const claim = await peer.take('A');
    await peer.settle(claim, 'A', { verb: 'retry', delayMs: HOUR, error: '{}' });
    const before = await shard.stored();
    expect((await peer.again()).lost).toEqual([]);
    expect(await shard.stored()).toEqual(before);
    expect(await shard.see('A')).toMatchObject({ attempts: 1 });
  });

  it('settles no run that began after it: the same id may be running again', async () => {
    await shard.fill('A');
    await peer.settle(await peer.take('A'), 'A', { verb: 'retry', delayMs: 0, error: '{}' });
    const other = shard.peer();
    await other.take('A');
    expect((await peer.again()).lost).toEqual([]);
    expect(await shard.see('A')).toMatchObject({ state: 'running', attempts: 1 });
  });

  it('answers the same lost list, ids with blanks included, and the same batch together', async () => {
    await shard.fill(' A ', 'B C');
    const { claim } = await peer.claim(1);
    const settle = [' x', 'y z', ' A '].map((id) => [claim - (id === ' A ' ? 0 : 1), id, COMPLETE] as const);
    const first = await peer.step({ settle, limit: 1 });
    expect(first.lost).toEqual([' x', 'y z']);
    const second = await peer.again();
    expect([second.lost, second.claim, idsOf(second)]).toEqual([first.lost, first.claim, ['B C']]);
  });

  it('takes nothing back a second time', async () => {
    await shard.fill('A', 'B');
    const { claim } = await peer.claim(1);
    await shard.expire(claim);
    const other = shard.peer();
    await other.step({ sweep: true, limit: 1 });
    expect(await shard.see('A')).toMatchObject({ state: 'quarantined' });
    const running = (await shard.read()).running['B']!;
    await shard.expire(running);
    await other.again();
    expect(await shard.see('B')).toMatchObject({ state: 'running' });
  });

  it('may do its work later when the first time found none', async () => {
    expect((await peer.claim(1)).jobs).toEqual([]);
    await shard.fill('A');
    expect(idsOf(await peer.again())).toEqual(['A']);
    expect(idsOf(await peer.again())).toEqual(['A']);
  });

  it('knows only its own session', async () => {
    await shard.fill('A', 'B');
    const sessions = [peer.newSession(), peer.newSession()];
    const first = await Promise.all(sessions.map((one) => peer.step({ limit: 1 }, one)));
    const second = await Promise.all(sessions.map((one) => peer.again(one)));
    expect(second.map(idsOf)).toEqual(first.map(idsOf));
    expect(Object.keys((await shard.read()).running)).toHaveLength(2);
  });
});

describe('a copy that was sent again and arrives late', () => {
  const sent = async (text: (now: number) => string, limit = 1) => {
    const args = peer.args({ limit });
    args[1] = text(await shard.now());
    return shard.run('step', peer.session.key, args);
  };

  it('of a step that found nothing finds that answer, once one of its copies asked that it be remembered', async () => {
    await sent(() => '7d');
    await shard.fill('A');
    await sent(() => '7');
    expect(await shard.see('A')).toMatchObject({ state: 'due' });
    await sent(() => '8');
    expect(await shard.see('A')).toMatchObject({ state: 'running' });
  });

  it('changes nothing after the time by which it had to arrive, also when its session is forgotten', async () => {
    await shard.fill('A');
    const before = await shard.stored();
    const late = await sent((now) => `7 ${now - 10_001} 10000`).catch(String);
    expect(late).toMatch(/DQLATE \d+/);
    expect(await shard.stored()).toEqual(before);
    await sent((now) => `7 ${now - 9_000} 10000d`);
    expect(await shard.see('A')).toMatchObject({ state: 'running' });
  });

  it('of a step that ran leaves in idle who entered with a later one', async () => {
    const step = (ask: Ask, text: string) => {
      const args = peer.args(ask);
      args[1] = text;
      return shard.run('step', peer.session.key, args);
    };
    const now = await shard.now();
    const busy = { limit: 0 };
    await step(busy, `7 ${now} 10000d`);
    await step({ limit: 1, refreshIdle: true, hasFreeSlots: true }, `8 ${now} 10000`);
    expect((await shard.read()).idle).toHaveProperty([peer.name]);
    await expect(step(busy, `7 ${now - 10_001} 10000`)).rejects.toThrow('DQLATE');
    expect((await shard.read()).idle).toHaveProperty([peer.name]);
  });

  it('is answered, however late, by what is remembered of it', async () => {
    const answer = await session.call('enqueue', ['', 'nd0', 'A', '\n1']);
    const args = [`${session.sequence} 1000 1000`, 'nd0', 'A', '\n1'];
    expect(await shard.run('enqueue', session.key, args)).toBe(answer);
  });

  it('makes no job of an enqueue', async () => {
    const late = shard.run('enqueue', session.key, [`1 ${(await shard.now()) - 2_000} 1000`, 'nd0', 'A', '\n1']);
    await expect(late).rejects.toThrow('DQLATE');
    expect(await shard.see('A')).toEqual({ state: 'none' });
  });

  it.each([
    { kind: 'a plain queue', group: undefined },
    { kind: 'a queue with groups', group: 'g' },
  ])('of an enqueue without an id keeps what was made meanwhile under its id, in $kind', async ({ group }) => {
    const made = (spec: string, ...jobs: [id: string, payload: string][]) =>
      place(shard, ...jobs.map(([id, payload]) => ({ id, spec, group, payload })));
    const plain = (spec: string, ...jobs: [id: string, payload: string][]) =>
      new TestSession(shard).call('enqueue', [0, ...jobs.flatMap(([id, text]) => [spec, id, `\n"${text}"`])]);
    const enqueue = group === undefined ? plain : made;
    await enqueue(`kd${HOUR}`, ['A', 'repeat']);
    await enqueue('nd0', ['A', 'late']);
    expect(await shard.see('A')).toMatchObject({ state: 'delayed', payload: 'repeat' });
    await shard.producer.runNow(shard.queue, 'A');
    await peer.take('A');
    await enqueue(`nd${HOUR}`, ['B', 'new'], ['A', 'late']);
    expect(await shard.see('A')).toEqual({ state: 'running', payload: 'repeat' });
    expect(await shard.see('B')).toMatchObject({ state: 'delayed', payload: 'new' });
  });

  it('finds a session that was left in doubt to be over', async () => {
    await shard.fill('A');
    await shard.run('leave', peer.session.key, [peer.name, 'd']);
    await expect(sent(() => '7')).rejects.toThrow('DQSTALE');
    expect(await shard.see('A')).toMatchObject({ state: 'due' });
  });
});

/** Each kind of call that goes through a session, on a world where it does something. */
const CALLS: Record<string, { before?: () => Promise<unknown>; call: () => Promise<unknown> }> = {
  'enqueue of a new job': { call: () => session.call('enqueue', [0, 'nd0', 'A', '\n1']) },
  'enqueue with replace': {
    before: () => shard.put('delayed', 'A'),
    call: () => session.call('enqueue', [0, 'pd0', 'A', '\n"new"', 'xd0', 'B', '\n1', 'xd0', 'B', '\n1']),
  },
  'enqueue with reschedule': {
    before: () => shard.put('dead', 'A'),
    call: () => session.call('enqueue', [0, 'rd0', 'A', '\n"new"']),
  },
  cancel: { before: () => shard.put('due', 'A'), call: () => session.call('cancel', [0, 'A', 0]) },
  'cancel while running': {
    before: () => shard.put('running', 'A'),
    call: () => session.call('cancel', [0, 'A', 1]),
  },
  reschedule: { before: () => shard.put('due', 'A'), call: () => session.call('reschedule', [0, 'A', 'd', HOUR, 0]) },
  'run now': { before: () => shard.put('delayed', 'A'), call: () => session.call('reschedule', [0, 'A', 'd', 0, 1]) },
  update: { before: () => shard.put('due', 'A'), call: () => session.call('update', [0, 'A', '', '\n"new"']) },
  signal: { before: () => shard.put('due', 'A'), call: () => session.call('signal', [0, 'A', '', '\n"new"']) },
  requeueDead: {
    before: () => shard.put('dead', 'A'),
    call: () => session.call('requeueDead', [0, 0, 1, 0, -1, '', '', 0, 1, 1, 'A']),
  },
  'removal of a dead letter': {
    before: () => shard.put('dead', 'A'),
    call: () => session.call('remove', [0, 'x', 200, -1, 'A']),
  },
  purge: { before: () => shard.put('due', 'A'), call: () => session.call('remove', [0, 'w', 200, -1]) },
  extend: {
    before: async () => void (await shard.meta({ claim: await shard.put('running', 'A') })),
    call: async () => session.call('extend', [0, (await shard.read()).running['A']!, 'A', HOUR]),
  },
};

describe.each(Object.keys(CALLS))('%s that is sent again', (name) => {
  const { before, call } = CALLS[name]!;

  it('answers the same and changes nothing', async () => {
    await before?.();
    const nothing = await shard.stored();
    const answer = await call();
    const changed = await shard.stored();
    expect(changed).not.toEqual(nothing);
    expect(await session.again()).toEqual(answer);
    expect(await session.again()).toEqual(answer);
    expect(await shard.stored()).toEqual(changed);
  });

  it('is refused when a later call of its session came first', async () => {
    await before?.();
    session.sequence = 5;
    await session.call('cancel', [0, 'somebody else', 0]);
    const untouched = await shard.stored();
    session.sequence = 4;
    await expect(call()).rejects.toThrow('DQSTALE');
    expect(await shard.stored()).toEqual(untouched);
  });
});

it('a step is refused when a later call of its session came first', async () => {
  await shard.fill('A', 'B');
  peer.session.sequence = 5;
  const claim = await peer.take('A');
  const before = await shard.stored();
  peer.session.sequence = 4;
  await expect(peer.step({ limit: 1, settle: [[claim, 'A', COMPLETE]] })).rejects.toThrow('DQSTALE');
  expect(await shard.stored()).toEqual(before);
});

describe('an enqueue that is sent again', () => {
  it('makes no second job, even when the first has completed already', async () => {
    const answer = await session.call('enqueue', [0, 'nd0', 'A', '\n1']);
    await peer.settle(await peer.take('A'), 'A', COMPLETE);
    expect(await session.again()).toBe(answer);
    expect(await shard.see('A')).toEqual({ state: 'none' });
    expect((await shard.inspector.totals(shard.queue)).enqueued).toBe(1);
  });

  it('makes no second job when the first was cancelled, died or expired', async () => {
    await session.call('enqueue', [0, ...['A', 'B', 'C'].flatMap((id) => ['kd0', id, '\n1'])]);
    const { claim } = await peer.claim(2);
    await peer.settle(claim, 'A', { verb: 'expired' });
    await peer.settle(claim, 'B', { verb: 'dead', reason: 'discarded', error: '{}', charge: true });
    await shard.producer.cancel(shard.queue, 'C');
    await session.again();
    expect(await Promise.all(['A', 'B', 'C'].map(async (id) => (await shard.see(id)).state))).toEqual([
      'none',
      'dead',
      'none',
    ]);
  });

  it('by another session under the same id is recognised while the job is kept', async () => {
    await session.call('enqueue', [0, 'kd0', 'A', '\n1']);
    const now = await shard.now();
    const due = (await shard.read()).due['A'];
    expect(await new TestSession(shard).call('enqueue', [0, 'kd0', 'A', '\n2'])).toMatch(
      new RegExp(`^\\d+ k d ${due}$`),
    );
    expect(due).toBeLessThanOrEqual(now);
    expect(await shard.see('A')).toMatchObject({ payload: 1 });
  });
});

describe('an enqueue that was refused and is sent again', () => {
  const refusals: [string, () => Promise<unknown>, () => Promise<unknown>, RegExp][] = [
    [
      'because publishing is paused',
      () => shard.inspector.pausePublishing(shard.queue),
      () => shard.inspector.resumePublishing(shard.queue),
      /^\d+ b - 0 =1$/,
    ],
    [
      'because the queue is full',
      () => shard.fill('X'),
      () => shard.producer.cancel(shard.queue, 'X'),
      /^\d+ f - \d+ f - \d+$/,
    ],
  ];

  it.each(refusals)('%s is refused once more, whatever has changed since', async (_, refuse, accept, answer) => {
    await refuse();
    const call = [0, 'kd0 - - - 1', 'A', '\n1', 'nd0 - - - 1', 'B', '\n1'];
    expect(await session.call('enqueue', call)).toMatch(answer);
    await accept();
    expect(await session.again()).toMatch(answer);
    expect(await shard.see('A')).toEqual({ state: 'none' });
    expect(await session.call('enqueue', call)).toMatch(/^\+?\d+ c - \d+ f - \d+$/);
  });

  it('was accepted before publishing was paused gets that answer', async () => {
    const first = await session.call('enqueue', [0, 'kd0', 'A', '\n1']);
    await shard.inspector.pausePublishing(shard.queue);
    expect(await session.again()).toBe(first);
    expect(await shard.see('A')).toMatchObject({ state: 'due' });
  });
});

describe('an answer says that a shard is new, so that its name must be written', () => {
  it('by the enqueue that makes it, to its copies as well, and by no later one', async () => {
    const first = await session.call('enqueue', [0, 'kd0', 'A', '\n1']);
    expect(first).toMatch(/^\+\d+ c - \d+$/);
    expect(await session.again()).toBe(first);
    expect(await session.call('enqueue', [0, 'kd0', 'B', '\n1'])).toMatch(/^\d+ c - \d+$/);
  });

  it('by the step that makes it, and by one of which a copy may have been the first', async () => {
    const peer = shard.peer();
    expect(await peer.step()).toMatchObject({ isNew: true });
    expect(await peer.step()).toMatchObject({ isNew: false });
    const args = peer.args();
    args[STEP_SEQUENCE_AT] = `${++peer.session.sequence}d`;
    expect(parseStep(await shard.run('step', peer.session.key, args))).toMatchObject({ isNew: true });
  });
});

describe('the memory of a session', () => {
  it('holds one answer and goes away by itself some time after the last call', async () => {
    await shard.fill('A');
    await peer.take('A');
    await peer.settle((await shard.read()).running['A']!, 'A', COMPLETE);
    expect(await here.world.redis.get(peer.session.key)).toBe('2 0 ');
    const ms = await here.world.redis.pttl(peer.session.key);
    expect(ms).toBeGreaterThan(500_000);
    expect(ms).toBeLessThanOrEqual(600_000);
  });

  it('is not written by a step that did nothing', async () => {
    await peer.step({ limit: 1, sweep: true });
    expect(await here.world.redis.exists(peer.session.key)).toBe(0);
  });

  it('is the only key with a time to live', async () => {
    await shard.put('quarantined', 'A');
    await shard.put('dead', 'B');
    await shard.producer.enqueue(shard.queue, 1, { id: 'C', uniqueFor: '1h', maxWait: '1h' });
    await peer.step({ limit: 1, refreshIdle: true, hasFreeSlots: true });
    const names = await here.world.keys(shard.queue);
    const lifetimes = await Promise.all(names.map((name) => here.world.redis.pttl(shard.key(name))));
    const mortal = names.filter((_, n) => lifetimes[n] !== -1);
    expect(mortal.length).toBeGreaterThan(0);
    expect(mortal.filter((name) => !name.startsWith('session:'))).toEqual([]);
  });

  it('goes when its process leaves', async () => {
    await shard.fill('A');
    const claim = await peer.take('A');
    await peer.leave();
    expect(await here.world.redis.exists(peer.session.key)).toBe(0);
    expect(await shard.see('A')).toMatchObject({ state: 'running' });
    expect((await peer.settle(claim, 'A', COMPLETE)).lost).toEqual([]);
  });
});
