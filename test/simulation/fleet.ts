import type { Instance } from '../../lib/instance/start-instance.js';
import type { startInstance } from '../../lib/instance/start-instance.js';
import type { HandlerFunction } from '../../lib/worker/delay-queue.registry.js';
import { Application } from './application.js';
import type { ClaimHistory } from './history.js';
import type { Network } from './network.js';
import type { Configuration } from './plan.js';
import { SimulatedProcess } from './process.js';
import { isPlain, QUEUES_OF_PULLERS, queuesOfWorkers, TAKEN } from './queues.js';
import type { World } from './process.js';
import type { SimulatedEvent } from './engine.js';

/** Of the library: the present one, or an older one. */
export type Build = 'present' | 'older';
export type Role = 'producer' | 'worker' | 'puller';

/** One run of a job in one process. */
export interface RunInProcess {
  readonly id: string;
  readonly n: number;
  readonly startedAt: number;
  /** What it runs under. */
  readonly claim: ClaimHistory | undefined;
  endedAt: number | undefined;
  /** It goes on although its lease was lost, and has no slot any more. */
  isZombie: boolean;
  /** From when on its time is over, ms, where its signal had been aborted before: its handler does not hear of it. */
  unheardTimeoutAt?: number;
}

/** A worker got another concurrency. */
interface Resize {
  readonly from: number;
  readonly to: number;
  /** The numbers of the last calls of all sessions by then. */
  readonly calls: ReadonlyMap<string, number>;
}

/** A process of the fleet, with what the rules must know of it. */
export class Member {
  instance: Instance | undefined;
  readonly application: Application;
  /** When it was asked to end; Infinity while it was not. */
  stoppingAt = Infinity;
  /** When something became wrong with it that never heals, simulated ms; Infinity while nothing has. */
  brokenAt = Infinity;
  /** How many shards it takes the queue to have. */
  readonly shards: number;
  /** It has drained. */
  isClosed = false;
  readonly bootedAt: number;
  /** When its first step in each shard was answered, which tells it the clock of the server there. */
  readonly #firstAnswers = new Map<string, number>();
  /** The last run of each job: two queues may have jobs of one id. */
  readonly #runs = new Map<string, RunInProcess>();
  readonly #unfinished = new Map<string, RunInProcess>();
  /** Whether the present `pull()` sends heartbeats. */
  pullKeepsLease = true;
  /** Since when a `pull()` has waited, simulated ms; Infinity while none does. */
  pullsSince = Infinity;
  /** Since when each `take()` has left nothing that was due, simulated ms; Infinity after one that may have. */
  takesSince = Infinity;
  // What it sent since the rules looked for the last time.
  steps = 0;
  usefulSteps = 0;
  fromQuarantine = 0;
  /** How many connections its process had begun when the rules looked for the last time. */
  connections = 0;
  lastStepAt = 0;
  readonly #running = new Map<string, number>();
  readonly #lastFullAt = new Map<string, number>();
  /** Of `jobs`. */
  readonly #resizes: Resize[] = [];
  /** Since when it works on a queue that it had given up, simulated ms; Infinity of one that it has given up. */
  readonly #servesSince = new Map<string, number>();

  constructor(
    readonly process: SimulatedProcess,
    readonly role: Role,
    private readonly configuration: Configuration,
    shards: number,
  ) {
    this.application = new Application(process, configuration, role);
    this.shards = shards;
    this.bootedAt = process.world.engine.now;
  }

  get id(): string {
    return this.process.id;
  }

  stepAnswered(shard: string): void {
    if (!this.#firstAnswers.has(shard)) this.#firstAnswers.set(shard, this.process.world.engine.now);
  }

  /** Simulated ms; Infinity before. */
  firstAnswerAt(shard: string): number {
    return this.#firstAnswers.get(shard) ?? Infinity;
  }

  get isBroken(): boolean {
    return this.brokenAt < Infinity;
  }

  get isStopping(): boolean {
    return this.stoppingAt < Infinity;
  }

  get isAlive(): boolean {
    return !this.process.isDead;
  }

  /** Queues whose jobs it runs. */
  get queues(): readonly string[] {
    if (this.role === 'producer') return [];
    return this.role === 'puller' ? QUEUES_OF_PULLERS : queuesOfWorkers(this.configuration);
  }

  serves(queue: string): boolean {
    return this.queues.includes(queue) && this.servesSince(queue) < Infinity;
  }

  /** Simulated ms. */
  servesSince(queue: string): number {
    return this.#servesSince.get(queue) ?? this.bootedAt;
  }

  /** Since when it has worked on all of its queues, simulated ms. */
  get servesAllSince(): number {
    return Math.max(this.bootedAt, ...this.#servesSince.values());
  }

  givesUp(queue: string): void {
    this.#servesSince.set(queue, Infinity);
  }

  takesUp(queue: string): void {
    this.#servesSince.set(queue, this.process.world.engine.now);
  }

  get runs(): Iterable<RunInProcess> {
    return this.#runs.values();
  }

  /** Those of `runs` that have not ended. */
  get unfinished(): Iterable<RunInProcess> {
    return this.#unfinished.values();
  }

  /** The last one of this job. */
  runOf(queue: string, id: string): RunInProcess | undefined {
    return this.#runs.get(`${queue} ${id}`);
  }

  running(queue: string): number {
    return this.#running.get(queue) ?? 0;
  }

  get runsAnything(): boolean {
    return [...this.#running.values()].some((count) => count > 0);
  }

  runBegins(queue: string, id: string, n: number, claim: ClaimHistory | undefined): RunInProcess {
    const run = { id, n, startedAt: this.process.world.engine.now, claim, endedAt: undefined, isZombie: false };
    this.#runs.set(`${queue} ${id}`, run);
    this.#unfinished.set(`${queue} ${id}`, run);
    this.#count(queue, 1);
    return run;
  }

  runEnds(queue: string, run: RunInProcess): void {
    if (!run.isZombie) this.#count(queue, -1);
    run.endedAt = this.process.world.engine.now;
    if (this.#unfinished.get(`${queue} ${run.id}`) === run) this.#unfinished.delete(`${queue} ${run.id}`);
  }

  /** The library says so; its slot is another job's from now on. */
  leaseLost(queue: string, id: string): void {
    const run = this.runOf(queue, id);
    if (run) this.ranOut(queue, run);
  }

  /** Its time was over, and its slot is another job's; the handler goes on. */
  ranOut(queue: string, run: RunInProcess): void {
    if (run.endedAt !== undefined || run.isZombie) return;
    run.isZombie = true;
    this.#count(queue, -1);
  }

  #count(queue: string, change: number): void {
    const before = this.running(queue);
    const after = before + change;
    this.holds(queue, Math.max(before, after));
    this.#running.set(queue, after);
  }

  /** So many of its slots are taken now. */
  holds(queue: string, jobs: number): void {
    if (jobs >= this.slots(queue)) this.#lastFullAt.set(queue, this.process.world.engine.now);
  }

  /** A batch waits until it is full, and so leaves slots free on purpose: only without any it has certainly room. */
  slots(queue: string): number {
    if (!isPlain(queue)) return 1;
    const { concurrency } = this.configuration;
    return queue === 'jobs' ? (this.#resizes.at(-1)?.to ?? concurrency) : concurrency;
  }

  /** `setConcurrency()` of `jobs`. */
  resized(to: number, calls: ReadonlyMap<string, number>): void {
    this.#resizes.push({ from: this.slots('jobs'), to, calls });
    this.#lastFullAt.set('jobs', this.process.world.engine.now);
  }

  /**
   * How many jobs may run when one of this claim begins. Excused: in each session one step may have been planned under another bound,
   * and waited to be sent.
   */
  mostRunning(queue: string, claim: ClaimHistory | undefined): number {
    let most = this.slots(queue);
    if (queue !== 'jobs') return most;
    for (const { from, to, calls } of this.#resizes.toReversed()) {
      const isLater = claim?.queue === queue && claim.before > (calls.get(claim.session) ?? 0);
      if (isLater) break;
      most = Math.max(most, from, to);
    }
    return most;
  }

  /** Simulated ms since when it has had a free slot; in the future while it has none. */
  freeSince(queue: string): number {
    if (this.running(queue) >= this.slots(queue)) return Infinity;
    const asks =
      queue === 'pulled' ? this.pullsSince : queue === TAKEN ? this.takesSince : this.servesSince(queue) + 1_000;
    return Math.max(this.#lastFullAt.get(queue) ?? 0, asks);
  }
}

export function processesOf({ workers, pull }: Configuration): { readonly name: string; readonly role: Role }[] {
  const all = Array.from({ length: workers }, (_, n) => ({ name: `worker${n}`, role: 'worker' as const }));
  return [
    { name: 'producer', role: 'producer' },
    ...all,
    ...(pull ? [{ name: 'puller', role: 'puller' as const }] : []),
  ];
}

/** The processes, by name. */
export class Fleet {
  readonly members = new Map<string, Member>();
  /** How many shards processes that start take the queue to have. */
  shards: number;
  /** Processes that start with an older build of the library. */
  readonly older = new Set<string>();
  readonly #incarnations = new Map<string, number>();
  readonly #byProcessName = new Map<string, Member>();

  constructor(
    private readonly world: World & { readonly network: Network },
    private readonly configuration: Configuration,
    private readonly started: (member: Member, instance: Instance) => void,
    /** Functions that a process has for its queues from the beginning. */
    private readonly handlersOf: (member: Member) => Readonly<Record<string, HandlerFunction<any>>>,
  ) {
    this.shards = configuration.shards;
    if (configuration.older) for (const { name } of processesOf(configuration)) this.older.add(name);
  }

  get living(): Member[] {
    return [...this.members.values()].filter((member) => member.isAlive);
  }

  /** Undefined of one that has ended, and has a successor under its name. */
  of(process: object): Member | undefined {
    for (const member of this.members.values()) if (member.process === process) return member;
    return undefined;
  }

  /** The process that calls itself so in a step: its channel, `#`, a number. */
  ofWorker(worker: string): Member | undefined {
    return this.#byProcessName.get(/wake:([^#]*)/.exec(worker)?.[1] ?? '');
  }

  boot(name: string, role: Role): Member {
    const incarnation = (this.#incarnations.get(name) ?? 0) + 1;
    this.#incarnations.set(name, incarnation);
    const process = new SimulatedProcess(this.world, name, incarnation, this.older.has(name) ? 'older' : 'present');
    const member = new Member(process, role, this.configuration, this.shards);
    // What never heals is wrong with its machine, and not with one process on it.
    member.brokenAt = this.members.get(name)?.brokenAt ?? Infinity;
    this.members.set(name, member);
    this.world.engine.trace('boot', member.id, `${role} ${process.build}`);
    this.world.engine.after(0, () => this.#start(member), member.process);
    return member;
  }

  /** Its memory is gone; its system closes the connections. */
  kill(member: Member): void {
    member.process.kill();
    for (const connection of this.world.network.of(member.process)) connection.abandon();
  }

  /** A machine that is lost is given up, and another one takes its place. */
  replace(member: Member): void {
    if (member.isAlive) this.kill(member);
    this.boot(`${member.process.name}+`, member.role);
  }

  reboot(member: Member, afterMs: number): SimulatedEvent {
    return this.world.engine.after(afterMs, () => this.boot(member.process.name, member.role));
  }

  #start(member: Member): void {
    const { loader } = member.process;
    const start = loader.library<{ startInstance: typeof startInstance }>('instance/start-instance').startInstance;
    const options = member.application.options(member.shards);
    const booting = start({ options, handlers: this.handlersOf(member) });
    booting.then(
      (instance) => {
        member.instance = instance;
        this.#byProcessName.set(instance.context.connection.processName, member);
        this.started(member, instance);
      },
      (error: unknown) => {
        this.world.engine.trace('boot failed', member.id, String(error));
        // An operator whose change of the number was never answered reads here that it was made.
        if (error instanceof Error && 'stored' in error) this.shards = Number(error.stored);
        this.kill(member);
        this.reboot(member, 1_000);
      },
    );
  }
}
