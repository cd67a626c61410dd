import type { InstanceContext } from '../instance/instance-context.js';
import { occurrenceId } from '../job/job-id.js';
import type { ScheduleRecord } from './schedule-record.js';

/** Jobs that one call looks at. */
const PAGE = 500;
/** An occurrence that waits for the one before it is due a second later each time: such as may still come back from a worker. */
const PUT_OFF_MS = 60_000;

/** Which occurrences go, of those that have not begun. Epoch ms of schedules. */
export interface Withdrawn {
  /** Those made for a later time stay. */
  readonly latest: number;
  /** Those due later are not looked for. */
  readonly dueBy: number;
  /** Times of some that go wherever they wait. */
  readonly named: readonly number[];
}

/** What was made until then: what has been due since, and what the record names. */
export function madeUntil(until: number, { definition, state }: ScheduleRecord): Withdrawn {
  return { latest: until, dueBy: until + Math.max(definition.jitterMs, PUT_OFF_MS), named: state.recent };
}

/** Of a schedule whose record cannot be read, everything. */
export const ALL: Withdrawn = { latest: 8.64e15, dueBy: 8.64e15, named: [] };

/**
 * Takes back occurrences that have not begun. A record remembers only the newest: a backfill and an outage make more, so all that is due
 * is looked through.
 *
 * @returns how many
 */
export async function withdrawOccurrences(
  context: InstanceContext,
  queue: string,
  id: string,
  { latest, dueBy, named }: Withdrawn,
  call: string,
): Promise<number> {
  const by = dueBy - context.connection.movedMs;
  let ids = named.map((at) => occurrenceId(id, at));
  return pageByPage(async (cursor) => {
    const args = [id, latest.toString(36), by, PAGE, ...cursor, ...ids];
    ids = [];
    return context.of(queue, id).run('withdrawOccurrences', id, args, { call });
  });
}

/** Cancels the runs of a schedule's occurrences. @returns how many */
export async function cancelOccurrences(
  context: InstanceContext,
  queue: string,
  id: string,
  call: string,
): Promise<number> {
  return pageByPage((cursor) => context.of(queue, id).run('cancelOccurrences', id, [id, PAGE, ...cursor], { call }));
}

async function pageByPage(page: (cursor: readonly [score: string, id: string]) => Promise<string>): Promise<number> {
  let count = 0;
  let cursor: readonly [string, string] | undefined = ['-inf', ''];
  while (cursor) {
    const answer: string = await page(cursor);
    const [, found, score, id] = /^(\d+)(?: (\S+) (.*))?$/s.exec(answer)!;
    count += Number(found);
    cursor = score === undefined ? undefined : [score, id!];
  }
  return count;
}
