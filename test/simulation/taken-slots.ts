import type { Reply } from '../../lib/memory/memory.replies.js';
import type { Member } from './fleet.js';
import { isPlain, queueOf } from './queues.js';
import type { RunningScript, ScriptRules } from './script-rules.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';

/** Where the answer of a step has the number of its claim, or 0. */
const ANSWERED_CLAIM = 1;

/**
 * A slot is taken from the claim of its job on, and not only while the handler runs. Where an answer takes longer than a handler, and the shards
 * of a queue share its slots, never as many handlers run at one moment as there are slots, though all of these are taken all the time. What
 * waits then waits for a slot.
 */
export class TakenSlots implements ScriptRules {
  constructor(private readonly simulation: Simulation) {}

  ends({ keys, step, member }: RunningScript, reply: Reply): void {
    const queue = queueOf(keys[SHARD_KEYS.due]!);
    if (!step || !member || !isPlain(queue) || !Array.isArray(reply) || reply[ANSWERED_CLAIM] === 0) return;
    const { oracle, shardBases } = this.simulation;
    const bases = shardBases.filter((base) => queueOf(base) === queue);
    const all = bases.reduce((sum, base) => sum + Number(oracle.peek('ZCARD', `${base}running`)), 0);
    if (all < member.slots(queue)) return; // It need not be looked at whose they are.
    member.holds(
      queue,
      bases.reduce((sum, base) => sum + this.#heldBy(member, queue, base), 0),
    );
  }

  /** Jobs that run there, and those that are on their way to it: for no longer than a call may wait for its answer. */
  #heldBy(member: Member, queue: string, base: string): number {
    const { oracle, engine, configuration } = this.simulation;
    const running = oracle.peek('ZRANGE', `${base}running`, '0', '-1', 'WITHSCORES') as string[];
    let held = 0;
    for (let i = 0; i < running.length; i += 2) {
      const claim = oracle.claimOf(`${base}due`, running[i + 1]!);
      if (claim?.member !== member) continue;
      const run = member.runOf(queue, running[i]!);
      const takes =
        run?.claim === claim
          ? run.endedAt === undefined && !run.isZombie
          : claim.at + configuration.commandTimeoutMs > engine.now;
      if (takes) held++;
    }
    return held;
  }
}
