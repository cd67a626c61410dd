import type { WeatherKind } from './fault-kinds.js';
import { WEATHER_KINDS } from './fault-kinds.js';
import type { Connection } from './network.js';
import type { SimulatedProcess } from './process.js';
import { Random } from './random.js';
import { errorReply } from './resp.js';
import type { Server } from './server.js';
import type { Simulation } from './simulation.js';
import { CLOCK } from './troubles.js';

/** Probabilities for each message to the server, and from it. A message of Pub/Sub is held back more often: there are few. */
const UP = { overtaken: 0.4, requestCut: 0.35, heartbeatLate: 0.02 };
const DOWN = { crossed: 0.2, replyCut: 0.28, joined: 0.2, standsStill: 0.28, heartbeatLate: 0.02 };
const PUSH = { crossed: 0.4, replyCut: 0.2, standsStill: 0.3 };
/** For each call of a script. */
const TURNED_AWAY = 0.006;
const SLIPS = 0.5;
const DROPPED = 0.015;
const LONGEST_JOIN_MS = 60;
const LONGEST_GAP_MS = 60;
const MOST_SLIPPED_MS = 40;
/** Parts of a lease: held back and paused for so long, nobody loses one. */
const HELD_PART = 0.1;
const SLIPPED_PART = 0.02;
const LATE_PARTS = [0.36, 0.55] as const;
/** It ends before all has mended, so that what it left behind mends as well. */
const CALM_BEFORE_MS = 12_000;
const STANDING = ['BUSY Redis is busy running a script.', 'LOADING Redis is loading the dataset in memory'] as const;
const OF_CLUSTER = ['TRYAGAIN Multiple keys request during rehashing of slot', 'CLUSTERDOWN The cluster is down'];

/** Who came to one place last, and when somebody else did. */
class Arrivals {
  #last: unknown;
  #lastAt = -Infinity;
  #otherAt = -Infinity;

  /** @returns when somebody else came for the last time */
  note(who: unknown, at: number): number {
    if (this.#last !== who) {
      this.#otherAt = this.#lastAt;
      this.#last = who;
    }
    this.#lastAt = at;
    return this.#otherAt;
  }
}

/** One message that it meddles with: its pieces, and for how long each one is held back. */
export interface Meddled {
  readonly kind: WeatherKind;
  readonly pieces: readonly { readonly data: Buffer; readonly heldMs: number }[];
  /** When its first piece would have arrived; NaN before it is sent. */
  since: number;
  /** Of a reply: what had happened in its process by the first piece. */
  entries: number;
}

/**
 * Small things that go wrong all the time, each of which everybody must bear without any loss: what a plan has no place for, because
 * there are some for each message. One counts when it changed what the library can see:
 *
 * - `overtaken`: a request was held back, and one for the same shard, which came by another connection after it would have come, ran first
 * - `requestCut`: the same of a request that came in pieces
 * - `crossed`: a reply or a message of Pub/Sub was held back, and one of another connection reached its process first
 * - `replyCut`: it came in pieces, and something else ran in its process between the first and the last
 * - `joined`: a reply was held back until another one came, and both were read at once
 * - `heartbeatLate`: a message of a process that ran jobs was held back for longer than from one heartbeat to the next
 * - `standsStill`: a process stood still, something of its own had to wait, and meanwhile a script of another process ran
 * - `clockSlips`: the clock of the server slipped by some ms, and a shard saw an earlier time than before, or a job was claimed that would
 *   not have been due
 * - `scriptsDropped`: the server forgot its scripts, and one was asked for
 * - `turnedAway`: a single call of a script was refused, and was not run
 */
export class Weather {
  readonly counts: Partial<Record<WeatherKind, number>> = {};
  readonly untilMs: number;
  /** By how much the clock of the server may be wrong either way, ms. */
  readonly mostSlippedMs: number;
  readonly #kinds: ReadonlySet<WeatherKind>;
  readonly #longestHeldMs: number;
  readonly #lateMs: readonly [number, number] | undefined;
  readonly #byConnection = new Map<string, Random>();
  readonly #shards = new Map<string, Arrivals>();
  readonly #processes = new WeakMap<SimulatedProcess, Arrivals>();
  readonly #seenAt = new Map<string, number>();
  readonly #scripts = new Map<SimulatedProcess, number>();
  #allScripts = 0;
  #slippedMs = 0;
  /** The last slip; undefined when it has counted. */
  #slip: { readonly ms: number } | undefined;

  constructor(private readonly simulation: Simulation) {
    const { leaseMs, commandTimeoutMs, faultsMs, mendingMs, weather } = simulation.configuration;
    this.#kinds = new Set(weather);
    this.untilMs = Math.max(faultsMs, faultsMs + mendingMs - CALM_BEFORE_MS - 2 * leaseMs);
    this.#longestHeldMs = Math.min(250, commandTimeoutMs / 4, leaseMs * HELD_PART);
    this.mostSlippedMs = this.#kinds.has('clockSlips') ? Math.min(MOST_SLIPPED_MS, leaseMs * SLIPPED_PART) : 0;
    const most = Math.min(leaseMs * LATE_PARTS[1], commandTimeoutMs * 0.8);
    this.#lateMs = most > leaseMs * LATE_PARTS[0] ? [leaseMs * LATE_PARTS[0], most] : undefined;
  }

  begin(): void {
    this.simulation.troubles.mark(CLOCK, this.untilMs + 1_000);
  }

  // --- Messages ---------------------------------------------------------------------------------------------------------

  ofRequest({ id, process }: Connection, data: Buffer): Meddled | undefined {
    if (this.#isOver) return undefined;
    const random = this.#randomOf(id);
    const kind = this.#drawn(random.next(), UP);
    if (!kind) return undefined;
    if (kind === 'requestCut') return cut(kind, random, data);
    return held(kind, data, kind === 'overtaken' ? this.#heldMs(random) : this.#late(random, process));
  }

  ofReply({ id, process, isSubscriber }: Connection, data: Buffer): Meddled | undefined {
    if (this.#isOver) return undefined;
    const random = this.#randomOf(id);
    const kind = this.#drawn(random.next(), isSubscriber ? PUSH : DOWN);
    if (!kind) return undefined;
    if (kind === 'standsStill') this.#standsStill(random, process);
    if (kind === 'standsStill' || kind === 'replyCut') return kind === 'replyCut' ? cut(kind, random, data) : undefined;
    if (kind === 'joined') return held(kind, data, Math.min(this.#longestHeldMs, random.between(5, LONGEST_JOIN_MS)));
    return held(kind, data, kind === 'crossed' ? this.#heldMs(random) : this.#late(random, process));
  }

  /** The last piece of a request is at the server. */
  requestArrived(connection: Connection, meddled: Meddled): void {
    if (meddled.kind === 'heartbeatLate') this.#countHeartbeat(connection.process);
    else connection.meddled = meddled;
  }

  /** A piece of what the server sent has reached its process. */
  replyArrived(connection: Connection, meddled: Meddled | undefined, isLast: boolean): void {
    const { process } = connection;
    let arrivals = this.#processes.get(process);
    if (!arrivals) this.#processes.set(process, (arrivals = new Arrivals()));
    const otherAt = arrivals.note(connection, this.simulation.engine.now);
    if (!meddled) return;
    if (Number.isNaN(meddled.entries)) meddled.entries = process.entries;
    if (!isLast) return;
    switch (meddled.kind) {
      case 'replyCut':
        if (process.entries - meddled.entries >= meddled.pieces.length) this.#count('replyCut');
        return;
      case 'crossed':
        if (otherAt > meddled.since) this.#count('crossed');
        return;
      case 'heartbeatLate':
        this.#countHeartbeat(process);
    }
  }

  /** So many replies were read at once. */
  joined(count: number): void {
    if (count > 1) this.#count('joined');
  }

  // --- At the server ----------------------------------------------------------------------------------------------------

  /** A script is about to be called. @returns the answer to a call that is not run */
  turnsAway(server: Server, { id }: Connection): Buffer | undefined {
    if (this.#isOver) return undefined;
    const random = this.#randomOf(id);
    if (this.mostSlippedMs > 0 && random.chance(SLIPS)) this.#slips(random);
    if (this.#kinds.has('scriptsDropped') && random.chance(DROPPED)) server.forgetScripts(this.#once('scriptsDropped'));
    if (!this.#kinds.has('turnedAway') || !random.chance(TURNED_AWAY)) return undefined;
    this.#count('turnedAway');
    return errorReply(random.pick(this.simulation.cluster ? [...STANDING, ...OF_CLUSTER] : STANDING));
  }

  /** A script begins. */
  scriptRuns(server: Server, connection: Connection, keys: readonly string[]): void {
    this.#allScripts++;
    this.#scripts.set(connection.process, (this.#scripts.get(connection.process) ?? 0) + 1);
    const shard = `${server.name} ${/\{[^}]*\}/.exec(keys[0] ?? '')?.[0] ?? ''}`;
    let arrivals = this.#shards.get(shard);
    if (!arrivals) this.#shards.set(shard, (arrivals = new Arrivals()));
    const otherAt = arrivals.note(connection, connection.arrivedAt);
    const { meddled } = connection;
    if (meddled && otherAt > meddled.since) this.#count(meddled.kind);
    if (this.mostSlippedMs > 0) this.#seesTime(shard, Math.floor(server.clockMs()));
  }

  /** A job is claimed that was due at this time. */
  claimed(due: number, now: number): void {
    if (this.#slip && this.#slip.ms > 0 && due > now - this.#slip.ms) this.#countSlip();
  }

  #seesTime(shard: string, now: number): void {
    if (this.#slip && this.#slip.ms < 0 && now < (this.#seenAt.get(shard) ?? 0)) this.#countSlip();
    this.#seenAt.set(shard, now);
  }

  /** While a message is on its way to it. */
  #standsStill(random: Random, process: SimulatedProcess): void {
    const { engine } = this.simulation;
    const ms = this.#heldMs(random);
    if (process.isDead || process.busyUntil > engine.now) return;
    process.standStill(ms);
    const { postponed } = process;
    const others = () => this.#allScripts - (this.#scripts.get(process) ?? 0);
    const before = others();
    engine.after(ms, () => {
      if (process.postponed > postponed && others() > before) this.#count('standsStill');
    });
  }

  /** To another time near the right one. */
  #slips(random: Random): void {
    const to = random.whole(-this.mostSlippedMs, this.mostSlippedMs);
    const ms = to - this.#slippedMs;
    this.#slippedMs = to;
    this.#slip = { ms };
    for (const node of this.simulation.nodes) node.clockOffset += ms;
  }

  // ----------------------------------------------------------------------------------------------------------------------

  get #isOver(): boolean {
    return this.simulation.engine.now >= this.untilMs;
  }

  #randomOf(connection: string): Random {
    let random = this.#byConnection.get(connection);
    if (!random) {
      random = new Random(this.simulation.seed, `weather of ${connection}`);
      this.#byConnection.set(connection, random);
    }
    return random;
  }

  #drawn(x: number, probabilities: Readonly<Partial<Record<WeatherKind, number>>>): WeatherKind | undefined {
    let from = 0;
    for (const kind of WEATHER_KINDS) {
      const probability = probabilities[kind];
      if (probability === undefined) continue;
      if (x < from + probability) return this.#kinds.has(kind) ? kind : undefined;
      from += probability;
    }
    return undefined;
  }

  #heldMs(random: Random): number {
    return random.between(0.1, 1) * this.#longestHeldMs;
  }

  /** As a trouble of its own: two of them may cost a lease. */
  #late(random: Random, process: SimulatedProcess): number {
    if (!this.#lateMs) return 0;
    const ms = random.between(...this.#lateMs);
    this.simulation.troubles.mark(process.name, ms + 2 * this.simulation.configuration.leaseMs);
    return ms;
  }

  #countHeartbeat(process: SimulatedProcess): void {
    const member = this.simulation.fleet.members.get(process.name);
    if (this.#lateMs && member?.process === process && member.runsAnything) this.#count('heartbeatLate');
  }

  #countSlip(): void {
    this.#slip = undefined;
    this.#count('clockSlips');
  }

  #once(kind: WeatherKind): () => void {
    let isCounted = false;
    return () => {
      if (!isCounted) this.#count(kind);
      isCounted = true;
    };
  }

  #count(kind: WeatherKind): void {
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
  }
}

function held(kind: WeatherKind, data: Buffer, heldMs: number): Meddled {
  return { kind, pieces: [{ data, heldMs }], since: NaN, entries: NaN };
}

/** At any byte, into two or three. */
function cut(kind: WeatherKind, random: Random, data: Buffer): Meddled | undefined {
  if (data.length < 3) return undefined;
  const places = Array.from({ length: random.whole(1, 2) }, () => random.whole(1, data.length - 1));
  const ends = [...new Set([...places, data.length])].toSorted((one, other) => one - other);
  const pieces = ends.map((end, i) => ({
    data: data.subarray(ends[i - 1] ?? 0, end),
    heldMs: i === 0 ? 0 : random.between(0.1, 1) * LONGEST_GAP_MS,
  }));
  return { kind, pieces, since: NaN, entries: NaN };
}
