import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { timesOf } from '../../../lib/recurring/occurrence-times.js';
import { createApp } from '../../helpers/app.js';
import type { TestApp } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { ShiftedRedis, whyNoShiftedClock } from '../../helpers/shifted-redis.js';
import { World } from '../../helpers/world.js';

const PROGRAM = fileURLToPath(new URL('../../helpers/recurring-program.mjs', import.meta.url));
const START = Date.UTC(2027, 0, 1, 12, 7);
const DAY = 86_400_000;
const DAYS = 365;
/** In so many steps the year passes; at each of them a process dies at another point. RECURRING_KILLS=40 takes a quarter of an hour. */
const KILLS = Number(process.env['RECURRING_KILLS'] ?? 1);
/** Points that a short run looks at: among its first ticks. */
const FEW = [77];
const WITHIN_MS = 90_000;
const CRONS = [
  ['Europe/Berlin', '30 2 * * *'],
  ['America/New_York', '30 2 * * *'],
  ['Australia/Lord_Howe', '15 2 * * *'],
  ['Africa/Casablanca', '0 3 * * *'],
  ['Asia/Kolkata', '45 23 * * *'],
] as const;
const POLICIES = {
  all: { missed: 'all', overlap: 'allow', most: 10_000 },
  once: { missed: 'once' },
  skip: { missed: 'skip', grace: '1m' },
} as const;

let redis: ShiftedRedis;
let world: World;
let app: TestApp;
const why = whyNoShiftedClock();
beforeAll(async () => {
  if (why) return void process.stderr.write(`Schedules of killed processes are not tested: ${why}.\n`);
  redis = await ShiftedRedis.start();
  world = await World.open(redis.url);
  app = await createApp(world, { options: { consume: false } });
});
afterAll(async () => {
  await app?.close();
  await world?.close();
  await redis?.stop();
});

it(
  'a year of occurrences in five zones, over their clock changes, is as the policies say, whichever processes are killed at which point',
  async () => {
    if (why) return;
    const queue = 'year';
    const runs = `${world.prefix}:runs`;
    const living = new Set<ChildProcess>();
    const launch = (killAt?: number) => {
      const program = { connection: redis.url, prefix: world.prefix, queue, runs, killAt };
      const env = { ...process.env, PROGRAM: JSON.stringify(program), NODE_OPTIONS: '' };
      const child = fork(PROGRAM, [], { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
      living.add(child);
      child.once('exit', () => living.delete(child));
      return child;
    };
    const kill = async (child: ChildProcess) => {
      if (!living.has(child)) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    };
    const setClock = (at: number) => redis.shift(at - Date.now());
    /** Nothing is left to do at this time. */
    const isDone = async () => {
      const now = await world.now();
      const key = (name: string) => world.key(queue, name);
      const left = await Promise.all([
        world.redis.zcount(key('due'), '-inf', now),
        world.redis.zcard(key('running')),
        world.redis.zcard(key('quarantine')),
        world.redis.zcount(key('ticks'), '-inf', now),
        world.redis.zcard(key('pending')),
      ]);
      return left.every((count) => count === 0);
    };

    setClock(START);
    for (const [timeZone, cron] of CRONS) {
      for (const [name, policy] of Object.entries(POLICIES)) {
        await app.producer.schedule(queue, `${name} ${timeZone}`, { cron, timeZone }, null, policy);
      }
    }
    let killed = 0;
    const jumps: number[] = [];
    try {
      for (let n = 1; n <= KILLS; n++) {
        const at = START + Math.round((n / KILLS) * DAYS) * DAY;
        jumps.push(at);
        setClock(at);
        const doomed = launch(KILLS > FEW.length ? 20 + 3 * n : FEW[n - 1]!);
        await eventually(async () => expect(!living.has(doomed) || (await isDone())).toBe(true), WITHIN_MS);
        if (living.has(doomed)) await kill(doomed);
        else killed++;
        // Its leases are over, and three processes at once do what it left.
        setClock(at + 120_000);
        const others = [launch(), launch(), ...(n === 1 ? [launch()] : [])];
        await eventually(async () => expect(await isDone()).toBe(true), WITHIN_MS);
        for (const child of others) await kill(child);
      }
    } finally {
      await Promise.all(Array.from(living, kill));
    }
    expect(killed).toBeGreaterThan(KILLS / 2);

    const { schedules } = await app.producer.listSchedules(queue, { limit: 100 });
    const noted = await world.redis.lrange(runs, 0, -1);
    for (const [timeZone, cron] of CRONS) {
      const times = await timesOf({ cron, timeZone }, '');
      const all: number[] = [];
      for (let at = times.next(START)!; at <= jumps.at(-1)!; at = times.next(at)!) all.push(at);
      expect(Math.abs(all.length - DAYS)).toBeLessThan(2);
      const newest = jumps.map((jump) => all.filter((at) => at <= jump).at(-1)!);
      const wanted = { all, once: newest, skip: [] as number[] };
      for (const [name, expected] of Object.entries(wanted)) {
        const id = `${name} ${timeZone}`;
        const ran = noted.filter((note) => note.startsWith(`${id} `)).map((note) => Number(note.slice(id.length + 1)));
        const { counts } = schedules.find((schedule) => schedule.id === id)!;
        const distinct = [...new Set(ran)].sort((a, b) => a - b);
        expect({ id, distinct }).toEqual({ id, distinct: expected });
        expect({ id, counts }).toEqual({
          id,
          counts: { made: counts.made, missed: all.length - expected.length, overlapped: 0 },
        });
      }
    }
    // What ran twice was running when its process was killed.
    expect(noted.length - new Set(noted).size).toBeLessThanOrEqual(20 * killed);
    expect(await world.violations(queue)).toEqual([]);
    const totals = await app.inspector.totals(queue);
    expect(totals).toMatchObject({
      dead: 0,
      expired: 0,
      skipped: schedules.reduce((sum, { counts }) => sum + counts.missed, 0),
    });
  },
  WITHIN_MS * 2 * KILLS + 60_000,
);
