import { describe, expect, it, jest } from '@jest/globals';
import { Cron } from 'croner';
import { timesOf } from '../../lib/recurring/occurrence-times.js';
import type { Rhythm } from '../../lib/recurring/occurrence-times.js';
import type { ScheduleDefinition, ScheduleRecord } from '../../lib/recurring/schedule-record.js';
import { planTick } from '../../lib/recurring/tick-plan.js';
import type { TickPlan } from '../../lib/recurring/tick-plan.js';

const DAY = 86_400_000;
const HOUR = 3_600_000;
const START = Date.UTC(2027, 2, 1, 7, 12, 5);

const PLAIN: ScheduleDefinition = {
  cron: null,
  timeZone: null,
  everyMs: null,
  from: null,
  until: null,
  limit: null,
  jitterMs: 0,
  missed: 'once',
  graceMs: 60_000,
  most: 1_000,
  overlap: 'skip',
  expiresInMs: null,
  place: null,
};

function recordOf(definition: Partial<ScheduleDefinition>, last: number, made = 0): ScheduleRecord {
  const state = {
    revision: 1,
    anchor: START,
    last,
    made,
    recent: [],
    zoneData: '',
    owner: 'call',
    paused: false,
  } as const;
  return { definition: { ...PLAIN, ...definition }, state, content: '' };
}

/** Ticks until nothing is left to be done, each from what the last one has written. */
async function caughtUp(
  definition: Partial<ScheduleDefinition>,
  rhythm: Rhythm,
  last: number,
  now: number,
  content = '',
) {
  const times = await timesOf(rhythm, '');
  const plans: TickPlan[] = [];
  for (let record = { ...recordOf(definition, last), content }; ;) {
    const plan = await planTick('s', record, times, now);
    plans.push(plan);
    record = { ...record, state: plan.state };
    if (plan.tick > now) break;
  }
  const occurrences = plans.flatMap((plan) => plan.occurrences);
  const missed = plans.reduce((sum, plan) => sum + (plan.missed?.count ?? 0), 0);
  const { first } = plans.find((plan) => plan.missed)?.missed ?? {};
  const latest = plans.findLast((plan) => plan.missed)?.missed?.last;
  return { plans, occurrences, missed, first, last: latest, made: plans.at(-1)!.state.made };
}

/** The same, told from all times one by one. */
async function expected(definition: Partial<ScheduleDefinition>, rhythm: Rhythm, last: number, now: number) {
  const { missed, most, limit, until, graceMs } = { ...PLAIN, ...definition };
  const times = await timesOf(rhythm, '');
  const next = (after: number) => times.next(after);
  const past: number[] = [];
  for (let at = next(last)!; at <= Math.min(now, until ?? now) && past.length < (limit ?? Infinity); at = next(at)!)
    past.push(at);
  const isOver = (at: number) => at + Math.min(graceMs, next(at)! - at) < now;
  const given = missed === 'once' ? past.slice(0, -1) : missed === 'all' ? past.slice(0, -most) : past.filter(isOver);
  return { missed: given.length, first: given[0], last: given.at(-1) };
}

const EACH_SECOND = { cron: '* * * * * *', timeZone: 'Europe/Berlin' } as const;

describe('after 90 days without a worker, a cron of each second', () => {
  it.each([
    ['once', 1],
    // Nobody is late for one whose time ends just now.
    ['skip', 2],
  ] as const)("with missed: '%s' counts what was missed and computes hardly any of it", async (missed, left) => {
    const now = START + 90 * DAY;
    const times = await timesOf(EACH_SECOND, '');
    const computed = jest.spyOn(Cron.prototype, 'nextRun');
    const plan = await planTick('s', recordOf({ missed }, START), times, now);
    const last = now - left * 1_000;
    expect(plan.missed).toEqual({ count: 90 * 86_400 - left, first: START + 1_000, last });
    expect(plan.occurrences[0]!.at).toBe(last + 1_000);
    expect(computed.mock.calls.length).toBeLessThan(1_000);
    computed.mockRestore();
  });

  it("with missed: 'all' counts those before the latest `most`, and makes these, a hundred a tick", async () => {
    const now = START + 90 * DAY;
    const definition = { missed: 'all', most: 250 } as const;
    const { plans, missed, first, last, occurrences } = await caughtUp(definition, EACH_SECOND, START, now);
    expect({ missed, first, last }).toEqual({
      missed: 90 * 86_400 - 250,
      first: START + 1_000,
      last: now - 250_000,
    });
    expect(plans.map((plan) => plan.occurrences.length)).toEqual([100, 100, 100, 10]);
    expect(occurrences.map(({ at }) => at)).toEqual(Array.from({ length: 310 }, (_, n) => now + (n - 249) * 1_000));
  });

  it('lets others have their turn while it is counted', async () => {
    let turns = 0;
    let isOver = false;
    const take = () => {
      turns++;
      if (!isOver) setImmediate(take);
    };
    setImmediate(take);
    const later = START + 1_000 * DAY;
    const times = await timesOf(EACH_SECOND, '');
    const { missed } = await planTick('s', recordOf({}, START), times, later);
    isOver = true;
    expect(missed!.count).toBe(1_000 * 86_400 - 1);
    expect(turns).toBeGreaterThan(20);
  });
});

describe('with a payload of 255 KB', () => {
  const LARGE = 'x'.repeat(255 * 1024);
  const SECOND = { everyMs: 1_000, anchor: START };

  it('a tick has a megabyte at most, and the next ticks make the same times as with a small one', async () => {
    const small = await caughtUp({}, SECOND, START, START);
    const large = await caughtUp({}, SECOND, START, START, LARGE);
    expect(large.plans.slice(0, 3).map(({ occurrences, tick }) => [occurrences.length, tick])).toEqual([
      [4, START],
      [4, START],
      [4, START],
    ]);
    expect(large.occurrences).toEqual(small.occurrences);
    expect(large.made).toBe(small.made);
  });

  it('one of two megabytes is made one at a time', async () => {
    const { plans } = await caughtUp({ limit: 3 }, SECOND, START, START, LARGE.repeat(8));
    expect(plans.map(({ occurrences }) => occurrences.length).filter((count) => count > 0)).toEqual([1, 1, 1]);
  });
});

describe('what a tick counts as missed is what a look at each time says', () => {
  const rhythms: Rhythm[] = [
    { cron: '0 */3 * * *', timeZone: 'Europe/Berlin' },
    { cron: '15,45 1-3 * * *', timeZone: 'Europe/Berlin' },
    { cron: '30 0 * * 1-5', timeZone: 'Africa/Cairo' },
    { everyMs: 7 * 60_000, anchor: START },
  ];
  const policies: Partial<ScheduleDefinition>[] = [
    { missed: 'once' },
    { missed: 'skip', graceMs: 90 * 60_000 },
    { missed: 'all', most: 20 },
    { missed: 'once', limit: 37 },
    { missed: 'once', until: START + 15 * DAY },
    { missed: 'skip', until: START + 15 * DAY },
    { missed: 'all', most: 3, limit: 21 },
  ];
  it.each(rhythms)('of $cron $everyMs', async (rhythm) => {
    const now = START + 31 * DAY + 5 * HOUR;
    for (const policy of policies) {
      const { missed, first, last, made, occurrences } = await caughtUp(policy, rhythm, START, now);
      expect({ policy, missed, first, last }).toEqual({ policy, ...(await expected(policy, rhythm, START, now)) });
      expect(made).toBe(missed + occurrences.length);
    }
  });

  it('also with a jitter: nothing is given up that may still begin, and nothing is left out', async () => {
    for (const missed of ['once', 'skip'] as const) {
      const rhythm = { cron: '* 2 * * *', timeZone: 'UTC' };
      const definition = { missed, jitterMs: 2 * HOUR };
      const now = Date.UTC(2027, 2, 4, 2, 59, 30);
      const { plans, occurrences, ...counted } = await caughtUp(definition, rhythm, START, now);
      expect(plans).toHaveLength(1);
      const past = occurrences.filter(({ at }) => at <= now);
      expect(past.length).toBeLessThan(3);
      expect(counted.missed + past.length).toBe(3 * 60);
    }
  });
});

it('of those that an outage has missed the latest one is made that was not cancelled', async () => {
  const times = await timesOf({ everyMs: HOUR, anchor: START }, '');
  const record = recordOf({ everyMs: HOUR }, START);
  const state = { ...record.state, over: [START + 3 * HOUR, START + 4 * HOUR] };
  const { occurrences, missed } = await planTick('s', { ...record, state }, times, START + 4.5 * HOUR);
  expect(occurrences.map(({ at }) => (at - START) / HOUR)).toEqual([2, 5]);
  expect(missed).toMatchObject({ count: 1, first: START + HOUR });
});
