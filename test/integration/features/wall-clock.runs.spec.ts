import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it, jest } from '@jest/globals';
import { instantOf, offsetAt } from '../../../lib/job/wall-clock.js';
import type { LocalTime } from '../../../lib/index.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const PROGRAM = fileURLToPath(new URL('../../helpers/wall-clock-program.mjs', import.meta.url));
/** `npm run test:wall-clock` runs 10,000. */
const JOBS = Number(process.env['WALL_CLOCK_JOBS'] ?? 900);
/** Those that are there when newer zone data come for the first time; the others come then. */
const EARLIER = JOBS / 2;
/** For so long the earlier ones fall due, at each whole second. */
const WINDOW_S = Math.max(4, Math.ceil(JOBS / 400));
/** The jobs take a quarter of a minute, however impatient one is. */
const PATIENCE_MS = Math.max(30_000, Number(process.env['PATIENCE_MS'] ?? 60_000)) + 12 * JOBS;
/** Of many jobs that would take longer than they wait. */
const AWAY_MS = JOBS > 2_000 ? 0 : 5;
const MINUTE = 60_000;
const CONCURRENCY = 40;
const HANDLER = { concurrency: CONCURRENCY, lease: 2_000, waitMs: 20 };
const ZONES = Intl.supportedValuesOf('timeZone').filter((_, n) => n % 14 === 0);

/** By how much the clocks of each zone show more. */
type Ahead = Readonly<Record<string, number>>;
const ahead = (...byZone: number[]): Ahead =>
  Object.fromEntries(ZONES.map((zone, n) => [zone, byZone[n % byZone.length]!]));
/** Three releases of the zone data. By the oldest ones jobs are due an hour too early, or half an hour too late; by the next ones a few seconds. */
const OLDEST = { version: '2000a', aheadMs: ahead(60 * MINUTE, -30 * MINUTE, 0) };
const OLDER = { version: '2000b', aheadMs: ahead(-3_000, 2_000, 4_000, 0) };
const NEWEST = process.versions['tz']!;

const here = inAWorld();

/** What these zone data make of it. */
function by<T>(zoneData: { aheadMs: Ahead }, compute: () => T): T {
  const real = Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, 'formatToParts')!.value as (
    at: number,
  ) => Intl.DateTimeFormatPart[];
  const spy = jest.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts').mockImplementation(function (
    this: Intl.DateTimeFormat,
    at?: Date | number,
  ) {
    return real.call(this, Number(at) + zoneData.aheadMs[this.resolvedOptions().timeZone]!);
  });
  try {
    return compute();
  } finally {
    spy.mockRestore();
  }
}

/** What the clocks of a zone show then. */
function localTimeAt(ms: number, timeZone: string): LocalTime {
  return { local: new Date(ms + offsetAt(ms, timeZone)).toISOString().slice(0, 19), timeZone };
}

function groupedById<T extends { id: string }>(all: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(one.id, [...(groups.get(one.id) ?? []), one]);
  return groups;
}

it(
  `${JOBS} jobs at local times in 30 zones run once each, none before the moment of the newest zone data, while newer ones come and a process is killed`,
  async () => {
    expect(ZONES.length).toBeGreaterThanOrEqual(30);
    const queue = 'local';
    const runs = `${here.world.prefix}:runs`;
    const { redis } = here.world;
    const { producer, inspector } = await here.start({ options: { consume: false, commandTimeout: '60s' } });
    const living = new Set<ChildProcess>();
    const launch = async (more: object = {}) => {
      const program = { connection: here.world.url, prefix: here.world.prefix, queue, runs, ...HANDLER, ...more };
      const env = { ...process.env, PROGRAM: JSON.stringify(program), NODE_OPTIONS: '' };
      const child = fork(PROGRAM, [], { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
      living.add(child);
      child.once('exit', () => living.delete(child));
      await once(child, 'message');
      return child;
    };
    const kill = async (child: ChildProcess) => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    };
    const zoneData = () => redis.hget(here.world.key(queue, 'meta'), 'zoneData');
    const isNoted = async (version: string) => {
      await eventually(async () => expect(await zoneData()).toBe(version), PATIENCE_MS);
      return here.world.now();
    };
    const enqueue = async (
      data: { aheadMs: Ahead },
      items: readonly { payload: number; id: string; at: LocalTime }[],
    ) => {
      const results = await by(data, () => producer.enqueueMany(queue, items));
      return results.map(({ dueAt }) => dueAt.getTime());
    };

    // Nothing is claimed until newer zone data have come for the first time.
    await inspector.pause(queue);
    const first = Math.ceil(((await here.world.now()) + 5_000) / 1_000) * 1_000;
    const timesFrom = (begin: number, windowS: number) =>
      Array.from({ length: EARLIER }, (_, n) =>
        localTimeAt(begin + ((n * 7) % windowS) * 1_000, ZONES[n % ZONES.length]!),
      );
    const jobsAt = (times: readonly LocalTime[], name: string) =>
      times.map((at, n) => ({ payload: n, id: `${name}${n}`, at }));
    const earlier = timesFrom(first, WINDOW_S);
    try {
      const dues = await enqueue(OLDEST, jobsAt(earlier, 'earlier'));
      expect(dues).toEqual(by(OLDEST, () => earlier.map((at) => instantOf(at))));
      // As the process says that made them.
      await redis.hset(here.world.key(queue, 'meta'), 'zoneData', OLDEST.version);
      const [, doomed] = await Promise.all([
        launch({ zoneData: OLDEST }),
        launch({ zoneData: OLDER }),
        launch({ zoneData: OLDER }),
      ]);
      const booted = await here.world.now();
      const lookedMs = (await isNoted(OLDER.version)) - booted;
      // For longer than the newest zone data need to come.
      const windowS = 6 + Math.ceil((4 * lookedMs) / 1_000);
      const next = Math.ceil(((await here.world.now()) + 3_000) / 1_000) * 1_000;
      const later = timesFrom(next, windowS);
      await enqueue(OLDER, jobsAt(later, 'later'));
      // A producer still has the oldest ones. What it makes is due half an hour too late, until newer ones boot.
      const lateZones = ZONES.filter((zone) => OLDEST.aheadMs[zone]! < 0);
      const lateTimes = Array.from({ length: 60 }, (_, n) =>
        localTimeAt(next + windowS * 1_000, lateZones[n % lateZones.length]!),
      );
      await enqueue(OLDEST, jobsAt(lateTimes, 'late'));
      await redis.hset(here.world.key(queue, 'meta'), 'zoneData', OLDEST.version);
      await inspector.resume(queue);

      // The one that is killed has begun some too: on a loaded machine the others may be first with all that is due.
      await eventually(async () => {
        const pids = new Set((await redis.lrange(runs, 0, -1)).map((text) => (JSON.parse(text) as unknown[])[2]));
        expect(pids).toContain(doomed.pid);
        expect(await redis.llen(runs)).toBeGreaterThan(JOBS / 10);
      }, PATIENCE_MS);
      // Newer ones come under what waits and runs, by a process that is far away and takes its time for it.
      const newest = launch({ awayMs: AWAY_MS });
      await kill(doomed);
      await newest;
      const noted = await isNoted(NEWEST);
      await launch();
      const all = 2 * EARLIER + lateTimes.length;
      await eventually(async () => {
        const counts = await inspector.counts(queue);
        expect(counts).toMatchObject({ delayed: 0, due: 0, running: 0 });
      }, PATIENCE_MS);

      const told = (await redis.lrange(runs, 0, -1)).map((text) => {
        const [kind, id, pid, attempt, at, dueAt] = JSON.parse(text) as [
          string,
          string,
          number,
          number,
          number,
          number,
        ];
        return { kind, id, pid, attempt, at, dueAt };
      });
      const starts = told.filter(({ kind }) => kind === 'start');
      const moments = new Map<string, readonly [older: number, newest: number]>();
      for (const [name, times] of Object.entries({ earlier, later, late: lateTimes })) {
        const older = by(OLDER, () => times.map((at) => instantOf(at)!));
        for (const [n, at] of times.entries()) moments.set(`${name}${n}`, [older[n]!, instantOf(at)!]);
      }

      expect(starts.filter(({ at, dueAt }) => at < dueAt)).toEqual([]);
      // What was due by the older ones before the newest ones were looked at may have begun by them.
      const isRight = ({ id, dueAt }: (typeof starts)[number]) => {
        const [older, newest] = moments.get(id)!;
        return dueAt === newest || (dueAt === older && older <= noted);
      };
      expect(starts.filter((start) => !isRight(start))).toEqual([]);
      const differ = starts.filter(({ id }) => moments.get(id)![0] !== moments.get(id)![1]);
      expect(differ.filter(({ id, dueAt }) => dueAt === moments.get(id)![1]).length).toBeGreaterThan(all / 10);
      expect(new Set(starts.map(({ id }) => id))).toEqual(new Set(moments.keys()));
      // Only what a killed process had begun runs once more.
      const byId = groupedById(starts);
      const again = [...byId.values()].filter(({ length }) => length > 1);
      expect(again.filter(([one, , ...more]) => one!.pid !== doomed.pid || more.length > 0)).toEqual([]);
      expect(again.length).toBeLessThanOrEqual(2 * CONCURRENCY);
      expect(starts.some(({ pid }) => pid === doomed.pid)).toBe(true);
      expect(await inspector.totals(queue)).toMatchObject({ enqueued: all, completed: all, dead: 0 });
      expect(await here.world.problems(queue)).toEqual([]);
    } finally {
      await Promise.all(Array.from(living, kill));
    }
  },
  4 * PATIENCE_MS,
);
