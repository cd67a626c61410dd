import type { Instance } from '../../lib/instance/start-instance.js';
import type { ResizeOperation } from './bounds.js';
import { closeInstanceOf } from './ending.js';
import type { Build, Member } from './fleet.js';
import type { FurtherOperation } from './further-operations.js';
import { startKillsAnew } from './history.js';
import { Looks } from './looks.js';
import { baseOf } from './queues.js';
import type { Simulation } from './simulation.js';
import { ALL } from './troubles.js';

/** How long running jobs may take to end before shards move. */
const RESHARD_WAIT_MS = 5_000;
const DONE_AGAIN_MS = 1_000;
/** What a removed queue needs to be as punctual as before. */
const ANEW_MS = 10_000;

type Call = (instance: Instance) => Promise<unknown>;

/** What producers change in stored jobs, and what operators do to whole queues. */
export class Operators {
  /** The number of shards that an operator wants; undefined while nobody has changed it. */
  #shardsWanted: number | undefined;
  #isResharding = false;
  /** What ended a pause. */
  readonly #resumed: Call[] = [];

  readonly #looks: Looks;

  constructor(private readonly simulation: Simulation) {
    this.#looks = new Looks(simulation);
  }

  perform(member: Member, instance: Instance, operation: FurtherOperation): void {
    const { inspector, producer } = instance;
    const { troubles, oracle } = this.simulation;
    if (operation.kind === 'deploy') return this.#deploy(operation.process, operation.build);
    const { queue } = operation;
    switch (operation.kind) {
      case 'update':
      case 'signal':
        return oracle.calls.unwaited(this.#update(member, instance, operation));
      case 'runNow':
        return oracle.calls.unwaited(producer.runNow(queue, operation.id));
      case 'transfer':
        return oracle.calls.unwaited(this.#transfer(member, instance, operation));
      case 'pausePublishing':
        return this.pauseFor(operation.forMs, inspector.pausePublishing(queue), (by) =>
          by.inspector.resumePublishing(queue),
        );
      case 'requeueSome': {
        const { resetAttempts, spread } = operation;
        for (const job of oracle.jobs.values()) {
          if (job.queue !== queue) continue;
          // It may die of one more failure.
          job.mayDie = true;
          // What ended processes before may do so as often again.
          if (job.isDead) startKillsAnew(job);
        }
        return oracle.calls.unwaited(inspector.requeueDead(queue, 'all', { resetAttempts, spread }));
      }
      case 'removeDead':
        return oracle.calls.unwaited(inspector.removeDead(queue, 'all'));
      case 'purge':
        return oracle.calls.unwaited(inspector.purge(queue, { states: operation.states }));
      case 'removeQueue':
        // Its workers register anew, and those that run its jobs lose their leases.
        troubles.mark(ALL, ANEW_MS);
        return oracle.calls.unwaited(inspector.remove(queue, { force: true }).then(() => troubles.mark(ALL, ANEW_MS)));
      case 'look':
        return this.#looks.perform(member, instance, queue);
      case 'reshard':
        if (!this.#isResharding) this.#reshard(operation.to);
    }
  }

  /** After writes were lost the number of shards may be another one, or a change of it may have begun again. */
  afterRollback(): void {
    for (const resume of this.#resumed) this.untilDone(0, resume);
    if (this.#shardsWanted !== undefined && !this.#isResharding) this.#reshard(this.#shardsWanted);
  }

  /**
   * Whatever ends a pause that is still on its way may come before it, in each shard by itself: also where the pause is answered first. Then
   * the queue is resumed once more.
   */
  pauseFor(forMs: number, pausing: Promise<void>, resume: Call): void {
    let isPausing = true;
    let isBeside = false;
    const settled = () => (isPausing = false);
    const paused = pausing.then(settled, settled);
    this.simulation.oracle.calls.unwaited(pausing);
    const call: Call = (by) => {
      isBeside = isPausing;
      return resume(by);
    };
    this.#resume(forMs, call, () => {
      if (isBeside) void paused.then(() => this.#resume(0, resume));
    });
  }

  /** For good: also when the answer, or the call, is lost with a server. */
  #resume(afterMs: number, call: Call, done: () => void = () => {}): void {
    this.untilDone(afterMs, call, () => {
      this.#resumed.push(call);
      done();
    });
  }

  /** Again and again, by whichever process lives: a queue that nobody resumes would be no finding. */
  untilDone(afterMs: number, call: Call, done: () => void = () => {}): void {
    const { engine, troubles, fleet, configuration, oracle } = this.simulation;
    engine.after(afterMs, () => {
      troubles.mark(ALL, 3_000);
      let isOver = false;
      const once = (then: () => void) => () => {
        if (isOver) return;
        isOver = true;
        then();
      };
      const again = () => this.untilDone(DONE_AGAIN_MS, call, done);
      const member = fleet.living.find((one) => one.instance && !one.isStopping && !one.process.isFrozen);
      if (!member) return again();
      // A master that was deposed says yes, and nothing comes of it.
      const answered = () => (this.simulation.isDeceived(member.process) ? again() : done());
      const failed = (error: Error) => {
        oracle.calls.refused(error);
        once(again)();
      };
      engine.after(0, () => void call(member.instance!).then(once(answered), failed), member.process);
      const look = () => {
        if (isOver) return;
        troubles.mark(ALL, 3_000);
        if (!member.isAlive || member.isStopping || member.process.isFrozen) once(again)();
        else engine.after(DONE_AGAIN_MS, look);
      };
      engine.after(3 * configuration.commandTimeoutMs, look);
    });
  }

  /** Whatever runs goes on, and for a while a worker has room for fewer or more. */
  resize({ worker, to, forMs }: ResizeOperation): void {
    const { engine, fleet, oracle, configuration } = this.simulation;
    const member = fleet.members.get(`worker${worker}`);
    if (!member?.isAlive) return;
    const set = (concurrency: number) => {
      if (!member.instance || member.isStopping) return;
      member.resized(concurrency, oracle.sessions.callsSoFar());
      member.instance.registry.setConcurrency('jobs', concurrency);
      engine.trace('resized', member.id, concurrency);
    };
    engine.after(0, () => set(to), member.process);
    engine.after(forMs, () => set(configuration.concurrency), member.process);
  }

  // --- Shards -----------------------------------------------------------------------------------------------------------

  /** As docs/shards.md says it: the number is changed, then all processes start with the new one. */
  #reshard(to: number): void {
    const { fleet, troubles, oracle, engine } = this.simulation;
    const beganAt = engine.now;
    this.#isResharding = true;
    this.#shardsWanted = to;
    this.simulation.knowsShards(to);
    troubles.mark(ALL, RESHARD_WAIT_MS);
    this.untilDone(
      0,
      (by) => reshard(by, to),
      () => {
        this.#isResharding = false;
        fleet.shards = to;
        troubles.mark(ALL, ANEW_MS + RESHARD_WAIT_MS);
        for (const member of fleet.living)
          if (member.shards !== to && !member.isStopping) this.#restart(member, `with ${to} shards`);
        // The queue was lost on the way, and processes with the former number may have made it anew until they ended. Or it was empty, and
        // one of them that had not used it yet gave it that number: docs/decisions/0006-shards.md.
        engine.after(ANEW_MS, () => {
          if (oracle.lastRollbackAt > beganAt || this.#hasOtherThan(to)) this.afterRollback();
        });
      },
    );
  }

  #hasOtherThan(shards: number): boolean {
    const needs = this.simulation.oracle.peek('HGET', `${baseOf('jobs')}meta`, 'needs') as string | null;
    const [, count] = /shards:=\/(\d+)/.exec(needs ?? '') ?? [];
    return count !== undefined && Number(count) !== shards;
  }

  /** Of another build: at once with the next start. */
  #deploy(name: string, build: Build): void {
    const { fleet } = this.simulation;
    if (build === 'older') fleet.older.add(name);
    else fleet.older.delete(name);
    const member = fleet.members.get(name);
    if (member?.isAlive && !member.isStopping && member.process.build !== build)
      this.#restart(member, `with the ${build} build`);
  }

  #restart(member: Member, why: string): void {
    // Whoever cannot be reached for good can not be told either.
    if (member.isBroken) return;
    const { engine, troubles, configuration } = this.simulation;
    troubles.mark(member.process.name, 10_000 + 3 * configuration.commandTimeoutMs);
    engine.trace('restarts', member.id, why);
    closeInstanceOf(this.simulation, member, 200);
  }

  // --- Single jobs ------------------------------------------------------------------------------------------------------

  /** Which payload a job has is unknown until the answer. */
  async #update(
    member: Member,
    { producer }: Instance,
    { kind, queue, id, run }: FurtherOperation & { kind: 'update' | 'signal' },
  ): Promise<void> {
    const { oracle, server, engine } = this.simulation;
    const older = [...oracle.job(id).versions.values()].filter(({ isSuperseded }) => !isSuperseded);
    for (const version of older) version.isSuperseded = true;
    const version = oracle.version(id, run.n);
    const { outcome } = await producer[kind](queue, id, run);
    engine.trace(kind, id, outcome);
    if (outcome === 'updated' || outcome === 'signalled') {
      this.simulation.acknowledged(member.process, id, version);
      version.storedAt ??= server.disk.length;
    } else if (oracle.job(id).versions.size === older.length + 1) for (const one of older) one.isSuperseded = false;
  }

  /**
   * Until the answer says that all of it moved, a job may be in both queues. Where a node of a Cluster has been deposed, it may be so after
   * that: what was let go of there is still in its queue on the node that took over, and the other queue may be on another node.
   */
  async #transfer(
    member: Member,
    { inspector }: Instance,
    { queue, ids, target }: FurtherOperation & { kind: 'transfer' },
  ): Promise<void> {
    const { oracle, engine, cluster } = this.simulation;
    for (const id of ids) {
      oracle.job(id).wasMoved = true;
      oracle.job(id).openMoves++;
    }
    const known = new Set<string>();
    try {
      const { results } = await inspector.move(queue, ids, target);
      for (const { id, outcome } of results) {
        engine.trace('move', id, outcome);
        if (outcome !== 'leaseLost') known.add(id);
      }
    } finally {
      const isDeceived = cluster !== undefined && this.simulation.isDeceived(member.process);
      for (const id of ids) {
        oracle.job(id).openMoves--;
        if (!known.has(id) || isDeceived) oracle.job(id).moveInDoubtAt = engine.now;
      }
    }
  }
}

/** A change that was begun is finished first. */
async function reshard({ inspector }: Instance, to: number): Promise<void> {
  try {
    await inspector.reshard('jobs', { to, wait: RESHARD_WAIT_MS });
  } catch (error) {
    const [, begun] = /Finish it first, with \{ to: (\d+) \}/.exec((error as Error).message) ?? [];
    if (begun !== undefined) await inspector.reshard('jobs', { to: Number(begun), wait: RESHARD_WAIT_MS });
    throw error;
  }
}
