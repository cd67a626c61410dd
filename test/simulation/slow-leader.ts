import type { RunningScript, ScriptRules } from './script-rules.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';

/** A worker whose network is slow for good lives and polls, so it may be the leader like any other, which alone is told of a new head. */
export class SlowLeader implements ScriptRules {
  /** When it was the leader for the last time, by the `due` key of the shard. */
  readonly #ledAt = new Map<string, number>();

  constructor(private readonly simulation: Simulation) {}

  begins({ keys }: RunningScript): void {
    this.#look(keys[SHARD_KEYS.due]!);
  }

  hasLedSince(dueKey: string, at: number): boolean {
    this.#look(dueKey);
    return (this.#ledAt.get(dueKey) ?? -Infinity) >= at;
  }

  /** Whoever is the leader now has been so until now. */
  #look(dueKey: string): void {
    const { network, oracle, fleet, engine } = this.simulation;
    if (network.slow.size === 0) return;
    const named = oracle.peek('HGET', dueKey.replace(/due$/, 'meta'), 'leader') as string | null;
    const leader = fleet.ofWorker(named ?? '');
    if (leader && network.slow.has(leader.process.name)) this.#ledAt.set(dueKey, engine.now);
  }
}
