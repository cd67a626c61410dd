import type { Reply } from '../../lib/memory/memory.replies.js';
import type { Oracle } from './oracle.js';
import type { RunningScript, ScriptRules } from './script-rules.js';
import { SHARD_KEYS } from './step-arguments.js';

/** What stands before the buckets in the reply; see lib/lua/timeline.lua. */
const BEFORE_AT = 5;
const AFTER_AT = 6;
const BUCKETS_AT = 9;

/** What falls due when: each job that waits has its one place. */
export class TimelineRules implements ScriptRules {
  /** Jobs that the replies have shown since somebody asked last, by the `due` key of the shard. */
  #shown = new Map<string, number[]>();

  constructor(private readonly oracle: Oracle) {}

  ends({ name, keys }: RunningScript, reply: Reply): void {
    const sum = name === 'timeline' ? this.answered(keys, reply) : undefined;
    if (sum === undefined) return;
    const due = keys[SHARD_KEYS.due]!;
    const waiting = Number(this.oracle.peek('ZCARD', due));
    if (sum !== waiting) this.oracle.report('timeline', `${due} has ${waiting} jobs, of which ${sum} are shown`);
  }

  /**
   * A server shows what falls due in a shard, be it one that has been deposed: who asked is told what that one says. Were it left out,
   * the answer to somebody who had asked before, and was served later, would pass for this one.
   *
   * @returns how many jobs it shows, undefined when it refuses
   */
  answered(keys: readonly string[], reply: Reply | undefined): number | undefined {
    if (!Array.isArray(reply)) return undefined;
    const counts = [reply[BEFORE_AT], reply[AFTER_AT], ...reply.slice(BUCKETS_AT)].map(Number);
    const sum = counts.reduce((total, count) => total + count, 0);
    const due = keys[SHARD_KEYS.due]!;
    this.#shown.set(due, [...(this.#shown.get(due) ?? []), sum]);
    return sum;
  }

  /** @returns called with what is told of the queue, which is what its shards have said. Not judged: when any has answered twice since */
  asks(): (dueKeys: readonly string[], jobs: number) => void {
    const shown = (this.#shown = new Map<string, number[]>());
    return (dueKeys, jobs) => {
      const replies = dueKeys.map((key) => shown.get(key) ?? []);
      if (this.#shown !== shown || replies.some(({ length }) => length !== 1)) return;
      const sum = replies.reduce((total, [one]) => total + one!, 0);
      if (sum === jobs) return;
      this.oracle.report('timeline', `${dueKeys.join(', ')} have shown ${sum} jobs, and ${jobs} are told`);
    };
  }
}
