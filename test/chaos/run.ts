import { cpSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Tether } from '../../tools/tether.mjs';
import { RedisServer } from '../helpers/redis-server.js';
import { World } from '../helpers/world.js';
import { check } from './checker.js';
import type { Verdict } from './checker.js';
import { Member } from './crew.js';
import { openHistory } from './historian.mjs';
import type { Historian } from './historian.mjs';
import { OVER, readHistory } from './history.js';
import type { GroupIndexes, HistoryEvent, Indexes, LimitsOfRun, ScheduleOfRun } from './history.js';
import { ON_PROCESSES, ON_SERVER } from './injections.js';
import type { Scene } from './injections.js';
import { LONGEST_FAULT_MS, planFaults } from './plan.js';
import type { PlannedFault } from './plan.js';

export interface RunSettings {
  readonly seed: number;
  readonly durationMs: number;
  /** Enqueues and other calls per second. */
  readonly rate: number;
  readonly everyMs: number;
  readonly leaseMs: number;
  readonly workers: number;
  readonly appendfsync: 'always' | 'everysec';
  /** Jobs have groups and priorities, and the queue limits. */
  readonly limits: boolean;
}

/** Tight enough to be reached all the time, and wide enough for what comes. */
const LIMITS: LimitsOfRun = {
  concurrency: 30,
  rate: { max: 150, perMs: 1_000 },
  groupConcurrency: 3,
  groupRate: { max: 30, perMs: 2_000 },
};

/** One of each two policies. What may not run beside another one comes so often that it must not take much longer. */
function schedulesUntil(until: number): ScheduleOfRun[] {
  const policies = (['once', 'skip', 'all'] as const).flatMap((missed) =>
    (['skip', 'queue', 'allow'] as const).map((overlap) => ({ missed, overlap })),
  );
  return policies.map(({ missed, overlap }) => {
    const pace = overlap === 'allow' ? { everyMs: 1_000, ms: 300 } : { everyMs: 2_000, ms: 1_200 };
    return { id: `${missed}-${overlap}`, until, missed, overlap, ...pace };
  });
}

export const DEFAULT_RUN: Omit<RunSettings, 'seed' | 'durationMs' | 'limits'> = {
  rate: 100,
  everyMs: 2_500,
  leaseMs: 2_000,
  workers: 4,
  appendfsync: 'always',
};

export interface RunResult extends Verdict {
  /** Where the history of a run with violations was kept. */
  readonly kept: string | undefined;
}

/** What PTTL answers for a key that is not there. */
const GONE = -2;
const QUEUE = 'work';
const LOOK_EVERY_MS = 10_000;
const SLOW_MS = 400;
const DRAIN_MS = 45_000;
/** What lib/lua/shared/session.lua writes. */
const LANE_OVER = '9007199254740991 ';

/** A fault run: processes and a Redis of its own, the planned faults, a drain, and the verdict on the history. */
export async function runChaos(settings: RunSettings): Promise<RunResult> {
  const tether = await Tether.open();
  const server = await RedisServer.start({ appendfsync: settings.appendfsync });
  const world = await World.open(server.url);
  const director = new Director(settings, tether, server, world);
  try {
    await director.direct();
    const verdict = await judge(tether.directory, settings.leaseMs);
    return { ...verdict, kept: verdict.violations.length > 0 ? await keep(tether.directory, verdict) : undefined };
  } finally {
    director.stopWatching();
    await world.close();
    await tether.close();
    await server.stop();
  }
}

/** The verdict on the history in a folder, also on one that was kept. */
export function judge(folder: string, leaseMs: number): Promise<Verdict> {
  return check(readHistory(historiesIn(folder)), { leaseMs });
}

function historiesIn(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  return names.map((name) => join(folder, name));
}

/** Copies the history, with all that is told about the jobs of the violations. @returns the folder */
async function keep(folder: string, { violations }: Verdict): Promise<string> {
  const kept = mkdtempSync(join(tmpdir(), 'chaos-'));
  for (const file of readdirSync(folder))
    if (/\.(?:jsonl|log)$/.test(file)) cpSync(join(folder, file), join(kept, file));
  const told = new Map(violations.flatMap(({ id }) => (id === undefined ? [] : [[id, [] as HistoryEvent[]]])));
  const calls = new Map<string, HistoryEvent[]>();
  for await (const event of readHistory(historiesIn(folder))) {
    if (event.ev === 'store') continue;
    if ('op' in event && event.ev !== 'asked') calls.get(`${event.p} ${event.op}`)?.push(event);
    const ids = 'id' in event ? [event.id] : 'jobs' in event ? event.jobs.map(([id]) => id) : [];
    for (const id of ids) {
      const events = told.get(id);
      events?.push(event);
      if (events && event.ev === 'asked') calls.set(`${event.p} ${event.op}`, events);
    }
  }
  const lines = violations.flatMap(({ rule, id = '', what }) => [
    `${rule} ${id}: ${what}`,
    ...(told.get(id) ?? []).sort((a, b) => a.mono - b.mono).map((event) => `  ${JSON.stringify(event)}`),
  ]);
  writeFileSync(join(kept, 'violations.txt'), `${lines.join('\n')}\n`);
  return kept;
}

class Director {
  readonly #history: Historian;
  readonly #scene: Scene;
  readonly #members: Member[] = [];
  readonly #timers: NodeJS.Timeout[] = [];
  /** Faults of the server come one after the other. */
  #server: Promise<unknown> = Promise.resolve();
  #serverIsHit = false;

  constructor(
    private readonly settings: RunSettings,
    private readonly tether: Tether,
    server: RedisServer,
    private readonly world: World,
  ) {
    this.#history = openHistory(join(tether.directory, 'director.jsonl'), 'director');
    this.#scene = { server, world, leaseMs: settings.leaseMs };
  }

  async direct(): Promise<void> {
    const { seed, durationMs, everyMs } = this.settings;
    await this.#compareClocks();
    await this.#gather();
    this.#watch();
    const plan = planFaults(seed, durationMs - LONGEST_FAULT_MS, everyMs);
    const counts: Record<string, number> = {};
    for (const { kind } of plan) counts[kind] = (counts[kind] ?? 0) + 1;
    this.#history.write({ ev: 'planned', faults: counts });
    if (this.settings.limits) this.#history.write({ ev: 'limits', ...LIMITS });
    const began = performance.now();
    const faults: Promise<void>[] = [];
    for (const fault of plan) {
      await sleep(Math.max(0, began + fault.atMs - performance.now()));
      faults.push(this.#inject(fault));
    }
    await sleep(Math.max(0, began + durationMs - performance.now()));
    await Promise.all(faults);
    await this.#finish();
  }

  stopWatching(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** Times of processes are compared with those of the server. */
  async #compareClocks(): Promise<void> {
    const before = Date.now();
    const now = await this.world.now();
    if (now < before || now > Date.now()) throw new Error('Redis does not share the clock of this machine');
  }

  async #gather(): Promise<void> {
    const { seed, durationMs, leaseMs, rate, workers, limits } = this.settings;
    const schedules = schedulesUntil(Date.now() + durationMs);
    this.#history.write({ ev: 'schedules', schedules });
    const crew = {
      redisUrl: this.#scene.server.url,
      prefix: this.world.prefix,
      queue: QUEUE,
      seed,
      leaseMs,
      rate,
      limits: limits ? LIMITS : undefined,
      schedules,
    };
    const names = [...Array.from({ length: workers }, (_, n) => `w${n + 1}`), 'p1'];
    const joining = names.map(async (name, index) => {
      const role = name.startsWith('p') ? 'producer' : 'worker';
      const member = await Member.join(name, role, index, this.tether, crew, this.#history);
      this.#members.push(member);
      await member.says('ready');
    });
    await Promise.all(joining);
    this.#members.sort((a, b) => (a.name < b.name ? -1 : 1)); // the seed picks by place
  }

  /** The director's own slowness and that of Redis are causes too: the connections of all lead through here. */
  #watch(): void {
    let last = Date.now();
    let asking = false;
    const beat = () => {
      const now = Date.now();
      if (now - last > SLOW_MS) this.#history.write({ ev: 'stall', from: last, to: now });
      last = now;
      if (asking || this.#serverIsHit) return;
      asking = true;
      const answered = () => {
        asking = false;
        if (Date.now() - now > SLOW_MS) this.#history.write({ ev: 'stall', from: now, to: Date.now() });
      };
      this.world.redis.ping().then(answered, answered);
    };
    this.#timers.push(
      setInterval(beat, 100),
      setInterval(() => void this.#look(false), LOOK_EVERY_MS),
    );
  }

  async #inject(fault: PlannedFault): Promise<void> {
    const onServer = ON_SERVER[fault.kind];
    if (onServer) {
      const turn = this.#server.then(() => this.#log(fault, 'redis', () => onServer(this.#scene, fault.variant)));
      this.#server = turn;
      return turn;
    }
    const free = this.#members.filter(
      ({ hit, role }) => !hit && (role === 'worker' || !['block', 'terminate'].includes(fault.kind)),
    );
    const member = free[Math.floor(fault.pick * free.length)];
    if (!member) return this.#log(fault, 'nobody', async () => false);
    member.hit = true;
    await this.#log(fault, member.name, () => ON_PROCESSES[fault.kind]!(member, this.#scene, fault.variant));
    member.hit = false;
  }

  async #log({ kind }: PlannedFault, target: string, inject: () => Promise<boolean>): Promise<void> {
    const begin = Date.now();
    if (target === 'redis') this.#serverIsHit = true;
    let note: string | undefined;
    const effect = await inject().catch((error: Error) => {
      note = error.message;
      return false;
    });
    if (target === 'redis') this.#serverIsHit = false;
    this.#history.write({ ev: 'fault', kind, target, begin, end: Date.now(), effect, note });
  }

  async #finish(): Promise<void> {
    const producers = this.#members.filter(({ role }) => role === 'producer');
    for (const producer of producers) {
      const quiet = producer.says('enough');
      producer.send({ enough: true });
      await quiet;
    }
    const until = performance.now() + DRAIN_MS;
    while (performance.now() < until && (await this.#waiting()) > 0) await sleep(100);
    const counted = producers[0]!.says('counted');
    producers[0]!.send({ count: true });
    await counted;
    await Promise.all(this.#members.map((member) => member.leave()));
    this.stopWatching();
    await this.#look(true);
  }

  async #waiting(): Promise<number> {
    const counts = await Promise.all(
      ['due', 'running', 'quarantine'].map((name) => this.world.redis.zcard(this.world.key(QUEUE, name))),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** What is stored at one moment. */
  async #look(final: boolean): Promise<void> {
    const looked = await this.#indexes().catch(() => undefined);
    if (looked) {
      const keys = final ? await this.#keys() : undefined;
      this.#history.write({ ev: 'store', final, ...looked, keys });
    } else if (final) {
      throw new Error('the store could not be read at the end');
    }
  }

  async #indexes(): Promise<{ indexes: Indexes; groups?: GroupIndexes } | undefined> {
    const { redis } = this.world;
    const key = (name: string) => this.world.key(QUEUE, name);
    const reading = redis.multi();
    for (const name of ['due', 'running', 'quarantine', 'dead']) reading.zrange(key(name), '0', '-1');
    for (const name of ['jobs', 'followups']) reading.hkeys(key(name));
    reading.hgetall(key('errors'));
    if (this.settings.limits) {
      for (const name of ['due', 'grouped', 'ring', 'held']) reading.zrange(key(name), '0', '-1', 'WITHSCORES');
      reading.hkeys(key('attempts')).hget(key('meta'), 'needs').time();
    }
    const results = await reading.exec();
    if (!results || results.some(([error]) => error)) return undefined;
    const [due, running, quarantine, deadIds, jobs, followups] = results.map(([, list]) => list as string[]);
    const errors = results[6]![1] as Record<string, string>;
    const dead = deadIds!.map((id) => [id, errors[id]?.split('\n', 1)[0] ?? ''] as const);
    const indexes = { due: due!, running: running!, quarantine: quarantine!, dead, jobs: jobs!, followups: followups! };
    return this.settings.limits
      ? { indexes, groups: groupsIn(results.slice(7).map(([, reply]) => reply)) }
      : { indexes };
  }

  /** A session that is over although a copy of a call may still come says so. */
  async #keys(): Promise<[name: string, ttlMs: number][]> {
    const { redis, prefix } = this.world;
    const found: [string, number][] = [];
    for await (const keys of redis.scanStream({ count: 1_000 })) {
      for (const key of keys as string[]) {
        const isOver = key.includes(':session:') && (await redis.get(key))?.startsWith(LANE_OVER);
        const ttlMs = await redis.pttl(key);
        if (ttlMs === GONE) continue; // Its time ended after the scan had found it.
        found.push([key.replace(`${prefix}:`, '') + (isOver ? OVER : ''), ttlMs]);
      }
    }
    return found;
  }
}

function groupsIn(replies: readonly unknown[]): GroupIndexes {
  const [due, grouped, ring, held, attempts, needs, time] = replies as [...string[][], string | null, string[]];
  const scores = (flat: unknown) => {
    const all = flat as string[];
    return Object.fromEntries(all.flatMap((member, n) => (n % 2 === 0 ? [[member, Number(all[n + 1])]] : [])));
  };
  const [seconds, micros] = time as string[];
  return {
    now: Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000),
    needs: String(needs ?? ''),
    due: scores(due),
    grouped: scores(grouped),
    ring: scores(ring),
    held: scores(held),
    attempts: attempts as string[],
  };
}
