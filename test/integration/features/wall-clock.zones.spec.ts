import { afterEach, expect, it, jest } from '@jest/globals';
import { instantOf } from '../../../lib/job/wall-clock.js';
import type { LocalTime } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
/** WALL_CLOCK_JOBS=10000 takes a minute. */
const JOBS = Number(process.env['WALL_CLOCK_JOBS'] ?? 900);
const PATIENCE_MS = 100_000 + 60 * JOBS;
const HOUR = 3_600_000;
const ZONES = Intl.supportedValuesOf('timeZone').filter((_, n) => n % 14 === 0);
const AMBIGUOUS = [undefined, 'earlier', 'later'] as const;

/** As if governments decided it later: by the data of before, the clocks of two thirds of the zones show another time from 2087 on. */
function withOlderZoneData(): void {
  const real = Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, 'formatToParts')!.value as (
    at: number,
  ) => Intl.DateTimeFormatPart[];
  jest.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts').mockImplementation(function (
    this: Intl.DateTimeFormat,
    at?: Date | number,
  ) {
    const ms = Number(at);
    const shift = [0, HOUR, -HOUR / 2][ZONES.indexOf(this.resolvedOptions().timeZone) % 3] ?? 0;
    return real.call(this, ms > Date.UTC(2087, 0) ? ms + shift : ms);
  });
}

/** Local times of two years, among them those that clock changes leave out or repeat. */
function localTime(n: number): LocalTime {
  const at = new Date(Date.UTC(2087, 1, 1) + ((n * 7_919 * 60_000 * 17) % (700 * 24 * HOUR)));
  at.setUTCMinutes(n % 60, 0, 0);
  if (n % 4 === 0) at.setUTCHours(2);
  const ambiguous = AMBIGUOUS[n % 3];
  return {
    local: at.toISOString().slice(0, 16),
    timeZone: ZONES[n % ZONES.length]!,
    ...(ambiguous && { ambiguous }),
  };
}

afterEach(() => void jest.restoreAllMocks());

it(
  `${JOBS} jobs at local times in 30 zones have the moments of newer zone data after three processes have booted with them at once`,
  async () => {
    expect(ZONES.length).toBeGreaterThanOrEqual(30);
    const queue = 'zones';
    const jobs = Array.from({ length: JOBS }, (_, n) => ({ payload: n, id: `j${n}`, at: localTime(n) }));
    const { producer, inspector } = await here.start({ options: { consume: false } });
    withOlderZoneData();
    const before = await producer.enqueueMany(queue, jobs);
    jest.restoreAllMocks();
    const wrong = before.filter(({ dueAt }, n) => dueAt.getTime() !== instantOf(jobs[n]!.at));
    expect(wrong.length).toBeGreaterThan(JOBS / 2);
    await here.world.redis.hset(here.world.key(queue, 'meta'), 'zoneData', '2000a');

    const ran: string[] = [];
    const boot = () => here.start({ providers: [handlerClass(queue, (_, job) => void ran.push(job.id))] });
    const others = await Promise.all([boot(), boot(), boot()]);
    // Meanwhile some are put off, cancelled, and given another local time; and one of the processes goes away.
    const [putOff, cancelled, elsewhere] = [jobs.slice(0, 20), jobs.slice(20, 40), jobs.slice(40, 60)];
    const change = async () => {
      for (const { id } of putOff) await producer.reschedule(queue, id, { at: Date.UTC(2088, 0) });
      for (const { id } of cancelled) await producer.cancel(queue, id);
      for (const [n, { id }] of elsewhere.entries()) await producer.reschedule(queue, id, { at: localTime(5_000 + n) });
    };
    await Promise.all([change(), others[1]!.close()]);
    await eventually(async () => {
      expect(await here.world.redis.hget(here.world.key(queue, 'meta'), 'zoneData')).toBe(process.versions['tz']);
    }, PATIENCE_MS);

    const expected = new Map(jobs.map(({ id, at }) => [id, instantOf(at)!]));
    for (const { id } of putOff) expected.set(id, Date.UTC(2088, 0));
    for (const { id } of cancelled) expected.delete(id);
    for (const [n, { id }] of elsewhere.entries()) expected.set(id, instantOf(localTime(5_000 + n))!);
    const { due, jobs: stored } = await here.world.read(queue);
    expect(due).toEqual(Object.fromEntries(expected));
    expect(Object.keys(stored).sort()).toEqual([...expected.keys()].sort());
    expect(await here.world.violations(queue)).toEqual([]);
    expect(ran).toEqual([]);
    expect(await inspector.counts(queue)).toMatchObject({ delayed: expected.size, due: 0 });
  },
  20_000 + PATIENCE_MS,
);
