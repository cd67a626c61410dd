import { describe, expect, it } from '@jest/globals';
import { DelayQueueLogger } from '../../lib/delay-queue.logger.js';
import type { OccurrenceHeader } from '../../lib/job/occurrence-header.js';
import { isMissed, OccurrenceGate } from '../../lib/recurring/occurrence-gate.js';
import { NoAnswerError, NotSentError } from '../../lib/redis/redis.errors.js';
import type { ShardStore } from '../../lib/redis/shard-store.js';

const NOW = 1_000_000;
const beginning = (rules: Partial<OccurrenceHeader>, more: object = {}) => ({
  id: '{s}1',
  at: NOW - 12_000,
  claim: 1,
  hasBegun: false,
  wasLost: false,
  dueAt: NOW - 10_000,
  givenDueAt: NOW - 10_000,
  now: NOW,
  rules: {
    next: NOW - 5_000,
    nextDue: NOW - 5_000,
    missed: 'once',
    graceMs: 20_000,
    overlap: 'skip',
    ...rules,
  } as OccurrenceHeader,
  ...more,
});

describe('an occurrence is missed', () => {
  it.each<[boolean, string, Partial<OccurrenceHeader>]>([
    [true, 'with `once` when the next one is due', {}],
    [false, 'with `once` while the next one is not due', { nextDue: NOW + 1 }],
    [false, 'with `once` when it is the last one', { nextDue: undefined }],
    [true, 'with `skip` after its grace', { missed: 'skip', graceMs: 9_999 }],
    [false, 'with `skip` within its grace', { missed: 'skip', graceMs: 10_000 }],
    [false, 'with `all`', { missed: 'all' }],
  ])('%s: %s', (missed, _, rules) => {
    expect(isMissed(beginning(rules))).toBe(missed);
  });

  it('never when it waits for a retry or was put off', () => {
    expect(isMissed(beginning({}, { hasBegun: true }))).toBe(false);
  });

  it('that an older library made, never when it was put off behind the next one, and with whichever policy', () => {
    expect(isMissed(beginning({}, { givenDueAt: NOW - 5_000 }))).toBe(false);
    expect(isMissed(beginning({}, { givenDueAt: NOW - 5_001 }))).toBe(true);
    expect(isMissed(beginning({ missed: 'skip', graceMs: 1 }, { givenDueAt: NOW - 5_000 }))).toBe(false);
  });

  it('never when it is due at another moment than it was made for, also before the next one', () => {
    const made = { dueAfterMs: 2_000 };
    expect(isMissed(beginning(made))).toBe(true);
    expect(isMissed(beginning(made, { givenDueAt: NOW - 10_001 }))).toBe(false);
    expect(isMissed(beginning(made, { givenDueAt: NOW - 6_000 }))).toBe(false);
    expect(isMissed(beginning({ ...made, missed: 'skip', graceMs: 1 }, { givenDueAt: NOW - 6_000 }))).toBe(false);
  });

  it('all the same when it is one whose process died, unless several may run at once: then nobody knows whether it had begun', () => {
    expect(isMissed(beginning({}, { wasLost: true }))).toBe(true);
    expect(isMissed(beginning({ overlap: 'allow' }, { wasLost: true }))).toBe(false);
    expect(isMissed(beginning({ overlap: 'allow' }))).toBe(true);
  });
});

// A real store answers too soon for anybody to see it: one in some hundred sequences of the model did.
describe('occurrences of one answer', () => {
  /** A store in which none of the later occurrences is there, and the schedule is gone. */
  function gateOf(asked: string[]): OccurrenceGate {
    const call = async (script: string, [, id, , what]: unknown[]) => {
      if (script === 'schedules') return [NOW];
      asked.push(`${id as string} ${what as string}`);
      await new Promise((resolve) => setImmediate(resolve));
      return what === 'm' && asked.length === 1 ? 'n' : 'g';
    };
    const connection = { movedMs: 0, instance: 'test' };
    const store = { connection, queue: 'q', call } as unknown as ShardStore;
    return new OccurrenceGate(store, DelayQueueLogger.of('test'));
  }
  const late = { ...beginning({}), id: '{s}1' };
  const punctual = { ...beginning({ nextDue: NOW + 1 }), id: '{s}2' };

  it('begin in their order: a later one waits until an earlier one, which is late, has asked all that it has to ask', async () => {
    const asked: string[] = [];
    const gate = gateOf(asked);
    const outcomes = await Promise.all([gate.begin(late), gate.begin(punctual)]);
    expect(asked).toEqual(['{s}1 m', '{s}1 m', '{s}2 s']);
    expect(outcomes).toEqual([undefined, undefined]);
    gate.end();
  });

  it('wait for no other schedule', async () => {
    const asked: string[] = [];
    const gate = gateOf(asked);
    await Promise.all([gate.begin(late), gate.begin({ ...punctual, id: '{t}2' })]);
    expect(asked.slice(0, 2)).toEqual(['{s}1 m', '{t}2 s']);
    gate.end();
  });
});

// A process whose connections last for a few calls gave it back, and took it again in the same call, while others were idle.
describe('an occurrence of which Redis does not answer whether it may begin', () => {
  /** A store that answers `g` after so many calls got no answer, of which each took a while. */
  function gateOf(unanswered: Error[], asked: string[], tookMs = 0): OccurrenceGate {
    const call = async (_: string, [, , , what]: unknown[]) => {
      asked.push(what as string);
      const error = unanswered.shift();
      if (!error) return 'g';
      await new Promise((resolve) => setTimeout(resolve, tookMs));
      throw error;
    };
    const connection = { movedMs: 0, instance: 'test' };
    return new OccurrenceGate({ connection, queue: 'q', call } as unknown as ShardStore, DelayQueueLogger.of('test'));
  }
  const noAnswer = () => new NoAnswerError('closed');
  const punctual = beginning({ missed: 'all' });

  it('is asked for again, and begins', async () => {
    const asked: string[] = [];
    expect(await gateOf([noAnswer(), new NotSentError()], asked).begin(punctual)).toBeUndefined();
    expect(asked).toEqual(['s', 's', 's']);
  });

  it('is judged anew: by then it may be missed', async () => {
    const asked: string[] = [];
    const rules = { missed: 'skip', graceMs: 10_010 } as const;
    expect(await gateOf([noAnswer()], asked, 30).begin(beginning(rules))).toBeUndefined();
    expect(asked).toEqual(['s', 'm']);
  });

  it('goes on being the one that a later one waits for, also where it is missed only when it is asked for again', async () => {
    const asked: string[] = [];
    const gate = gateOf([noAnswer()], asked, 30);
    const rules = { nextDue: NOW + 10, next: undefined };
    const first = gate.begin(beginning(rules));
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([first, gate.begin(beginning({ missed: 'once', nextDue: NOW + 60_000 }, { id: '{s}2' }))]);
    expect(asked).toEqual(['s', 'm', 's']);
  });

  it('goes back at once where several may run: a late copy of the question would end one that has begun by the repeat', async () => {
    const asked: string[] = [];
    const outcome = await gateOf([noAnswer()], asked).begin(beginning({ overlap: 'allow' }));
    expect(outcome).toMatchObject({ kind: 'released', restMs: 1_000 });
    expect(asked).toEqual(['m']);
  });

  it('goes back when it was asked for three times, or something else is wrong, and rests for a second', async () => {
    for (const errors of [[noAnswer(), noAnswer(), noAnswer()], [new Error('NOPERM')]]) {
      const asked: string[] = [];
      const { length } = errors;
      const outcome = await gateOf(errors, asked, 20).begin(punctual);
      expect(outcome).toEqual({ kind: 'released', restMs: 1_000, unbegun: true });
      expect(asked).toHaveLength(length);
    }
  });
});
