import { describe, expect, it } from '@jest/globals';
import { channels } from '../../../lib/delay-queue.channels.js';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { channelName } from '../../../lib/delay-queue.channels.js';
import type { OccurrencesSkippedMessage } from '../../../lib/delay-queue.channels.js';
import { fixed, InvalidIdError, InvalidOptionError } from '../../../lib/index.js';
import type { ScheduleSnapshot } from '../../../lib/index.js';
import { DAY, HOUR, hoursOf, iso, scheduling, START } from '../../helpers/scheduling.js';

const { boot, start } = scheduling();

describe('recurring jobs', () => {
  it('run at the times of their schedule, with its payload, and know the next time', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    const made = await producer.schedule(
      'report',
      'daily',
      { cron: '0 9 * * *', timeZone: 'Europe/Berlin' },
      { to: 'a' },
    );
    expect(made).toEqual({ id: 'daily', queue: 'report', outcome: 'created', next: new Date('2027-01-01T08:00:00Z') });
    await harness.advance('3d');
    expect(runs.map(({ at, payload }) => [at, payload])).toEqual([
      ['2027-01-01T08:00:00.000Z', { to: 'a' }],
      ['2027-01-02T08:00:00.000Z', { to: 'a' }],
      ['2027-01-03T08:00:00.000Z', { to: 'a' }],
    ]);
    expect(runs[0]!.job.schedule).toEqual({
      id: 'daily',
      at: new Date('2027-01-01T08:00:00Z'),
      next: new Date('2027-01-02T08:00:00Z'),
    });
  });

  it('advance() runs a year of occurrences, each once and in its time zone', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    await producer.schedule('report', 'gap', { cron: '30 2 * * *', timeZone: 'Europe/Berlin' }, null);
    await producer.schedule('report', 'grid', { every: '3d' }, null);
    await harness.advance('1y');
    expect(iso(harness.now.getTime())).toBe(iso(START + 365 * DAY));
    const gap = runs.filter(({ job }) => job.schedule!.id === 'gap').map(({ at }) => at);
    expect(gap).toHaveLength(365);
    expect(gap).toContain('2027-03-28T01:00:00.000Z');
    expect(gap.filter((at) => at.startsWith('2027-10-31'))).toEqual(['2027-10-31T00:30:00.000Z']);
    const grid = runs.filter(({ job }) => job.schedule!.id === 'grid').map(({ at }) => at);
    expect(grid).toEqual(Array.from({ length: 121 }, (_, n) => iso(START + (n + 1) * 3 * DAY)));
  });

  it('after an outage the latest one runs, and those before it are counted and told', async () => {
    const messages: OccurrencesSkippedMessage[] = [];
    const listen = (message: unknown) => void messages.push(message as OccurrencesSkippedMessage);
    subscribe(channelName('occurrencesSkipped'), listen);
    try {
      const { harness, producer, runs } = await start(() => undefined);
      await producer.schedule('report', 'hourly', { every: '1h' }, null);
      await harness.setNow(START + 5.5 * HOUR);
      await harness.advance('10m');
      expect(runs.map(({ job }) => job.schedule!.at.getTime() - START)).toEqual([5 * HOUR]);
      const [schedule] = (await producer.listSchedules('report')).schedules;
      expect(schedule).toMatchObject({ id: 'hourly', counts: { missed: 4, overlapped: 0 } });
      expect(messages.reduce((sum, { count }) => sum + count, 0)).toBe(4);
    } finally {
      unsubscribe(channelName('occurrencesSkipped'), listen);
    }
    expect(channels.occurrencesSkipped.hasSubscribers).toBe(false);
  });

  it('of each second that 90 days without a worker have missed are counted and told at once', async () => {
    const messages: OccurrencesSkippedMessage[] = [];
    const listen = (message: unknown) => void messages.push(message as OccurrencesSkippedMessage);
    subscribe(channelName('occurrencesSkipped'), listen);
    try {
      const { harness, producer, inspector, runs } = await start(() => undefined);
      for (const missed of ['once', 'skip'] as const) {
        await producer.schedule('report', missed, { cron: '* * * * * *', timeZone: 'Europe/Berlin' }, null, { missed });
      }
      await harness.setNow(START + 90 * DAY);
      await harness.advance('2s');
      const { schedules } = await producer.listSchedules('report');
      const seconds = 90 * 86_400;
      for (const { id, counts } of schedules) {
        const ran = runs.filter(({ job }) => job.schedule!.id === id).length;
        expect(ran).toBeLessThan(6);
        // All are made a minute ahead, and two of these were due since.
        expect([id, counts.missed + ran + 58]).toEqual([id, counts.made - counts.overlapped]);
        expect([id, counts.missed >= seconds - 2, counts.missed <= seconds]).toEqual([id, true, true]);
        const said = messages.filter(({ schedule, reason }) => schedule === id && reason === 'missed');
        expect([id, said.reduce((sum, { count }) => sum + count, 0)]).toEqual([id, counts.missed]);
      }
      const skipped = schedules.reduce((sum, { counts }) => sum + counts.missed + counts.overlapped, 0);
      expect(await inspector.totals('report')).toMatchObject({ skipped });
    } finally {
      unsubscribe(channelName('occurrencesSkipped'), listen);
    }
  });

  it("missed: 'all' runs every one, up to `most`", async () => {
    const { harness, producer, runs } = await start(() => undefined);
    await producer.schedule('report', 'all', { every: '1h' }, null, { missed: 'all', most: 300, overlap: 'allow' });
    await harness.setNow(START + 500.5 * HOUR);
    await harness.advance('1m');
    const hours = runs.map(({ job }) => (job.schedule!.at.getTime() - START) / HOUR).sort((a, b) => a - b);
    // The first one was stored already when the outage began.
    expect(hours).toEqual([1, ...Array.from({ length: 300 }, (_, n) => n + 201)]);
    const [schedule] = (await producer.listSchedules('report')).schedules;
    expect(schedule!.counts).toEqual({ made: 501, missed: 199, overlapped: 0 });
  });

  it("missed: 'skip' runs none that is later than `grace`", async () => {
    const { harness, producer, runs } = await start(() => undefined);
    await producer.schedule('report', 'skip', { every: '1h' }, null, { missed: 'skip', grace: '10m' });
    await harness.setNow(START + 3.5 * HOUR);
    await harness.advance('1h');
    expect(runs.map(({ at }) => at)).toEqual([iso(START + 4 * HOUR)]);
    await harness.setNow(START + 5 * HOUR + 5 * 60_000);
    await harness.runDue();
    await harness.advance('1s');
    expect(runs.map(({ job }) => job.schedule!.at.getTime() - START)).toEqual([4 * HOUR, 5 * HOUR]);
    expect((await producer.listSchedules('report')).schedules[0]!.counts.missed).toBe(3);
  });

  it("overlap: 'skip' leaves out what comes due while the last one is not over, and counts it", async () => {
    let failures = 2;
    const { harness, producer, runs } = await start(
      () => {
        if (failures-- > 0) throw new Error('not yet');
      },
      { backoff: fixed('50m') },
    );
    await producer.schedule('report', 's', { every: '30m' }, null);
    await harness.advance('3h');
    const hours = runs.map(({ at, job }) => [(Date.parse(at) - START) / 60_000, job.attempt]);
    // The first one fails at 30 and 80, and succeeds at 130 minutes; 60, 90 and 120 are left out.
    expect(hours).toEqual([
      [30, 1],
      [80, 2],
      [130, 3],
      [150, 1],
      [180, 1],
    ]);
    expect((await producer.listSchedules('report')).schedules[0]!.counts).toMatchObject({ missed: 0, overlapped: 3 });
  });

  it("overlap: 'queue' lets the newest one wait until the last one is over", async () => {
    let failures = 2;
    const { harness, producer, runs } = await start(
      () => {
        if (failures-- > 0) throw new Error('not yet');
      },
      { backoff: fixed('50s') },
    );
    await producer.schedule('report', 'q', { every: '30s' }, null, { overlap: 'queue' });
    await harness.advance('149s');
    expect(runs.map(({ job }) => (job.schedule!.at.getTime() - START) / 1_000)).toEqual([30, 30, 30, 120]);
  });

  it("overlap: 'queue': what waits counts for no rate, however often it asks", async () => {
    let failures = 1;
    const { harness, producer, inspector, runs } = await start(
      (payload) => {
        if (payload === 'q' && failures-- > 0) throw new Error('not yet');
      },
      { backoff: fixed('10m') },
    );
    await inspector.setLimits('report', { rateLimit: { max: 5, per: '1h' } });
    await producer.schedule('report', 'q', { every: '1m' }, 'q', { overlap: 'queue', limit: 2 });
    await harness.advance('5m');
    for (const payload of ['a', 'b', 'c']) await producer.enqueue('report', payload);
    await harness.runDue();
    expect(runs.map(({ payload }) => payload)).toEqual(['q', 'a', 'b', 'c']);
  });

  it.each(['pauseSchedule', 'unschedule'] as const)("overlap: 'queue': what waits goes with %s()", async (call) => {
    let failures = 1;
    const { harness, producer, runs } = await start(
      () => {
        if (failures-- > 0) throw new Error('not yet');
      },
      { backoff: fixed('50s') },
    );
    await producer.schedule('report', 'q', { every: '30s' }, null, { overlap: 'queue' });
    await harness.advance('75s');
    await producer[call]('report', 'q');
    await harness.advance('1h');
    expect(runs.map(({ job }) => (job.schedule!.at.getTime() - START) / 1_000)).toEqual([30, 30]);
  });

  it.each(['skip', 'queue', 'allow'] as const)(
    'that are requeued or put off all run, with overlap: %p',
    async (overlap) => {
      let fails = true;
      const { harness, producer, inspector, runs } = await start(
        () => {
          if (fails) throw new Error('not yet');
        },
        { attempts: 1 },
      );
      await producer.schedule('report', 's', { every: '1h' }, null, { overlap });
      await harness.advance('3h');
      fails = false;
      const [, , , four] = Array.from({ length: 4 }, (_, n) => `{s}${(START + (n + 1) * HOUR).toString(36)}`);
      await producer.reschedule('report', four!, { delay: '150m' });
      await harness.advance('70m');
      expect(runs).toHaveLength(3);
      expect(await inspector.requeueDead('report', 'all')).toMatchObject({ requeued: 3 });
      await harness.advance('10m');
      await harness.advance('2h');
      const times = runs.slice(3).map(({ job }) => (job.schedule!.at.getTime() - START) / HOUR);
      expect(new Set(times.slice(0, 3))).toEqual(new Set([1, 2, 3]));
      expect(times.slice(3)).toEqual([5, 4, 6]);
    },
  );

  it.each(['once', 'skip'] as const)(
    'that are requeued or put off before the next one is due run also when they are claimed after it: %p',
    async (missed) => {
      let fails = true;
      const { harness, producer, inspector, runs } = await start(
        () => {
          if (fails) throw new Error('not yet');
        },
        { attempts: 1 },
      );
      await producer.schedule('report', 's', { every: '1h' }, null, { missed, overlap: 'allow' });
      await harness.advance('61m');
      fails = false;
      expect(await inspector.requeueDead('report', 'all')).toMatchObject({ requeued: 1 });
      await producer.reschedule('report', `{s}${(START + 2 * HOUR).toString(36)}`, { delay: '61m' });
      await harness.setNow(START + 3.5 * HOUR);
      await harness.runDue();
      expect(hoursOf(runs.slice(1)).sort((a, b) => a - b)).toEqual(missed === 'once' ? [1, 2, 3] : [1, 2]);
    },
  );

  it.each(['all', 'once'] as const)(
    'that an outage has missed are not lost when the schedule changes before they are made: %p',
    async (missed) => {
      const { harness, producer, runs } = await start(() => undefined);
      const options = { missed, overlap: 'allow' } as const;
      await producer.schedule('report', 's', { every: '1h' }, 'old', options);
      await harness.setNow(START + 250.5 * HOUR);
      await producer.schedule('report', 's', { every: '1h' }, 'new', options);
      await harness.advance('1h');
      const times = runs.map(({ job, payload }) => [(job.schedule!.at.getTime() - START) / HOUR, payload]);
      const old = Array.from({ length: 250 }, (_, n) => [n + 1, 'old']);
      expect(times).toEqual([...(missed === 'all' ? old : old.slice(-1)), [251, 'new']]);
      const [{ counts }] = (await producer.listSchedules('report')).schedules as [ScheduleSnapshot];
      expect(counts.missed).toBe(missed === 'all' ? 0 : 249);
    },
  );

  it.each(['once', 'skip', 'all'] as const)(
    'that an outage has missed count as missed when their schedule is paused before that was noted: %p',
    async (missed) => {
      const { harness, producer, inspector, runs } = await start(() => undefined);
      const messages: OccurrencesSkippedMessage[] = [];
      const listen = (message: unknown) => void messages.push(message as OccurrencesSkippedMessage);
      subscribe(channelName('occurrencesSkipped'), listen);
      try {
        await producer.schedule('report', 's', { every: '1h' }, null, { missed, limit: 8 });
        await harness.setNow(START + 5.5 * HOUR);
        expect(await producer.pauseSchedule('report', 's')).toMatchObject({ outcome: 'paused' });
        expect(await producer.pauseSchedule('report', 's')).toMatchObject({ outcome: 'kept' });
      } finally {
        unsubscribe(channelName('occurrencesSkipped'), listen);
      }
      // The first one was made, and the pause took it back.
      expect(messages).toMatchObject([
        { schedule: 's', reason: 'missed', count: 5, first: START + HOUR, last: START + 5 * HOUR },
      ]);
      const [{ counts }] = (await producer.listSchedules('report')).schedules as [ScheduleSnapshot];
      expect(counts).toEqual({ made: 5, missed: 5, overlapped: 0 });
      expect((await inspector.totals('report')).skipped).toBe(5);
      await producer.resumeSchedule('report', 's');
      await harness.advance('1d');
      expect(hoursOf(runs)).toEqual([6, 7, 8]);
    },
  );

  it.each(['cancelled', 'taken back by a change'] as const)(
    'that are late run all the same when no later one is there: it was %s',
    async (how) => {
      const { harness, producer, runs } = await start(() => undefined);
      const timeOf = (second: number) => START + second * 1_000;
      await producer.schedule('report', 's', { every: '20s' }, null);
      if (how === 'cancelled') {
        for (const second of [40, 60]) await producer.cancel('report', `{s}${timeOf(second).toString(36)}`);
      } else {
        await harness.setNow(timeOf(30));
        await producer.schedule('report', 's', { cron: '0 0 1 1 *' }, null);
      }
      await harness.setNow(timeOf(70));
      await harness.runDue();
      expect(runs.map(({ job }) => job.schedule!.at.getTime())).toEqual([timeOf(20)]);
      const [{ counts }] = (await producer.listSchedules('report')).schedules as [ScheduleSnapshot];
      expect(counts.missed).toBe(0);
    },
  );

  it.each(['skip', 'allow'] as const)(
    'that are late give way to a later one also when their schedule has got other times since (overlap: %s)',
    async (overlap) => {
      const { harness, producer, runs } = await start(() => undefined);
      await producer.schedule('report', 's', { cron: '0 * * * *' }, null, { overlap });
      await harness.setNow(START + 25.5 * HOUR);
      await producer.schedule('report', 's', { every: '2h' }, null, { overlap });
      // What it was told then does not make it forget what it was before.
      await producer.schedule('report', 's', { every: '2h' }, 'another payload', { overlap });
      await harness.runDue();
      expect(runs.map(({ job }) => job.schedule!.at.getTime() - START)).toEqual([25 * HOUR]);
      const [{ counts }] = (await producer.listSchedules('report')).schedules as [ScheduleSnapshot];
      expect(counts).toMatchObject({ missed: 24, overlapped: 0 });
    },
  );

  it.each([
    ['other times', [{ cron: '0 0 1 1 *' }]],
    ['a grid that begins in that very millisecond', [{ every: '3h' }]],
    ['such a grid, and then another one', [{ every: '3h' }, { every: '4h' }]],
  ] as const)(
    'that are late give way to no triggered one, also when their schedule has got other times since: %s',
    async (_, changes) => {
      const { harness, producer, runs } = await start(() => undefined);
      await producer.schedule('report', 's', { every: '1h' }, null, { overlap: 'allow' });
      await harness.setNow(START + 1.25 * HOUR);
      await producer.triggerSchedule('report', 's');
      for (const times of changes) {
        await producer.schedule('report', 's', times, null, { overlap: 'allow' });
        await harness.setNow(harness.now.getTime() + HOUR / 4);
      }
      await harness.setNow(START + 2.5 * HOUR);
      await harness.runDue();
      expect(hoursOf(runs).sort((a, b) => a - b)).toEqual([1, 1.25]);
    },
  );

  it.each(['before', 'after'] as const)(
    'that began before their time keep it: what is triggered then gets the next millisecond, %s the schedule was looked at',
    async (when) => {
      const { harness, producer } = await start(() => {
        throw new Error('It is tried again.');
      });
      const options = { attempts: 2, backoff: fixed('10h') };
      await producer.schedule('report', 's', { every: '1h' }, null, options);
      const id = `{s}${(START + HOUR).toString(36)}`;
      await producer.runNow('report', id);
      await harness.runDue();
      // It is no time of the schedule any more.
      await producer.schedule('report', 's', { every: '1h' }, null, { ...options, from: new Date(START + HOUR / 2) });
      await harness.setNow(START + HOUR);
      if (when === 'after') await harness.runDue();
      expect(await producer.triggerSchedule('report', 's')).toBe(`{s}${(START + HOUR + 1).toString(36)}`);
    },
  );

  it('of a backfill stay when a pause is repeated, also where several were triggered in the millisecond of that pause', async () => {
    const { harness, producer } = await start();
    await producer.schedule('report', 's', { every: '1h' }, null, { from: new Date(START - 4.5 * HOUR) });
    for (let n = 0; n < 3; n++) await producer.triggerSchedule('report', 's');
    await producer.pauseSchedule('report', 's');
    expect(await producer.backfillSchedule('report', 's', { from: START - 3 * HOUR, to: START })).toBe(3);
    // To change it does not make it forget when it was paused.
    await producer.schedule('report', 's', { every: '1h' }, 1, { from: new Date(START - 4.5 * HOUR) });
    await producer.pauseSchedule('report', 's');
    expect(await harness.enqueued('report')).toHaveLength(3);
  });

  it('that nobody has made count as missed by a pause also while their jitter lasts', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    await producer.schedule('report', 's', { every: '1h' }, null, { jitter: '50m', missed: 'all', limit: 8 });
    await harness.setNow(START + 5 * HOUR + 1);
    await producer.pauseSchedule('report', 's');
    const [{ counts }] = (await producer.listSchedules('report')).schedules as [ScheduleSnapshot];
    expect(counts).toEqual({ made: 5, missed: 5, overlapped: 0 });
    await producer.resumeSchedule('report', 's');
    await harness.advance('1d');
    expect(hoursOf(runs)).toEqual([6, 7, 8]);
  });

  it.each(['pauseSchedule', 'unschedule'] as const)(
    'that somebody has put off go with %s, also behind many that were made since',
    async (call) => {
      const { harness, producer, inspector } = await start();
      await producer.schedule('report', 's', { every: '1h' }, null, { missed: 'all' });
      await producer.reschedule('report', `{s}${(START + HOUR).toString(36)}`, { delay: '9d' });
      await harness.advance('2d');
      expect((await inspector.counts('report')).delayed).toBe(2);
      await producer[call]('report', 's');
      expect((await inspector.counts('report')).delayed).toBe(0);
    },
  );

  it('pause, resume, trigger and backfill', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    await producer.schedule('report', 's', { every: '1h' }, 'x');
    expect(await producer.pauseSchedule('report', 's')).toMatchObject({ outcome: 'paused', next: undefined });
    await harness.advance('5h');
    expect(runs).toEqual([]);
    const id = await producer.triggerSchedule('report', 's');
    await harness.runDue();
    expect(runs.map((run) => [run.id, run.payload])).toEqual([[id, 'x']]);
    expect(await producer.resumeSchedule('report', 's')).toMatchObject({
      outcome: 'resumed',
      next: new Date(START + 6 * HOUR),
    });
    expect(await producer.backfillSchedule('report', 's', { from: START + HOUR, to: START + 4 * HOUR })).toBe(4);
    await harness.advance('1h');
    const at = runs.slice(1).map(({ job }) => (job.schedule!.at.getTime() - START) / HOUR);
    expect(at.sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 6]);
  });

  it('are triggered as often as asked, however many at one moment', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    await producer.schedule('report', 's', { cron: '0 0 1 6 *' }, 'x', { overlap: 'allow' });
    const ids: (string | undefined)[] = [];
    for (let n = 0; n < 120; n++) ids.push(await producer.triggerSchedule('report', 's'));
    await producer.schedule('report', 's', { cron: '0 0 1 7 *' }, 'y', { overlap: 'allow' });
    for (let n = 0; n < 120; n++) ids.push(await producer.triggerSchedule('report', 's'));
    expect(new Set(ids).size).toBe(240);
    await harness.runDue();
    expect(new Set(runs.map(({ id }) => id))).toEqual(new Set(ids));
  });

  it('are triggered at the very millisecond of one that runs, or is not made yet, and take the place of neither', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    await producer.schedule('report', 's', { every: '1h' }, 'x', { overlap: 'allow' });
    await harness.advance('1h');
    await producer.pauseSchedule('report', 's');
    await producer.resumeSchedule('report', 's');
    const ids = [await producer.triggerSchedule('report', 's')];
    await producer.pauseSchedule('report', 's');
    await harness.setNow(START + 3 * HOUR);
    ids.push(await producer.triggerSchedule('report', 's'));
    expect(ids.map((id) => parseInt(id!.slice(3), 36) - START)).toEqual([HOUR + 1, 3 * HOUR + 1]);
    await harness.runDue();
    expect(runs.map(({ id }) => id)).toContain(ids[1]);
  });

  it('that were triggered go with a pause and with their schedule, however many at one moment', async () => {
    const { harness, producer, inspector, runs } = await start(() => undefined);
    await inspector.pause('report');
    await producer.schedule('report', 's', { cron: '0 0 1 6 *' }, 'x', { overlap: 'allow' });
    const triggered = async () => {
      for (let n = 0; n < 250; n++) await producer.triggerSchedule('report', 's');
    };
    await triggered();
    await producer.pauseSchedule('report', 's');
    expect(await inspector.counts('report')).toMatchObject({ due: 0, delayed: 0 });
    await triggered();
    await harness.advance('1m');
    // What was triggered during the pause stays, also when the schedule is declared anew and paused again.
    await producer.schedule('report', 's', { cron: '0 0 1 7 *' }, 'y', { overlap: 'allow' });
    await producer.pauseSchedule('report', 's');
    expect(await inspector.counts('report')).toMatchObject({ due: 250, delayed: 0 });
    expect(await producer.unschedule('report', 's')).toMatchObject({ occurrences: 250 });
    // Most of them have times that are still to come, and the record names only the newest hundred.
    await producer.schedule('report', 's', { cron: '0 0 1 6 *' }, 'x', { overlap: 'allow' });
    await triggered();
    expect(await producer.unschedule('report', 's')).toMatchObject({ occurrences: 251 });
    await inspector.resume('report');
    await harness.runDue();
    expect(runs).toEqual([]);
  });

  it('of a backfill that somebody asked for while it is paused stay when it is paused once more, and run', async () => {
    const { harness, inspector, producer, runs } = await start(() => undefined);
    await inspector.pause('report');
    await producer.schedule('report', 's', { every: '1h' }, 'x', { from: START - 10 * HOUR });
    await producer.pauseSchedule('report', 's');
    expect(await producer.backfillSchedule('report', 's', { from: START - 3 * HOUR, to: START })).toBe(4);
    expect(await producer.pauseSchedule('report', 's')).toMatchObject({ outcome: 'kept' });
    expect(await inspector.counts('report')).toMatchObject({ due: 4 });
    await inspector.resume('report');
    await harness.runDue();
    expect(runs).toHaveLength(4);
  });

  it('stay as they are when they are made again, and are made anew when they change', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    await producer.schedule('report', 's', { every: '1h' }, 'x');
    await harness.advance('30m');
    expect(await producer.schedule('report', 's', { every: '1h' }, 'x')).toMatchObject({
      outcome: 'kept',
      next: new Date(START + HOUR),
    });
    expect(await producer.schedule('report', 's', { every: '1h' }, 'y')).toMatchObject({ outcome: 'replaced' });
    await harness.advance('30m');
    expect(runs.map(({ payload, at }) => [payload, at])).toEqual([['y', iso(START + HOUR)]]);
    expect(await producer.schedule('report', 's', { cron: '0 0 * * *' }, 'z')).toMatchObject({ outcome: 'replaced' });
    await harness.advance('1d');
    expect(runs.slice(1).map(({ payload, at }) => [payload, at])).toEqual([['z', iso(START + DAY)]]);
    expect(await producer.unschedule('report', 's')).toMatchObject({ outcome: 'removed', occurrences: 1 });
    await harness.advance('3d');
    expect(runs).toHaveLength(2);
    expect(await producer.unschedule('report', 's')).toMatchObject({ outcome: 'notFound' });
  });

  it('count for their limit through changes and pauses; what was never due does not count', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    await producer.schedule('report', 's', { every: '1h' }, 'x', { limit: 3 });
    await harness.advance('61m');
    await producer.schedule('report', 's', { every: '1h' }, 'y', { limit: 3 });
    await producer.pauseSchedule('report', 's');
    await harness.advance('5h');
    await producer.resumeSchedule('report', 's');
    await producer.schedule('report', 's', { cron: '*/30 * * * *' }, 'z', { limit: 3 });
    await harness.advance('1d');
    expect(runs.map(({ payload }) => payload)).toEqual(['x', 'z', 'z']);
    expect((await producer.listSchedules('report')).schedules[0]).toMatchObject({
      next: undefined,
      counts: { made: 3 },
    });
    // More are wanted than at first.
    expect((await producer.schedule('report', 's', { every: '1h' }, 'w', { limit: 4 })).next).toBeInstanceOf(Date);
    await harness.advance('1d');
    expect(runs.map(({ payload }) => payload)).toEqual(['x', 'z', 'z', 'w']);
    await producer.unschedule('report', 's');
    await producer.schedule('report', 's', { every: '1h' }, 'v', { limit: 1 });
    await harness.advance('1d');
    expect(runs.map(({ payload }) => payload)).toEqual(['x', 'z', 'z', 'w', 'v']);
  });

  it('that change leave alone what is due already; a pause does not', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    await producer.schedule('report', 's', { every: '1h' }, 'old');
    await harness.setNow(START + HOUR + 1_000);
    await producer.schedule('report', 's', { every: '1h' }, 'new');
    await harness.advance('1h');
    expect(runs.map(({ payload }) => payload)).toEqual(['old', 'new']);
  });

  it('with a jitter as long as they like are each due before the next one, in their order, the same for every process', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    await producer.schedule('report', 's', { cron: '* * * * *' }, null, { jitter: '1h', missed: 'once' });
    await harness.advance('3h');
    const minutes = runs.map(({ job }) => (job.schedule!.at.getTime() - START) / 60_000);
    expect(minutes).toEqual(Array.from({ length: minutes.length }, (_, n) => n + 1));
    expect(minutes.length).toBeGreaterThan(178);
    expect(runs.every(({ at, job }) => Date.parse(at) - job.schedule!.at.getTime() < 60_000)).toBe(true);
    expect((await producer.listSchedules('report')).schedules[0]!.counts.missed).toBe(0);
  });

  it('that were cancelled, or have run before their time, stay so when the schedule changes', async () => {
    const { harness, producer, runs } = await start();
    for (const id of ['cancelled', 'sooner']) await producer.schedule('report', id, { cron: '0 * * * *' }, 'old');
    const first = (id: string) => `{${id}}${(START + HOUR).toString(36)}`;
    expect(await producer.cancel('report', first('cancelled'))).toMatchObject({ outcome: 'cancelled' });
    await producer.runNow('report', first('sooner'));
    await harness.runDue();
    for (const id of ['cancelled', 'sooner']) await producer.schedule('report', id, { cron: '0 * * * *' }, 'new');
    await harness.advance('2h');
    expect(runs.map(({ id, payload, at }) => [id, payload, (Date.parse(at) - START) / HOUR])).toEqual([
      [first('sooner'), 'old', 0],
      [`{cancelled}${(START + 2 * HOUR).toString(36)}`, 'new', 2],
      [`{sooner}${(START + 2 * HOUR).toString(36)}`, 'new', 2],
    ]);
  });

  it('that were cancelled, or have run before their time, stay so also where others come before them when the schedule changes', async () => {
    const { harness, producer, runs } = await start();
    for (const id of ['cancelled', 'sooner', 'kept'])
      await producer.schedule('report', id, { cron: '0 */6 * * *' }, 'old');
    const sixth = (id: string) => `{${id}}${(START + 6 * HOUR).toString(36)}`;
    await producer.cancel('report', sixth('cancelled'));
    await producer.runNow('report', sixth('sooner'));
    await harness.runDue();
    for (const id of ['cancelled', 'sooner', 'kept']) {
      await producer.schedule('report', id, { cron: '0 */2 * * *' }, 'new');
      await producer.schedule('report', id, { cron: '0 */3 * * *' }, 'newer');
    }
    await harness.advance('9h');
    const times = (id: string) => hoursOf(runs.filter(({ job }) => job.schedule!.id === id));
    expect([times('cancelled'), times('sooner'), times('kept')]).toEqual([
      [3, 9],
      [6, 3, 9],
      [3, 6, 9],
    ]);
    const counted = (await producer.listSchedules('report')).schedules.find(({ id }) => id === 'cancelled');
    expect(counted!.counts).toEqual({ made: 4, missed: 0, overlapped: 0 });
  });

  it('that were cancelled, or have run before their time, stay so also when the schedule changes to times without them and back', async () => {
    const { harness, producer, runs } = await start();
    const first = (id: string) => `{${id}}${(START + HOUR).toString(36)}`;
    const change = (id: string, cron: string) => producer.schedule('report', id, { cron }, null);
    for (const id of ['cancelled', 'sooner', 'kept']) await change(id, '0 * * * *');
    await producer.cancel('report', first('cancelled'));
    await producer.runNow('report', first('sooner'));
    await harness.runDue();
    for (const id of ['cancelled', 'sooner', 'kept'])
      for (const cron of ['0 */3 * * *', '0 */2 * * *', '0 * * * *']) await change(id, cron);
    await harness.advance('3h');
    const times = (id: string) => hoursOf(runs.filter(({ job }) => job.schedule!.id === id));
    expect([times('cancelled'), times('sooner'), times('kept')]).toEqual([
      [2, 3],
      [1, 2, 3],
      [1, 2, 3],
    ]);
  });

  it('that were cancelled, or have run before their time, stay so when the schedule is paused and resumed, and count once for its limit', async () => {
    const { harness, producer, runs } = await start();
    const first = (id: string) => `{${id}}${(START + HOUR).toString(36)}`;
    for (const id of ['cancelled', 'sooner', 'kept'])
      await producer.schedule('report', id, { cron: '0 * * * *' }, null, { limit: 2 });
    await producer.cancel('report', first('cancelled'));
    await producer.runNow('report', first('sooner'));
    await harness.runDue();
    for (const call of ['pauseSchedule', 'resumeSchedule', 'pauseSchedule', 'resumeSchedule'] as const)
      for (const id of ['cancelled', 'sooner', 'kept']) await producer[call]('report', id);
    await harness.advance('5h');
    const times = (id: string) => hoursOf(runs.filter(({ job }) => job.schedule!.id === id));
    expect([times('cancelled'), times('sooner'), times('kept')]).toEqual([[2], [1, 2], [1, 2]]);
    for (const { counts } of (await producer.listSchedules('report')).schedules)
      expect(counts).toEqual({ made: 2, missed: 0, overlapped: 0 });
  });

  it('that have run before their time count for the limit also when the schedule changes to times without them', async () => {
    const { harness, producer, runs } = await start();
    await producer.schedule('report', 's', { every: '1h' }, null, { limit: 1 });
    await producer.runNow('report', `{s}${(START + HOUR).toString(36)}`);
    await harness.runDue();
    await producer.schedule('report', 's', { cron: '30 * * * *' }, null, { limit: 1 });
    await harness.advance('5h');
    expect(hoursOf(runs)).toEqual([1]);
  });

  it('that were cancelled are not missed when an outage passes over them', async () => {
    const { harness, producer, inspector, runs } = await start();
    for (const [id, missed] of [
      ['once', 'once'],
      ['skip', 'skip'],
      ['all', 'all'],
    ] as const) {
      const change = (cron: string) => producer.schedule('report', id, { cron }, null, { missed, overlap: 'allow' });
      await change('0 */3 * * *');
      await producer.cancel('report', `{${id}}${(START + 3 * HOUR).toString(36)}`);
      // The time of the cancelled one is no longer ahead.
      await change('0 * * * *');
    }
    await harness.setNow(START + 5.5 * HOUR);
    await harness.advance('10m');
    const times = (id: string) => hoursOf(runs.filter(({ job }) => job.schedule!.id === id));
    expect([times('once'), times('skip'), times('all')]).toEqual([[5], [], [1, 2, 4, 5]]);
    const counts = (await producer.listSchedules('report')).schedules.map(({ id, counts: { missed } }) => [id, missed]);
    expect(Object.fromEntries(counts)).toEqual({ once: 3, skip: 4, all: 0 });
    expect(await inspector.totals('report')).toMatchObject({ completed: 5, skipped: 7 });
  });

  it('go on behind one that was cancelled', async () => {
    const { harness, producer, inspector, runs } = await start();
    for (const id of ['s', 'paused']) {
      await producer.schedule('report', id, { cron: '0 * * * *' }, null);
      await producer.cancel('report', `{${id}}${(START + HOUR).toString(36)}`);
    }
    const cancelled = (await producer.listSchedules('report')).schedules.find(({ id }) => id === 's');
    expect(cancelled).toMatchObject({
      next: new Date(START + 2 * HOUR),
      counts: { made: 1, missed: 0, overlapped: 0 },
    });
    await producer.pauseSchedule('report', 'paused');
    await producer.resumeSchedule('report', 'paused');
    await harness.advance('2h');
    const times = (id: string) => hoursOf(runs.filter(({ job }) => job.schedule!.id === id));
    expect([times('s'), times('paused')]).toEqual([[2], [2]]);
    expect(await inspector.totals('report')).toMatchObject({ completed: 2, skipped: 0, expired: 0 });
  });

  it('tell the next time for which one runs: not that of one that was cancelled, has begun, or was made due before', async () => {
    const failing = (payload: unknown) => {
      if (payload === 'fails') throw new Error('not yet');
    };
    const { harness, producer, inspector } = await start(failing, { attempts: 2, backoff: fixed('12h') });
    const nextOf = async (id: string) => {
      const { schedules } = await producer.listSchedules('report');
      const { next, paused } = schedules.find((one) => one.id === id)!;
      if (paused) return 'paused';
      return next && (next.getTime() - START) / HOUR;
    };
    const job = (id: string, hour: number) => `{${id}}${(START + hour * HOUR).toString(36)}`;
    const hourly = { cron: '0 * * * *' };
    for (const id of ['cancelled', 'early', 'late']) await producer.schedule('report', id, hourly, null);
    await producer.schedule('report', 'ran', hourly, 'fails');
    await producer.schedule('report', 'dense', { cron: '*/10 * * * * *' }, null);
    await producer.schedule('report', 'two', hourly, null, { limit: 2 });
    await producer.schedule('report', 'ends', hourly, null, { until: new Date(START + 1.5 * HOUR) });
    for (const id of ['cancelled', 'two', 'ends']) await producer.cancel('report', job(id, 1));
    for (const second of [10, 30]) await producer.cancel('report', job('dense', second / 3_600));
    await producer.reschedule('report', job('late', 1), { delay: '90m' });
    await producer.runNow('report', job('ran', 1));
    await inspector.pause('report');
    await producer.reschedule('report', job('early', 1), { delay: '30m' });
    expect(await nextOf('cancelled')).toBe(2);
    expect(await nextOf('early')).toBe(2);
    expect(await nextOf('late')).toBe(1);
    expect(await nextOf('dense')).toBe(20 / 3_600);
    expect(await nextOf('two')).toBe(2);
    expect(await nextOf('ends')).toBeUndefined();
    // Whoever declares it again, or asks for what it is already, is told the same.
    const kept = await producer.schedule('report', 'cancelled', hourly, null);
    expect(kept).toMatchObject({ outcome: 'kept', next: new Date(START + 2 * HOUR) });
    const resumed = await producer.resumeSchedule('report', 'cancelled');
    expect(resumed).toMatchObject({ outcome: 'kept', next: new Date(START + 2 * HOUR) });
    const changed = await producer.schedule('report', 'cancelled', hourly, 'another');
    expect(changed).toMatchObject({ outcome: 'replaced', next: new Date(START + 2 * HOUR) });
    await producer.pauseSchedule('report', 'early');
    expect(await nextOf('early')).toBe('paused');
    expect(await nextOf('ran')).toBe(2);
    await inspector.resume('report');
    await harness.runDue();
    // It has failed, and waits for its next attempt.
    expect(await producer.get('report', job('ran', 1))).toMatchObject({ state: 'delayed', attempts: 1 });
    expect(await nextOf('ran')).toBe(2);
  });

  it('tell the next time also right after an outage, and what that has missed counts for their limit', async () => {
    const { harness, producer } = await start(() => undefined);
    const zone = { cron: '30 9 * * *', timeZone: 'Europe/Berlin' };
    await producer.schedule('report', 'berlin', zone, null, { missed: 'all' });
    await producer.schedule('report', 'grid', { every: '1h' }, null, { from: START });
    await producer.schedule('report', 'few', { cron: '0 * * * *' }, null, { limit: 31 });
    await producer.schedule('report', 'over', { cron: '0 * * * *' }, null, { limit: 30 });
    await producer.cancel('report', `{few}${(START + HOUR).toString(36)}`);
    await harness.setNow(START + 30.5 * HOUR);
    const { schedules } = await producer.listSchedules('report');
    const hours = schedules.map(({ id, next }) => [id, next && (next.getTime() - START) / HOUR]);
    expect(Object.fromEntries(hours)).toEqual({ berlin: 32.5, grid: 31, few: 31, over: undefined });
  });

  it('that are made ahead are no part of a purge: it takes those that are due, and their schedules go on', async () => {
    const { harness, producer, inspector, runs } = await start();
    for (const id of ['s', 't']) await producer.schedule('report', id, { cron: '0 * * * *' }, null);
    await harness.setNow(START + 1.5 * HOUR);
    await producer.schedule('report', 'u', { cron: '0 * * * *' }, null);
    await producer.enqueue('report', null, { delay: '30d' });
    // The others are not made yet.
    expect(await inspector.purge('report')).toEqual({ removed: 3 });
    await harness.advance('2h');
    expect(hoursOf(runs.filter(({ job }) => job.schedule!.id === 's'))).toEqual([2, 3]);
    expect(hoursOf(runs.filter(({ job }) => job.schedule!.id === 'u'))).toEqual([2, 3]);
    expect((await inspector.counts('report')).delayed).toBe(3);
  });

  it('that are over say so, and are no error: an application declares them at each boot', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    const over = await producer.schedule('report', 's', { every: '1h' }, null, { until: START - DAY });
    expect(over).toMatchObject({ outcome: 'created', next: undefined });
    await harness.advance('1d');
    expect(runs).toEqual([]);
    expect((await producer.listSchedules('report')).schedules[0]).toMatchObject({ next: undefined, paused: false });
  });

  it('go on in their order when the clock of the server jumps back, and none runs twice', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    await producer.schedule('report', 's', { every: '10m' }, null, { missed: 'all', overlap: 'allow' });
    await harness.advance('2h');
    await harness.setNow(START + HOUR);
    await harness.advance('2h');
    const minutes = runs.map(({ job }) => (job.schedule!.at.getTime() - START) / 600_000);
    expect(minutes).toEqual(Array.from({ length: 18 }, (_, n) => n + 1));
  });

  it('keep to from, until and limit', async () => {
    const { harness, producer, runs } = await start(() => undefined);
    const between = { from: START + 2.5 * HOUR, until: START + 5 * HOUR };
    await producer.schedule('report', 'cron', { cron: '0 * * * *' }, null, between);
    await producer.schedule('report', 'limit', { every: '1h' }, null, { limit: 2, from: START + 10 * HOUR });
    await harness.advance('1d');
    expect(runs.map(({ job }) => [job.schedule!.id, (job.schedule!.at.getTime() - START) / HOUR])).toEqual([
      ['cron', 3],
      ['cron', 4],
      ['cron', 5],
      ['limit', 10],
      ['limit', 11],
    ]);
    expect(runs.at(-1)!.job.schedule!.next).toBeUndefined();
  });

  it('are declared by their handler', async () => {
    const { harness, producer, runs } = await start(() => undefined, {
      repeat: { cron: '0 * * * *', payload: { a: 1 } },
    });
    await harness.advance('90m');
    expect(runs).toEqual([expect.objectContaining({ at: iso(START + HOUR), payload: { a: 1 } })]);
    const { schedules } = await producer.listSchedules('report');
    expect(schedules).toMatchObject([
      { id: '@code', owner: 'code', cron: '0 * * * *', timeZone: 'UTC', payload: { a: 1 } },
    ]);
  });

  it('are declared by their handler at the time that a test sets first, also in the past', async () => {
    const { harness, runs } = await start(() => undefined, { repeat: { cron: '0 * * * *' } });
    for (const begin of [Date.UTC(2020, 0), Date.UTC(2031, 0)]) {
      await harness.setNow(begin);
      await harness.setNow(begin + HOUR / 2);
    }
    const begin = Date.UTC(2031, 0);
    await harness.advance('90m');
    // What was run stays: this jump is an outage.
    await harness.setNow(begin + 10.5 * HOUR);
    await harness.runDue();
    expect(runs.map(({ at, job }) => [at, job.schedule!.at.getTime() - begin])).toEqual([
      [iso(begin + HOUR), HOUR],
      [iso(begin + 2 * HOUR), 2 * HOUR],
      [iso(begin + 10.5 * HOUR), 10 * HOUR],
    ]);
  });

  it('are declared before a test moves the time, also after an outage at boot', async () => {
    const { harness, producer, runs } = await boot(() => undefined, { repeat: { cron: '0 * * * *' } });
    await harness.disconnect();
    await expect(producer.listSchedules('report')).rejects.toThrow(/Redis/);
    await harness.reconnect();
    await harness.setNow(START);
    await harness.advance('90m');
    expect(runs.map(({ at }) => at)).toEqual([iso(START + HOUR)]);
  });

  it('that are declared and were triggered before a test sets the time still run', async () => {
    const { harness, producer, runs } = await start(() => undefined, { repeat: { cron: '0 * * * *' } });
    await producer.triggerSchedule('report', '@code');
    await harness.setNow(START + 1);
    await harness.runDue();
    expect(runs.map(({ at }) => at)).toEqual([iso(START + 1)]);
  });

  it('that are declared and were paused before a test sets the time stay paused', async () => {
    const { harness, producer, runs } = await start(() => undefined, { repeat: { cron: '0 * * * *' } });
    await producer.pauseSchedule('report', '@code');
    await harness.setNow(START + 1);
    await harness.advance('90m');
    expect(runs).toEqual([]);
  });

  it('are refused when they make no sense, before anything is sent', async () => {
    const { producer } = await start(() => undefined);
    const refused = (times: unknown, options?: unknown, id = 's') =>
      producer.schedule('report', id, times as never, null, options as never).then(
        () => undefined,
        (error: unknown) => error,
      );
    expect(String(await refused({ cron: '0 0 31 2 *' }))).toMatch(/does not occur within ten years/);
    expect(String(await refused({ cron: '* * * *' }))).toMatch(/not a cron expression of five or six parts/);
    for (const cron of ['@daily', '2027-01-01T00:00:00', '0 0 0 1 1 * 2027'])
      expect(String(await refused({ cron }))).toMatch(/not a cron expression of five or six parts/);
    const croner = String(await refused({ cron: '0 99 * * *' }));
    expect(croner).toMatch(/not a cron expression of five or six parts: .*[^.]\.$/);
    const misplaced = String(await refused({ every: '1h', until: START + DAY }));
    expect(misplaced).toMatch(/\{ until \}.*: it does not say when the schedule occurs\. Give it with the options/);
    expect(String(await refused({ cron: '0 9 * * *', timeZone: 'Mars/Base' }))).toMatch(/not a time zone/);
    expect(String(await refused({ every: 999 }))).toMatch(/at least 1000 ms/);
    expect(String(await refused({ every: '1h', cron: '0 9 * * *' }))).toMatch(/give either/);
    expect(String(await refused({ every: '1h', timeZone: 'UTC' }))).toMatch(/knows no zone/);
    expect(await refused({ every: '1h' }, { overlap: 'both' })).toBeInstanceOf(InvalidOptionError);
    for (const missed of [undefined, 'once', 'all'] as const)
      expect(String(await refused({ every: '1h' }, { grace: '1m', ...(missed && { missed }) }))).toMatch(
        /\{ grace \}.*no effect with missed: '(once|all)'\. Leave it out, or give missed: 'skip'/,
      );
    for (const missed of [undefined, 'once', 'skip'] as const)
      expect(String(await refused({ every: '1h' }, { most: 5, ...(missed && { missed }) }))).toMatch(
        /\{ most \}.*no effect with missed: '(once|skip)'\. Leave it out, or give missed: 'all'/,
      );
    expect(String(await refused({ every: '1h' }, { jitter: '1h' }))).toMatch(/\{ jitter \}.*Give less than `every`/);
    expect(await refused({ every: '1h' }, { delay: 5 })).toBeInstanceOf(InvalidOptionError);
    expect(await refused({ every: '1h' }, {}, '@code')).toBeInstanceOf(InvalidIdError);
    expect(await refused({ every: '1h' }, {}, 'a{b')).toBeInstanceOf(InvalidIdError);
    expect(String(await refused({ every: '1h' }, { from: START + DAY, until: START }))).toMatch(/before/);
    expect((await producer.listSchedules('report')).schedules).toEqual([]);
  });
});
