import { RETRY_AFTER_MS } from './application.js';
import type { Oracle } from './oracle.js';
import { SNOOZE_OF_PULLED_MS } from './pullers.js';
import { queueOf } from './queues.js';
import { scheduleOf } from './schedule-rules.js';
import type { RunningScript, ScriptRules } from './script-rules.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';
import type { Settled } from './step-arguments.js';
import { SNOOZE_MS } from './batch-endings.js';

/** How long a job waits after a failure and a snooze, by the word of the script. */
const DELAYS_MS: Readonly<Record<string, number>> = { r: RETRY_AFTER_MS, s: SNOOZE_MS };

/** See dueAgain() in lib/recurring/occurrence-gate.ts. */
const INTERRUPTED_MS = 1;

/** What a settlement leaves behind: when the job is due again, and what it has used up. */
export class EndingRules implements ScriptRules {
  constructor(
    private readonly simulation: Simulation,
    private readonly oracle: Oracle,
  ) {}

  ends(script: RunningScript): void {
    for (const [i, settled] of (script.step?.settled ?? []).entries()) {
      const { held, isFollowed } = script.before[i]!;
      if (held !== settled.claim || isFollowed) continue;
      const due = this.oracle.peek('ZSCORE', script.keys[SHARD_KEYS.due]!, settled.id) as string | null;
      if (due === null) continue;
      if (settled.verb === 'l') this.#judgeHandedBack(script, settled, Number(due));
      else this.#judgeDelay(script, settled, Number(due));
    }
  }

  /**
   * As it was when it was claimed: neither later, nor as if it had just become due. Excused: an occurrence that had begun when its process had
   * to stop; it is due a ms later, by which Redis knows it.
   */
  #judgeHandedBack({ keys, member }: RunningScript, settled: Settled, due: number): void {
    const { id, claim } = settled;
    const claimed = this.oracle.claimOf(keys[SHARD_KEYS.due]!, claim)?.jobs.get(id);
    if (claimed?.due === undefined || claimed.due === due || this.oracle.schedules.waits(id, due)) return;
    const hasBegun = scheduleOf(id) !== undefined && !settled.isUnbegun && !settled.isPassable;
    if (hasBegun && member?.isStopping && due === claimed.due + INTERRUPTED_MS) return;
    const by = `${member?.id ?? 'nobody known'} handed ${id} back`;
    this.oracle.report('handedBack', `${by}, and it is due ${due - claimed.due} ms after the time it was due before`);
  }

  #judgeDelay({ keys }: RunningScript, { id, verb }: Settled, due: number): void {
    const isSnoozedPull = verb === 's' && queueOf(keys[SHARD_KEYS.due]!) === 'pulled';
    const delay = isSnoozedPull ? SNOOZE_OF_PULLED_MS : DELAYS_MS[verb];
    if (delay === undefined) return;
    const late = due - Math.floor(this.simulation.clockMs(keys[0]!)) - delay;
    if (late !== 0) this.oracle.report('delayed', `${id} is due ${late} ms too late after the outcome "${verb}"`);
  }
}
