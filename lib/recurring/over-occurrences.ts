import { occurrenceId } from '../job/job-id.js';
import { parseAttempts } from '../redis/step.protocol.js';
import { remembered } from './tick-plan.js';
import type { TickPlan } from './tick-plan.js';

/** Reads a job: the answer of lib/lua/get.lua. */
export type ReadJob = (job: string) => Promise<unknown>;

/**
 * Has the record name which occurrences are over of those that make room for the plan's: no later change makes them again before their time
 * is past. Of the times that the plan has, too, lib/lua/recurring/tick.lua sees it when it writes. The others are read before that: one that
 * is cancelled between the two may come back. It costs one read for each.
 *
 * @param gone times of those that make room
 */
export async function rememberOver(
  id: string,
  plan: TickPlan,
  gone: readonly number[],
  read: ReadJob,
): Promise<TickPlan> {
  const planned = new Set(plan.state.recent);
  const others = gone.filter((at) => !planned.has(at));
  const are = await Promise.all(others.map((at) => isOver(occurrenceId(id, at), read)));
  const over = remembered(
    plan.state.over ?? [],
    others.filter((_, n) => are[n]),
  );
  return over.length > 0 ? { ...plan, state: { ...plan.state, over } } : plan;
}

/** Of an occurrence that was made: does none wait any more that has not begun? */
async function isOver(job: string, read: ReadJob): Promise<boolean> {
  const [state, , attempts = ''] = ((await read(job)) ?? []) as readonly (string | undefined)[];
  const { charged, losses, snoozes } = parseAttempts(attempts);
  const waits = state === 'l' || state === 'd';
  return !waits || charged + losses + snoozes > 0;
}
