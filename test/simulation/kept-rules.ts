import type { Oracle } from './oracle.js';
import { isPlain, queueOf } from './queues.js';
import type { RunningScript, ScriptRules } from './script-rules.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';

/** What one step forgets at most, if it completes few jobs itself: of many, twice as many; see lib/lua/step/trim.lua. */
const ROOM = 50;
/** In calm some worker sweeps in this time. */
const SWEPT_MS = 10_000;

/** Completed jobs are kept as long as `keepCompleted` says, and then they are gone. */
export class KeptRules implements ScriptRules {
  readonly #forgotten = new Set<string>();
  /** By key: when a step has forgotten as much as it may for the last time, simulated ms. There may be more. */
  readonly #busyAt = new Map<string, number>();
  #hasForgottenOld = false;
  #isResent = false;

  constructor(
    private readonly simulation: Simulation,
    private readonly oracle: Oracle,
  ) {}

  begins({ keys, step }: RunningScript): void {
    this.#forgotten.clear();
    this.#hasForgottenOld = false;
    if (!step || !this.#keeps) return;
    const remembered = this.oracle.peek('GET', keys[SHARD_KEYS.session]!) as string | null;
    this.#isResent = remembered?.startsWith(`${step.call} `) ?? false;
  }

  runs({ keys, step }: RunningScript, name: string, [key, ...ids]: readonly string[]): void {
    if (!step || !this.#keeps || name !== 'ZREM' || key !== keys[SHARD_KEYS.completed]) return;
    const { keptCount, keptMs } = this.simulation.configuration;
    const left = this.#kept(key) - ids.length;
    for (const id of ids) {
      this.#forgotten.add(id);
      const ageMs = this.#nowOf(key) - Number(this.oracle.peek('ZSCORE', key, id));
      this.#hasForgottenOld ||= ageMs >= keptMs;
      const isAmongOldest = Number(this.oracle.peek('ZRANK', key, id)) < ids.length;
      if (ageMs >= keptMs || (left >= keptCount && isAmongOldest)) continue;
      this.oracle.report('kept', `${id} was forgotten ${ageMs} ms after it was completed, and ${left} others are kept`);
    }
  }

  ends({ keys, args, step, before }: RunningScript): void {
    if (!step || !this.#keeps || this.#isResent || !args[5]!.includes('k')) return;
    const key = keys[SHARD_KEYS.completed]!;
    let came = 0;
    for (const [i, { id, claim, verb }] of step.settled.entries()) {
      const { held, isFollowed, isStored } = before[i]!;
      if (verb !== 'complete' || held !== claim || isFollowed || !isStored) continue;
      came++;
      const isKept = this.oracle.peek('HEXISTS', keys[SHARD_KEYS.history]!, id) === 1;
      if (!isKept && !this.#forgotten.has(id)) this.oracle.report('kept', `${id} was completed, and is not kept`);
    }
    const room = Math.max(ROOM, 2 * came);
    if (this.#forgotten.size >= room) this.#busyAt.set(key, this.simulation.engine.now);
    const trims = came > 0 || args[5]!.includes('s');
    if (trims && this.#forgotten.size < room) this.#judgeLeft(key);
  }

  /**
   * Of a healthy fleet: nobody has to complete a job for old ones to go. Of many that become too old at the same time each sweep takes a part,
   * so they are gone some sweeps later.
   */
  look(base: string): void {
    const { troubles, engine, configuration } = this.simulation;
    if (this.#keeps) this.#judgeHistory(base);
    const since = Math.max(troubles.calmSince(), this.#busyAt.get(`${base}completed`) ?? 0);
    if (!this.#keeps || !isWorked(base) || since + SWEPT_MS > engine.now) return;
    const ageMs = this.#oldestMs(`${base}completed`);
    if (ageMs <= configuration.keptMs + SWEPT_MS) return;
    this.oracle.reportOnce('kept', base, `${base} still keeps what was completed ${ageMs} ms ago`);
  }

  /** What is kept of a job goes with its place in `completed`. */
  #judgeHistory(base: string): void {
    const stored = Number(this.oracle.peek('HLEN', `${base}history`));
    const kept = this.#kept(`${base}completed`);
    if (stored !== kept) this.oracle.reportOnce('kept', `${base}history`, `${base}history has ${stored} completed jobs, and completed has ${kept}`); // prettier-ignore
  }

  /** After a step that had room for all that was too old or too many. */
  #judgeLeft(key: string): void {
    const { keptCount, keptMs } = this.simulation.configuration;
    const ageMs = this.#oldestMs(key);
    if (ageMs >= keptMs && ageMs > 0) this.oracle.report('kept', `${key} keeps what was completed ${ageMs} ms ago`);
    // One step forgets either what is too old or what is too many.
    if (!this.#hasForgottenOld && this.#kept(key) > keptCount)
      this.oracle.report('kept', `${key} keeps ${this.#kept(key)} completed jobs, of ${keptCount}`);
  }

  #oldestMs(key: string): number {
    const [, score] = this.oracle.peek('ZRANGE', key, '0', '0', 'WITHSCORES') as string[];
    return score === undefined ? -1 : this.#nowOf(key) - Number(score);
  }

  #kept(key: string): number {
    return Number(this.oracle.peek('ZCARD', key));
  }

  /** As scripts know it. */
  #nowOf(key: string): number {
    return Math.floor(this.simulation.clockMs(key));
  }

  /** Excused: while their number changes, what shards keep goes from one to the other. */
  get #keeps(): boolean {
    const { keptCount, older, reshards } = this.simulation.configuration;
    return keptCount > 0 && !older && reshards.length === 0;
  }
}

/** What workers complete; those who pull need not ask for jobs, and so need not sweep. */
function isWorked(base: string): boolean {
  const queue = queueOf(base);
  return isPlain(queue) || queue === 'batched';
}
