import type { InstanceContext } from '../instance/instance-context.js';
import { timesOf } from './occurrence-times.js';
import { rhythmOf } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';
import { reportSkipped } from './skipped.js';
import { planTick } from './tick-plan.js';
import type { TickPlan } from './tick-plan.js';

/**
 * What has become due and was not made yet, as after an outage: it belongs to what the schedule is, so that must be made, or counted as
 * missed, before the schedule changes.
 *
 * @returns undefined when there is nothing, and for what this process cannot compute
 */
export async function planOverdue(id: string, record: ScheduleRecord, now: number): Promise<TickPlan | undefined> {
  if (record.state.last >= now) return undefined;
  try {
    const plan = await planTick(id, record, await timesOf(rhythmOf(record), 'schedule'), now);
    const before = new Set(record.state.recent);
    const isNew = (at: number) => at <= now && at > record.state.last && !before.has(at);
    return plan.missed || plan.state.recent.some(isNew) ? plan : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The same of a schedule that is about to be paused: of these times none runs any more, so all of them are missed, also one whose jitter
 * would have made it due later.
 *
 * @returns without `missed` when there are none, and for what this process cannot compute
 */
export async function planGivenUp(
  id: string,
  { definition, ...rest }: ScheduleRecord,
  now: number,
): Promise<Pick<TickPlan, 'missed'>> {
  const record: ScheduleRecord = { ...rest, definition: { ...definition, missed: 'skip', graceMs: 0, jitterMs: 0 } };
  // With what is due at this very moment.
  return (await planOverdue(id, record, now + 1)) ?? NONE;
}

const NONE = { missed: undefined };

export function reportMissed(
  context: InstanceContext,
  queue: string,
  schedule: string,
  { missed }: Pick<TickPlan, 'missed'>,
): void {
  const { connection, logger } = context;
  if (missed) reportSkipped(logger, { instance: connection.instance, queue, schedule, reason: 'missed', ...missed });
}
