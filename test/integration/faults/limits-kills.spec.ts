import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const PROGRAM = fileURLToPath(new URL('../../helpers/limited-program.mjs', import.meta.url));
/** `npm run test:limits` kills 40 and prints what it measured. */
const KILLS = Number(process.env['LIMITS_KILLS'] ?? 2);
const IS_LONG = KILLS > 10;
const KILL_EVERY_MS = 3_000;
const LEASE_MS = 2_000;
/** For as long as it takes, all queues have due jobs. */
const SECONDS = ((KILLS + 1) * KILL_EVERY_MS) / 1_000;
const AT_A_TIME = 20;
const WAIT_MS = 100;
const RATE = { max: 200, per: 1_000 };
const GROUPS = 10;
const QUEUES = {
  many: { handler: { globalConcurrency: AT_A_TIME }, waitMs: WAIT_MS, jobs: (AT_A_TIME * SECONDS * 1_000) / WAIT_MS },
  rated: { handler: { rateLimit: RATE }, waitMs: 0, jobs: (RATE.max * SECONDS * 1_000) / RATE.per },
  ordered: { handler: { groups: { concurrency: 1 } }, waitMs: 10, jobs: 60 * SECONDS },
};
type Queue = keyof typeof QUEUES;
const NAMES = Object.keys(QUEUES) as Queue[];

interface Note {
  readonly kind: 'start' | 'end';
  readonly queue: Queue;
  readonly id: string;
  readonly pid: number;
  readonly claimedAt: number;
  readonly group?: string;
  readonly nth?: number;
}

/** At one moment: the time, how many jobs are due, and the jobs that run, each with its claim. */
const LOOK = `local time, due = redis.call('TIME'), redis.call('ZCARD', KEYS[1])
local most, places, groups = 0, redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES'), {}
for n = 2, #places, 2 do
  groups[places[n]] = (groups[places[n]] or 0) + 1
  most = math.max(most, groups[places[n]])
end
return { time[1] * 1000 + math.floor(time[2] / 1000), due, most, redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES') }`;

interface Look {
  readonly at: number;
  readonly due: number;
  readonly mostInAGroup: number;
  /** `id claim` */
  readonly running: ReadonlySet<string>;
}

async function look(queue: Queue): Promise<Look> {
  const keys = ['due', 'running', 'held'].map((name) => here.world.key(queue, name));
  const answer = (await here.world.redis.eval(LOOK, 3, ...keys)) as [number, number, number, string[]];
  const [at, due, mostInAGroup, flat] = answer;
  const running = new Set(flat.flatMap((id, n) => (n % 2 === 0 ? [`${id} ${flat[n + 1]}`] : [])));
  return { at, due, mostInAGroup, running };
}

function isOne(id: string, running: ReadonlySet<string>): boolean {
  return [...running].some((one) => one.startsWith(`${id} `));
}

/** Part of a limit that is used, while jobs are due: the mean over the time. */
function meanOf(looks: readonly Look[], most: number, countOf: (look: Look) => number): number {
  let [used, time] = [0, 0];
  for (const [n, one] of looks.slice(0, -1).entries()) {
    const ms = looks[n + 1]!.at - one.at;
    used += Math.min(most, countOf(one)) * ms;
    time += ms;
  }
  return used / (time * most);
}

function mostInAWindow(starts: readonly number[], per: number): number {
  let [most, from] = [0, 0];
  for (const [n, at] of starts.entries()) {
    while (at - starts[from]! >= per) from++;
    most = Math.max(most, n - from + 1);
  }
  return most;
}

/** Jobs that started after a later one of their group. */
function outOfOrder(starts: readonly Note[]): string[] {
  const last = new Map<string, number>();
  return starts.flatMap(({ group, nth }) => {
    const before = last.get(group!) ?? -1;
    last.set(group!, Math.max(before, nth!));
    return nth! < before ? [`${group} ${nth} after ${before}`] : [];
  });
}

it(
  'four processes, one killed every few seconds, use the limits and never exceed them; a killed one keeps its share for its lease at most, and groups of one keep their order',
  async () => {
    const runs = `${here.world.prefix}:runs`;
    const { producer, inspector } = await here.start({ options: { consume: false, commandTimeout: '60s' } });
    const begin = (await here.world.now()) - 60_000;
    for (const queue of NAMES) {
      const { handler, jobs } = QUEUES[queue];
      await inspector.setLimits(queue, handler);
      await inspector.pause(queue);
      const items = Array.from({ length: jobs }, (_, n) => {
        if (queue !== 'ordered') return { payload: {}, id: `j${n}`, at: begin + n };
        const [group, nth] = [`g${n % GROUPS}`, Math.floor(n / GROUPS)];
        return { payload: { group, nth }, id: `j${n}`, group, at: begin + n };
      });
      for (let at = 0; at < items.length; at += 10_000) await producer.enqueueMany(queue, items.slice(at, at + 10_000));
    }
    const living: ChildProcess[] = [];
    const launch = async () => {
      const queues = NAMES.map((queue) => {
        const { handler, waitMs } = QUEUES[queue];
        return { queue, handler: { concurrency: AT_A_TIME, lease: LEASE_MS, ...handler }, waitMs };
      });
      const program = { connection: here.world.url, prefix: here.world.prefix, runs, queues };
      const env = { ...process.env, PROGRAM: JSON.stringify(program), NODE_OPTIONS: '' };
      const child = fork(PROGRAM, [], { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
      living.push(child);
      await once(child, 'message');
    };
    const notes: Note[] = [];
    const readNotes = async () => {
      const texts = await here.world.redis.lrange(runs, notes.length, -1);
      notes.push(...texts.map((text) => JSON.parse(text) as Note));
    };
    const kill = async (child: ChildProcess) => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    };

    /** One that runs jobs of the limited queue, so that its death leaves places to be given back. */
    const chosen = async () => {
      const { running } = await look('many');
      await readNotes();
      const { pid } =
        notes.findLast(({ kind, queue, id }) => kind === 'start' && queue === 'many' && isOne(id, running)) ?? {};
      return living.find((child) => child.pid === pid) ?? living[0]!;
    };

    const looks = { many: [] as Look[], ordered: [] as Look[] };
    /** What killed processes held when they were killed, and since when. */
    const left = new Map<string, number>();
    const heldMs: number[] = [];
    const deaths: number[] = [];
    let hasEnded = false;
    const watch = async () => {
      while (!hasEnded) {
        const many = await look('many');
        if (many.due > 0) looks.many.push(many);
        looks.ordered.push(await look('ordered'));
        await sleep(2);
      }
    };
    let watching: Promise<void> | undefined;
    try {
      await Promise.all([1, 2, 3, 4].map(launch));
      for (const queue of NAMES) await inspector.resume(queue);
      watching = watch();
      for (let killed = 0; killed < KILLS; killed++) {
        const next = performance.now() + KILL_EVERY_MS;
        const doomed = await chosen();
        living.splice(living.indexOf(doomed), 1);
        await kill(doomed);
        const { at, running } = await look('many');
        deaths.push(at);
        await readNotes();
        const last = new Map(notes.filter(({ queue }) => queue === 'many').map((note) => [note.id, note]));
        for (const one of running) {
          const note = last.get(one.split(' ')[0]!);
          if (note?.kind === 'start' && note.pid === doomed.pid) left.set(one, at);
        }
        await launch();
        await sleep(next - performance.now());
      }
      await eventually(async () => {
        for (const queue of NAMES)
          expect(await inspector.counts(queue)).toMatchObject({ due: 0, delayed: 0, running: 0 });
      }, 120_000);
      expect(deaths).toHaveLength(KILLS);
    } finally {
      hasEnded = true;
      await watching;
      await Promise.all(living.map(kill));
    }
    await readNotes();

    for (const [one, since] of left) {
      const still = looks.many.filter(({ at, running }) => at >= since && running.has(one));
      heldMs.push(still.length === 0 ? 0 : still.at(-1)!.at - since);
    }
    const ofDead = ({ at, running }: Look) =>
      [...running].filter((one) => left.has(one) && at >= left.get(one)!).length;
    const full = looks.many.slice(looks.many.findIndex(({ running }) => running.size >= AT_A_TIME));
    const startsOf = (queue: Queue) =>
      notes
        .filter((note) => note.kind === 'start' && note.queue === queue)
        .sort((a, b) => a.claimedAt - b.claimedAt || (a.nth ?? 0) - (b.nth ?? 0));
    const rated = startsOf('rated').map(({ claimedAt }) => claimedAt);
    const windows = Array.from({ length: Math.floor((rated.at(-1)! - rated[0]!) / RATE.per) }, (_, n) => {
      const from = rated[0]! + n * RATE.per;
      const count = rated.filter((at) => at >= from && at < from + RATE.per).length;
      return { count, hadKill: deaths.some((at) => at > from - RATE.per && at < from + RATE.per) };
    });
    const usedOf = (some: typeof windows) => some.reduce((sum, { count }) => sum + count, 0) / (some.length * RATE.max);
    const gaps = rated.slice(1).map((at, n) => at - rated[n]!);
    const measured = {
      kills: KILLS,
      looks: looks.many.length,
      mostAtATime: Math.max(...looks.many.map(({ running }) => running.size)),
      used: meanOf(full, AT_A_TIME, ({ running }) => running.size),
      usedByLiving: meanOf(full, AT_A_TIME, (one) => one.running.size - ofDead(one)),
      left: left.size,
      longestHeldMs: Math.max(0, ...heldMs),
      mostInAWindow: mostInAWindow(rated, RATE.per),
      rateUsed: usedOf(windows),
      rateUsedWithoutKills: usedOf(windows.filter(({ hadKill }) => !hadKill)),
      longestGapMs: Math.max(...gaps),
      mostInAGroup: Math.max(...looks.ordered.map(({ mostInAGroup }) => mostInAGroup)),
      outOfOrder: outOfOrder(startsOf('ordered')).length,
      startsOfGroups: startsOf('ordered').length,
    };
    if (IS_LONG) process.stderr.write(`${JSON.stringify(measured, null, 2)}\n`);

    expect(measured.mostAtATime).toBe(AT_A_TIME);
    expect(measured.mostInAWindow).toBeLessThanOrEqual(RATE.max);
    expect(measured.mostInAGroup).toBe(1);
    expect(outOfOrder(startsOf('ordered'))).toEqual([]);
    // Of two kills both may fall between runs.
    expect(left.size).toBeGreaterThanOrEqual(IS_LONG ? 1 : 0);
    // A busy machine takes its time to notice.
    expect(measured.longestHeldMs).toBeLessThan(LEASE_MS + 1_500);
    expect(measured.used).toBeGreaterThan(IS_LONG ? 0.95 : 0.85);
    expect(measured.rateUsed).toBeGreaterThan(IS_LONG ? 0.95 : 0.75);
    for (const queue of NAMES) {
      const { jobs } = QUEUES[queue];
      expect(await inspector.totals(queue)).toMatchObject({ enqueued: jobs, completed: jobs, dead: 0 });
      expect(new Set(startsOf(queue).map(({ id }) => id)).size).toBe(jobs);
      expect(await here.world.problems(queue)).toEqual([]);
    }
  },
  300_000 + 20_000 * KILLS,
);
