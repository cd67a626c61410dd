import type { Reply } from '../../lib/memory/memory.replies.js';
import type { JobHistory } from './history.js';
import type { Oracle } from './oracle.js';
import { queueOf } from './queues.js';
import type { RunningScript, ScriptRules } from './script-rules.js';
import type { Server } from './server.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';
import type { Concerns, Rollback } from './witness.js';

const FIRST_ID = 3;

/**
 * A job that another queue takes over counts as running meanwhile. A call that gives it another time then makes it follow itself, as
 * with any running job: the other queue has it, and its own queue has it once more, with the payload that it had.
 */
export class MoveRules implements ScriptRules {
  /** Payloads that are to leave, before the script. */
  #leaving = new Map<string, string>();
  readonly #leases = new Map<string, number>();

  constructor(
    private readonly simulation: Simulation,
    private readonly oracle: Oracle,
  ) {}

  /** Under what lease jobs were claimed there to be moved, ms; 0 where none was. */
  leaseMs(dueKey: string): number {
    return this.#leases.get(dueKey) ?? 0;
  }

  begins({ name, keys, args }: RunningScript): void {
    this.#leaving.clear();
    if (name === 'reserve') {
      this.#leases.set(keys[SHARD_KEYS.due]!, Number(args[1]));
      for (const id of args.slice(FIRST_ID)) this.oracle.job(id).reservedIn = keys[SHARD_KEYS.due];
    }
    if (name !== 'unreserve' || this.#isResent(keys, args)) return;
    for (const id of args.slice(FIRST_ID, FIRST_ID + Number(args[2]))) {
      const payload = this.#payloadOf(keys, id);
      if (payload !== undefined) this.#leaving.set(id, payload);
    }
  }

  ends({ keys, args }: RunningScript, reply: Reply): void {
    if (this.#leaving.size === 0 || typeof reply !== 'string') return;
    for (const [i, word] of reply.split(' ').entries()) {
      const id = args[FIRST_ID + i]!;
      const left = this.#leaving.get(id);
      if (word === 'f' && left !== undefined && left === this.#payloadOf(keys, id)) {
        this.oracle.job(id).isInBothQueues = true;
      }
    }
  }

  runs({ name, keys, connection }: RunningScript, command: string, [key, ...pairs]: readonly string[]): void {
    if (name !== 'enqueue' || command !== 'HSET' || key !== keys[SHARD_KEYS.jobs]) return;
    for (let i = 0; i < pairs.length; i += 2) {
      const job = this.oracle.job(pairs[i]!);
      if (job.reservedIn === undefined || queueOf(job.reservedIn) === queueOf(key)) continue;
      const isOnlyThere = !(connection.server as Server).replicas?.count;
      const isMoving = job.openMoves > 0;
      job.takenOver = { shard: keys[SHARD_KEYS.due]!, at: this.simulation.server.disk.length, isOnlyThere, isMoving };
    }
  }

  /**
   * A node of a Cluster that has been deposed takes a job over, and nobody sees it there. The node that has its own queue lets go of it, which
   * is no other than always: the job is nowhere. Where the deposed node had a replica, the move waits for it in vain, and lets go of nothing.
   */
  takenOverByDeposed({ name, connection }: Pick<RunningScript, 'name' | 'connection'>, key: string, id: string): void {
    const { cluster } = this.simulation;
    const job = this.oracle.job(id);
    const from = job.reservedIn;
    if (!cluster || name !== 'enqueue' || job.openMoves === 0 || from === undefined) return;
    if (queueOf(from) === queueOf(key) || cluster.nodeOf(from) === cluster.nodeOf(key)) return;
    if ((connection.server as Server).replicas?.count) return;
    for (const version of job.versions.values()) version.excuse ??= 'a node that had been deposed took it over';
  }

  /**
   * What the other queue stored is lost with a node, and the node from which the job went has lost nothing. Where there was a replica, the
   * move has waited for it; no move waits for a disk.
   */
  isLost({ takenOver, reservedIn }: JobHistory, length: number, why: Rollback, concerns: Concerns): boolean {
    if (!takenOver || takenOver.at <= length || reservedIn === undefined) return false;
    if (why === 'failover' && !takenOver.isOnlyThere) return false;
    const { shard } = takenOver;
    return concerns(queueOf(shard), shard) && !concerns(queueOf(reservedIn), reservedIn);
  }

  /**
   * Whether it may run in this queue although it was completed: in the other one; or here before the same move wrote it once more, as it does
   * where its connection has changed meanwhile, behind which another server may be that has lost it.
   */
  mayRunToo(id: string, queue: string): boolean {
    const { isInBothQueues, endedIn, takenOver, doneAt } = this.oracle.job(id);
    const isWrittenAgain = takenOver?.isMoving && takenOver.at > doneAt! && queueOf(takenOver.shard) === queue;
    return isWrittenAgain || (isInBothQueues && endedIn !== undefined && queueOf(endedIn) !== queue);
  }

  #isResent(keys: readonly string[], args: readonly string[]): boolean {
    const remembered = this.oracle.peek('GET', keys[SHARD_KEYS.session]!) as string | null;
    return remembered?.startsWith(`${parseInt(args[0]!, 10)} `) ?? false;
  }

  #payloadOf(keys: readonly string[], id: string): string | undefined {
    const envelope = this.oracle.peek('HGET', keys[SHARD_KEYS.jobs]!, id) as string | null;
    return envelope === null ? undefined : envelope.slice(envelope.indexOf('\n') + 1);
  }
}
