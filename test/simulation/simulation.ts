import type { Instance } from '../../lib/instance/start-instance.js';
import { SimulatedCluster } from './cluster.js';
import { Damages } from './damage.js';
import { Engine } from './engine.js';
import { inject } from './faults.js';
import type { AnyKind, FaultKind } from './fault-kinds.js';
import { Fleet, processesOf } from './fleet.js';
import type { Member } from './fleet.js';
import type { VersionHistory } from './history.js';
import type { Master, Union } from './master.js';
import { Network } from './network.js';
import { beginNight } from './nights.js';
import { NodeClocks } from './node-clocks.js';
import type { Connection, Listener, NetworkWorld } from './network.js';
import { inOneTurn } from './one-turn.js';
import { Oracle } from './oracle.js';
import type { Violation } from './oracle.js';
import { LOOK_EVERY_MS, Patrol } from './patrol.js';
import { LONGEST_EXTENSION_MS } from './plan.js';
import type { Configuration, Fault, Operation, Plan } from './plan.js';
import type { SimulatedProcess, World } from './process.js';
import { projectOf } from './projects.js';
import { Punctuality } from './punctuality.js';
import { basesOfShards, shardBasesOf } from './queues.js';
import { Replicas } from './replicas.js';
import { SimulatedSentinels } from './sentinels.js';
import { Server } from './server.js';
import { scriptNameOf } from './store-modules.js';
import { oddInfo } from './traits.js';
import { Troubles } from './troubles.js';
import { Workload } from './workload.js';
import { Weather } from './weather.js';
import { witnesses } from './witness.js';
import { WorldRules } from './world-rules.js';

/** An answer of the old master may still be on its way when its connections are reset. */
const DECEIVED_MS = 2_000;
const SYNC_EVERY_MS = 1_000;
/** With `appendfsync no`. */
const SYNC_BY_SYSTEM_MS = 30_000;
/** From these on another server is the master, or somebody else has written into it. */
const COMPLICATED: readonly FaultKind[] = ['splitBrain', 'masterFails', 'masterChanges', 'damaged'];
/** What is left then is stuck. */
const LONGEST_END_MS = 45_000;

export interface Result {
  readonly seed: number;
  readonly hash: string;
  readonly lines: number;
  readonly events: number;
  readonly commands: number;
  readonly jobs: number;
  readonly simulatedMs: number;
  readonly violations: readonly Violation[];
  readonly counts: Oracle['counts'];
  readonly worstLateMs: number;
  /** Faults that took effect, by kind. */
  readonly effects: Readonly<Partial<Record<AnyKind, number>>>;
}

/** One run: a fleet, a network, a server, and the rules. The plan decides everything. */
export class Simulation implements World, NetworkWorld {
  readonly engine = new Engine();
  readonly troubles = new Troubles(this.engine);
  readonly oracle = new Oracle(this);
  readonly patrol = new Patrol(this);
  readonly damages = new Damages(this);
  readonly punctuality: Punctuality;
  readonly network: Network;
  readonly cluster: SimulatedCluster | undefined;
  readonly sentinels: SimulatedSentinels | undefined;
  readonly fleet: Fleet;
  readonly weather: Weather | undefined;
  /** Of all shards that there are or were. */
  readonly shardBases: string[];
  readonly clocks = new NodeClocks(this);
  #single: Server;
  readonly #workload = new Workload(this);
  /** Until when what a process hears may come from a master that was deposed. */
  readonly #deceived = new Map<string, number>();
  /** Until when a master that was deposed deceives its clients. */
  readonly #deceiving = new WeakMap<Listener, number>();
  /** Connections to such a master, by the processes that have them. */
  readonly #deceitful = new Map<string, Connection[]>();
  readonly #effective = new Map<number, FaultKind>();
  #askAt: number;
  #isStopped = false;
  #isComplicated = false;

  /** @param isIsolated each process has all modules to itself: slow, for comparison */
  constructor(
    readonly plan: Plan,
    readonly project: string,
    readonly isIsolated = false,
  ) {
    const { configuration } = plan;
    const witness = witnesses(this.clocks.first, this.oracle, new WorldRules(this), this.clocks.last);
    const make = (name: string, union?: Union) => this.#configured(new Server(this, witness, name, union));
    const hasSentinels = configuration.traits.includes('sentinels');
    this.#single = make(hasSentinels ? SimulatedSentinels.firstHost : 'redis');
    this.sentinels = hasSentinels ? new SimulatedSentinels(this, this.#single) : undefined;
    this.cluster = configuration.cluster ? new SimulatedCluster(this, make) : undefined;
    this.network = new Network(this, (host) => (this.cluster ?? this.sentinels ?? { at: () => this.#single }).at(host));
    this.fleet = new Fleet(
      this,
      configuration,
      (member, instance) => this.#started(member, instance),
      (member) => this.#workload.handlersOf(member),
    );
    this.shardBases = shardBasesOf(configuration, configuration.shards);
    this.punctuality = new Punctuality(this);
    this.weather = configuration.weather.length > 0 ? new Weather(this) : undefined;
    this.#askAt = this.#worksUntil;
  }

  get seed(): number {
    return this.plan.seed;
  }

  get configuration(): Configuration {
    return this.plan.configuration;
  }

  get latency(): number {
    return this.configuration.latency;
  }

  /** One server, which nobody has deposed yet, one build of the library, and queues that stay as they are. */
  get isSimple(): boolean {
    const { cluster, older, reshards, transfers } = this.configuration;
    return !cluster && !older && reshards.length === 0 && transfers === 0 && !this.#isComplicated;
  }

  /** A fault is about to happen. */
  injects({ kind }: Fault): void {
    if (COMPLICATED.includes(kind)) this.#isComplicated = true;
  }

  /** The queue is going to have so many shards. */
  knowsShards(count: number): void {
    for (const base of basesOfShards(count)) if (!this.shardBases.includes(base)) this.shardBases.push(base);
  }

  afterRollback(): void {
    this.#workload.operators.afterRollback();
    this.damages.afterRollback();
  }

  forget(connection: Connection): void {
    this.network.connections.delete(connection);
  }

  /** The rules need two of them. */
  hears(channel: string): boolean {
    return channel === 'completed' || channel === 'leaseLost' || !this.configuration.traits.includes('unheard');
  }

  get isChatty(): boolean {
    return this.configuration.traits.includes('chatty');
  }

  heard(process: SimulatedProcess, channel: string, message: unknown): void {
    if (process.isDead || (channel !== 'completed' && channel !== 'leaseLost')) return;
    const { id, queue } = message as { id: string; queue: string };
    this.engine.trace(channel, process.id, id);
    if (channel === 'completed') return;
    this.oracle.counts.lost++;
    this.fleet.members.get(process.name)?.leaseLost(queue, id);
  }

  tookEffect({ n, kind }: Fault): void {
    this.#effective.set(n, kind);
  }

  /** A replica takes over, though the master lives: whoever is connected to it goes on there for a while. */
  splitBrain(ms: number, unreplicated: number): void {
    const old = this.#single;
    this.deceive(old, ms);
    this.replaceMaster(unreplicated, `${old.name}'`);
    this.engine.after(ms, () => old.retire());
  }

  /** A replica of it takes over. */
  replaceMaster(unreplicated: number, name: string): Server {
    const old = this.#single;
    const { heir, tellLost } = old.depose(this.keptByReplica(old, unreplicated), name, this.oracle.ofDeposed);
    this.#single = heir;
    tellLost();
    return heir;
  }

  /** It comes back with what is on its disk. */
  takeServerAway(ms: number): void {
    if (this.#single.isListening) this.#single.restart(ms, 0, this.#single.disk.afterRestart, 'restart', () => {});
  }

  /** How many writes a replica has that becomes the master. @param unreplicated of replicas that nobody has counted */
  keptByReplica({ disk, replicas }: Server, unreplicated: number): number {
    if (replicas) return replicas.most();
    return Math.max(disk.afterRestart, disk.length - unreplicated);
  }

  /** For so long its clients take it for the master. */
  deceive(old: Server, ms: number): void {
    this.#deceiving.set(old, this.engine.now + ms + DECEIVED_MS);
    for (const connection of this.network.connections) this.connected(connection);
  }

  /** A connection that was on its way when its server was deposed ends there all the same. */
  connected(connection: Connection): void {
    const { process, server } = connection;
    const until = this.#deceiving.get(server);
    if (until === undefined) return;
    this.#deceived.set(process.id, Math.max(until, this.#deceived.get(process.id) ?? 0));
    // Not to what it is afterwards: a replica.
    if (until - DECEIVED_MS <= this.engine.now) return;
    this.#deceitful.set(process.id, [...(this.#deceitful.get(process.id) ?? []), connection]);
  }

  sent(data: Buffer): void {
    this.oracle.sessions.sent(data);
  }

  /**
   * What such a master has answered is still on its way to a process that is frozen, or whose network is slow: it hears of that before it
   * hears that its connection has ended, however long after.
   */
  isDeceived(process: SimulatedProcess): boolean {
    const { now } = this.engine;
    if ((this.#deceived.get(process.id) ?? 0) > now) return true;
    return (this.#deceitful.get(process.id) ?? []).some(({ clientGoneAt }) => clientGoneAt + DECEIVED_MS > now);
  }

  nameOfScript(source: string): string {
    const name = scriptNameOf(this.project, source);
    if (name !== '?' || !this.configuration.older) return name;
    return scriptNameOf(projectOf(this.project, 'older'), source);
  }

  /** A call that stores a version was answered. */
  acknowledged(process: SimulatedProcess, id: string, version: VersionHistory): void {
    version.isAcknowledged = true;
    // An answer that came too late for its call is given to the next one that repeats it, long after.
    const { storedByDeposedAt, dueSetAt } = this.oracle.job(id);
    if ((this.isDeceived(process) || storedByDeposedAt > dueSetAt) && version.isSafeFrom !== 'failover')
      version.excuse ??= 'it was acknowledged by a master that had been deposed';
  }

  /** The master, as others see it; of a Cluster all of them. */
  get server(): Master {
    return this.cluster ?? this.#single;
  }

  get nodes(): readonly Server[] {
    return this.cluster ? this.cluster.masters : [this.#single];
  }

  #configured(server: Server): Server {
    const { persistence, replicas, traits } = this.configuration;
    server.disk.persistence = persistence;
    server.oddInfo = oddInfo(traits);
    if (replicas > 0) server.replicas = new Replicas(this.seed, server.name, this.engine, server.disk, replicas);
    return server;
  }

  /** Server time, as what runs on the shard of this key knows it. */
  clockMs(key: string): number {
    return this.clocks.now(key);
  }

  /** Until the next job is due, ms; Infinity without any. */
  untilNextDue(): number {
    const heads = this.shardBases.map((base) => {
      const [, due] = this.oracle.peek('ZRANGE', `${base}due`, '0', '0', 'WITHSCORES') as string[];
      return due === undefined ? Infinity : Number(due) - this.clockMs(base);
    });
    return Math.min(...heads);
  }

  // --- The run ----------------------------------------------------------------------------------------------------------

  get #worksUntil(): number {
    const { faultsMs, mendingMs, calmMs } = this.configuration;
    return faultsMs + mendingMs + calmMs;
  }

  get #endsAt(): number {
    const { leaseMs, longestDelayMs, extends: extending, burstWorkMs } = this.configuration;
    const extended = extending > 0 ? LONGEST_EXTENSION_MS : 0;
    // Those of a burst whose worker died are in quarantine, of which a part runs at a time, until all others have waited there for long
    // enough; and a process that is replaced begins anew.
    return this.#worksUntil + LONGEST_END_MS + 2 * leaseMs + longestDelayMs + extended + 3 * burstWorkMs;
  }

  /**
   * Runs everything in one turn of the real event loop.
   *
   * @param stop ends at the first violation
   * @param untilMs ends at this simulated time, without the rules about what must be over by then
   */
  async run({ stop = false, untilMs = Infinity, slow = false } = {}): Promise<Result> {
    this.#prepare();
    if (slow) return this.#runSlowly();
    const next = () => {
      this.#isStopped = (stop && this.oracle.violations.length > 0) || this.engine.now > untilMs;
      return !this.#isStopped && this.#next();
    };
    await inOneTurn(next, (error) => this.oracle.report('threw', firstLines(error)));
    return this.#finish();
  }

  /** The same by documented means: a turn of the real event loop for each event. Both must give the same trace. */
  async #runSlowly(): Promise<Result> {
    await new Promise<void>((done) => {
      const turn = () => (this.#next() ? void setImmediate(turn) : done());
      setImmediate(turn);
    });
    return this.#finish();
  }

  #prepare(): void {
    const { configuration } = this;
    for (const { name, role } of processesOf(configuration)) this.fleet.boot(name, role);
    for (const operation of this.plan.operations) {
      const happens = operation.kind === 'night' ? () => beginNight(this, operation) : () => this.#perform(operation);
      this.engine.at(operation.at, happens);
    }
    for (const fault of this.plan.faults) this.engine.at(fault.at, () => inject(this, fault));
    this.weather?.begin();
    const syncEveryMs = configuration.persistence === 'no' ? SYNC_BY_SYSTEM_MS : SYNC_EVERY_MS;
    this.#every(syncEveryMs, 137, () => this.server.sync());
    this.#every(LOOK_EVERY_MS, 251, () => {
      if (this.server.isListening) this.patrol.look();
    });
  }

  #every(ms: number, first: number, run: () => void): void {
    const again = () => {
      run();
      this.engine.after(ms, again);
    };
    this.engine.after(first, again);
  }

  /** Operations are the producer's; it does them when it lives and is not frozen. */
  #perform(operation: Operation): void {
    const member = this.fleet.members.get('producer');
    if (!member?.isAlive || member.isStopping) return;
    this.engine.after(0, () => this.#workload.perform(member, operation), member.process);
  }

  #started(member: Member, instance: Instance): void {
    this.#workload.started(member, instance);
  }

  #next(): boolean {
    const { now } = this.engine;
    if (now > this.#askAt) {
      if (this.patrol.isDone) return false;
      this.#askAt = now + 1_000;
    }
    try {
      return this.engine.step(this.#endsAt);
    } catch (error) {
      this.oracle.report('threw', firstLines(error));
      return true;
    }
  }

  #finish(): Result {
    if (!this.#isStopped) this.patrol.atEnd();
    const effects: Partial<Record<AnyKind, number>> = { ...this.weather?.counts };
    for (const kind of this.#effective.values()) effects[kind] = (effects[kind] ?? 0) + 1;
    const { hash, lines, events, now } = this.engine;
    const { violations, counts, worstLateMs, jobs } = this.oracle;
    return {
      seed: this.seed,
      hash,
      lines,
      events,
      commands: this.server.commands,
      jobs: jobs.size,
      simulatedMs: now,
      violations,
      counts,
      worstLateMs: Math.round(worstLateMs),
      effects,
    };
  }
}

export function firstLines(error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return text.split('\n').slice(0, 4).join(' | ');
}
