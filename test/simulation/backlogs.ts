import type { RunningScript, ScriptRules } from './script-rules.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';

/** Where a worker took what was due, and left more behind. It goes on with that, and others are woken for what it leaves for long. */
export class Backlogs implements ScriptRules {
  /** When that was for the last time, by the `due` key of the shard. */
  readonly #leftAt = new Map<string, number>();
  #hasClaimed = false;

  constructor(private readonly simulation: Simulation) {}

  wasThereSince(dueKey: string, at: number): boolean {
    return (this.#leftAt.get(dueKey) ?? -Infinity) >= at;
  }

  begins(): void {
    this.#hasClaimed = false;
  }

  runs({ keys, step }: RunningScript, name: string, args: readonly string[]): void {
    if (step && name === 'ZADD' && args[0] === keys[SHARD_KEYS.running] && args[1] !== 'XX') this.#hasClaimed = true;
  }

  ends({ keys }: RunningScript): void {
    if (!this.#hasClaimed) return;
    const due = keys[SHARD_KEYS.due]!;
    const now = String(Math.floor(this.simulation.clockMs(due)));
    if (this.simulation.oracle.peek('ZCOUNT', due, '-inf', now) !== 0)
      this.#leftAt.set(due, this.simulation.engine.now);
  }
}
