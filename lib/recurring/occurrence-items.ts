import { contentOfOccurrence } from '../job/envelope.js';
import { occurrenceId } from '../job/job-id.js';
import type { OccurrenceItem } from '../redis/schedule.protocol.js';
import type { ScheduleRecord } from './schedule-record.js';
import type { PlannedOccurrence } from './tick-plan.js';

/** The jobs of planned occurrences, as they are stored. */
export function occurrenceItems(
  schedule: string,
  { definition, content }: ScheduleRecord,
  planned: readonly PlannedOccurrence[],
): OccurrenceItem[] {
  const { missed, graceMs, overlap, expiresInMs, place } = definition;
  return planned.map(({ at, due, next, nextDue }) => ({
    id: occurrenceId(schedule, at),
    due,
    expiresInMs,
    place,
    content: contentOfOccurrence(content, {
      next,
      nextDue,
      missed,
      graceMs: next === undefined ? graceMs : Math.min(graceMs, next - at),
      overlap,
      dueAfterMs: due - at,
    }),
  }));
}
