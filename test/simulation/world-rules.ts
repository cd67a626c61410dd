import { isMoveInDoubt } from './history.js';
import { basesOfShards, MOVED, queueOf, TAKEN } from './queues.js';
import { numberOf } from './schedule-rules.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';
import type { Concerns, Rollback, ScriptCall, ServerWitness } from './witness.js';

/** So many deadlines after a call has failed no copy of it comes any more. */
const LATE_COPIES = 3;

/** They give a waiting job another payload. */
const OVERWRITING = new Set(['signal', 'update']);

type RunningCall = ScriptCall & { readonly name: string };

/** What must hold of operators, of several queues, and of a queue in several shards. It sits inside the server, as the oracle does. */
export class WorldRules implements ServerWitness {
  #script: RunningCall | undefined;
  /** Jobs that the script has taken from their shard, of which a move may have left another copy. */
  readonly #gone = new Set<string>();

  constructor(private readonly simulation: Simulation) {}

  scriptBegins(call: ScriptCall): void {
    this.#script = { ...call, name: this.simulation.nameOfScript(call.source) };
  }

  scriptEnds(): void {
    this.#script = undefined;
    for (const id of this.#gone) this.#endDoubt(id);
    this.#gone.clear();
  }

  commandRuns(name: string, args: readonly string[]): void {
    const script = this.#script;
    if (!script) return;
    const { keys } = script;
    if (name === 'HDEL' && args[0] === keys[SHARD_KEYS.jobs]) this.#deleted(script, args);
    else if (name === 'UNLINK' && script.name === 'endShard') this.#over(keys, this.#idsOf(keys[SHARD_KEYS.jobs]!));
    else if (name === 'ZADD' && script.name === 'step' && args[0] === keys[SHARD_KEYS.running] && args[1] !== 'XX') {
      for (let i = 2; i < args.length; i += 2) this.#claimed(keys, args[i]!);
    } else if (name === 'HSET' && script.name === 'enqueue' && args[0] === keys[SHARD_KEYS.jobs]) {
      this.#stored(keys, args[1]!);
    } else if (name === 'HSET' && OVERWRITING.has(script.name) && args[0] === keys[SHARD_KEYS.jobs]) {
      this.#overwritten(args);
    }
  }

  /** What a move had told is forgotten on one side, or on both. */
  rolledBack(_length: number, lost: number, _why: Rollback, concerns: Concerns): void {
    if (lost === 0) return;
    const { engine, oracle } = this.simulation;
    for (const job of oracle.jobs.values()) {
      if (job.wasMoved && (concerns(job.queue) || concerns(MOVED))) job.moveInDoubtAt = engine.now;
    }
    this.simulation.afterRollback();
  }

  #deleted({ name, keys }: RunningCall, [key, ...ids]: readonly string[]): void {
    for (const id of ids) if (this.simulation.oracle.jobs.get(id)?.moveInDoubtAt !== undefined) this.#gone.add(id);
    // An operator removes them, or they are taken: what becomes of them then is not the queue's business.
    if (name === 'remove' || (name === 'step' && queueOf(key!) === TAKEN)) this.#over(keys, ids);
  }

  /** No queue has it any more, and nothing of the move can still be on its way. */
  #endDoubt(id: string): void {
    const { oracle, engine, configuration, shardBases } = this.simulation;
    const job = oracle.job(id);
    if (job.openMoves > 0 || engine.now < job.moveInDoubtAt! + LATE_COPIES * configuration.commandTimeoutMs) return;
    if (shardBases.some((base) => oracle.peek('HEXISTS', `${base}jobs`, id) === 1)) return;
    job.moveInDoubtAt = undefined;
  }

  /** Only a rollback of that shard's node undoes it. */
  #over(keys: readonly string[], ids: readonly string[]): void {
    const { oracle, server } = this.simulation;
    for (const id of ids) {
      const job = oracle.job(id);
      job.endedIn = keys[SHARD_KEYS.due]!;
      for (const version of job.versions.values()) version.overAt ??= server.disk.length;
    }
  }

  #claimed(keys: readonly string[], id: string): void {
    const { oracle } = this.simulation;
    if (oracle.peek('HGET', keys[SHARD_KEYS.meta]!, 'paused') === '1') {
      oracle.report('paused', `${id} is claimed although its queue is paused`);
    }
    const due = keys[SHARD_KEYS.due]!;
    for (const other of this.#othersOf(queueOf(due), id)) {
      if (`${other}due` === due || oracle.peek('HEXISTS', `${other}jobs`, id) !== 1) continue;
      oracle.report('double', `${id} is claimed in ${due}, and ${other} has it as well`);
    }
  }

  #stored(keys: readonly string[], id: string): void {
    const { oracle } = this.simulation;
    if (oracle.peek('HGET', keys[SHARD_KEYS.meta]!, 'publishingPaused') === '1') {
      oracle.report('publishing', `${id} is stored although publishing is paused`);
    }
  }

  /**
   * An update or a signal takes the place of the payload that is stored. That one may have been enqueued after the call had been made,
   * even after it had failed, if the call comes to the server later still: only the server knows which one it is.
   */
  #overwritten([key, id, text]: readonly string[]): void {
    const { oracle } = this.simulation;
    const old = numberOf((oracle.peek('HGET', key!, id!) as string | null) ?? '');
    const version = oracle.job(id!).versions.get(old);
    // A call that runs anew, as Redis has forgotten it, finds what it wrote.
    if (version && old !== numberOf(text!)) version.isSuperseded = true;
  }

  /** Where else a job must not be: in other shards, and in the queue that it came from or went to. */
  #othersOf(queue: string, id: string): string[] {
    const { oracle, fleet } = this.simulation;
    const job = oracle.job(id);
    const found = queue === 'jobs' && fleet.shards > 1 ? basesOfShards(fleet.shards) : [];
    // A job that is enqueued again, while another queue has it, is in both: ids belong to their queues.
    const isOne = job.versions.size === 1 && [...job.versions.values()][0]!.calls === 1;
    if (!job.wasMoved || isMoveInDoubt(job) || !isOne) return found;
    return [...found, ...(queue === MOVED ? basesOfShards(fleet.shards) : [`dq:{${MOVED}}:`])];
  }

  #idsOf(key: string): readonly string[] {
    return this.simulation.oracle.peek('HKEYS', key) as string[];
  }
}
