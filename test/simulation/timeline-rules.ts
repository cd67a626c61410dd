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
  constructor(private readonly oracle: Oracle) {}

  ends({ name, keys }: RunningScript, reply: Reply): void {
    if (name !== 'timeline' || !Array.isArray(reply)) return;
    const counts = [reply[BEFORE_AT], reply[AFTER_AT], ...reply.slice(BUCKETS_AT)].map(Number);
    const sum = counts.reduce((total, count) => total + count, 0);
    const due = keys[SHARD_KEYS.due]!;
    const waiting = Number(this.oracle.peek('ZCARD', due));
    if (sum !== waiting) this.oracle.report('timeline', `${due} has ${waiting} jobs, of which ${sum} are shown`);
  }
}
