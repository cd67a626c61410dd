import type { Took } from './network.js';
import type { Connection } from './network.js';
import { baseOfKey } from './queues.js';
import type { Server } from './server.js';
import type { Simulation } from './simulation.js';
import type { SimulatedProcess } from './process.js';
import { NOBODY } from './witness.js';
import type { ServerWitness } from './witness.js';

/** The clock by which a shard goes came to another time. */
export interface ClockJump {
  /** Simulated ms. */
  readonly at: number;
  readonly ms: number;
  /** What the keys of these shards begin with; all of them for undefined. */
  readonly bases: ReadonlySet<string> | undefined;
}

/** A clock of one node that is wrong for a while. */
interface Step {
  readonly ms: number;
  readonly took: Took;
}

const ASK_AGAIN_MS = 50;

/**
 * Clocks of the nodes of a Cluster, each of which may be wrong by itself. All shards of a node go by its clock, and a shard that moves to
 * another node goes by that one's from then on: for whoever works on it, its clock jumps.
 */
export class NodeClocks {
  readonly jumps: ClockJump[] = [];
  /** Whose script runs now. */
  #running: Server | undefined;
  readonly #steps = new Map<Server, Step>();
  /** What ran a script of each process the last time. */
  readonly #last = new WeakMap<SimulatedProcess, Server>();
  /** To be told first of what begins, and last of what ends. */
  readonly first: ServerWitness = { ...NOBODY, scriptBegins: ({ connection }) => this.#begins(connection) };
  readonly last: ServerWitness = { ...NOBODY, scriptEnds: () => (this.#running = undefined) };

  constructor(private readonly simulation: Simulation) {}

  /** By the clock of whatever runs a script now; else of the node that has this key. */
  now(key: string): number {
    return this.#running?.clockMs() ?? this.simulation.server.clockMs(key);
  }

  jumpsOf(key: string): ClockJump[] {
    const base = baseOfKey(key);
    return this.jumps.filter(({ bases }) => bases === undefined || bases.has(base));
  }

  /** By how much the clock of this shard was set back from the furthest it has been since then, ms. @param since simulated ms */
  setBackSince(key: string, since: number): number {
    let [jumped, most] = [0, 0];
    for (const jump of this.jumpsOf(key)) {
      if (jump.at < since) continue;
      jumped += jump.ms;
      most = Math.max(most, jumped);
    }
    return most - jumped;
  }

  /**
   * Whether the clock of this shard may have shown a time, between another one that it has shown and now. A clock that slips or jumps may go
   * back behind a time that it has shown.
   *
   * @param shown epoch ms, in whole ms as scripts know them, and when that was: simulated ms
   */
  hasShown(key: string, ms: number, shown: { readonly clock: number; readonly at: number }): boolean {
    const { engine, weather } = this.simulation;
    const slippedMs = 2 * (weather?.mostSlippedMs ?? 0);
    let [jumped, most, least] = [0, 0, 0];
    for (const jump of this.jumpsOf(key)) {
      if (jump.at < shown.at) continue;
      jumped += jump.ms;
      most = Math.max(most, jumped);
      least = Math.min(least, jumped);
    }
    const latest = shown.clock + 1 + engine.now - shown.at + most + slippedMs;
    return ms >= shown.clock + least - slippedMs && ms <= latest;
  }

  /** All clocks. */
  moveAll(ms: number): void {
    for (const node of this.simulation.nodes) node.clockOffset += ms;
    this.jumps.push({ at: this.simulation.engine.now, ms, bases: undefined });
  }

  /**
   * One node's clock is wrong for a while, and then set right.
   *
   * @param took a process has asked this node and another one while their clocks differed
   * @returns false where a clock must not move now
   */
  step(node: Server, ms: number, forMs: number, took: Took): boolean {
    const { cluster, engine } = this.simulation;
    if (!cluster || cluster.isBusy || ms === 0 || this.#steps.has(node)) return false;
    const place = cluster.masters.indexOf(node);
    if (place < 0) return false;
    this.#move(node, ms);
    this.#steps.set(node, { ms, took });
    const back = () => {
      if (cluster.isBusy) return engine.after(ASK_AGAIN_MS, back);
      // Another one may have its slots by now, with its clock.
      const present = cluster.masters[place]!;
      this.#steps.delete(node);
      this.#move(present, -ms);
    };
    engine.after(forMs, back);
    return true;
  }

  /** A shard goes by another clock from now on. */
  moved(bases: readonly string[], from: Server, to: Server): void {
    const ms = to.clockOffset - from.clockOffset;
    if (ms !== 0) this.jumps.push({ at: this.simulation.engine.now, ms, bases: new Set(bases) });
  }

  #move(node: Server, ms: number): void {
    const { cluster, engine, shardBases } = this.simulation;
    node.clockOffset += ms;
    const bases = new Set(shardBases.filter((base) => cluster?.nodeOf(base) === node));
    this.jumps.push({ at: engine.now, ms, bases });
    engine.trace('clock', node.name, String(ms));
  }

  #begins({ process, server }: Connection): void {
    const node = server as Server;
    this.#running = node;
    const other = this.#last.get(process);
    this.#last.set(process, node);
    if (!other || other === node || other.clockOffset === node.clockOffset) return;
    for (const one of [node, other]) this.#steps.get(one)?.took();
  }
}
