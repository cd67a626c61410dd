import { channels } from '../delay-queue.channels.js';
import type { OccurrencesSkippedMessage } from '../delay-queue.channels.js';
import type { DelayQueueLogger } from '../delay-queue.logger.js';
import { quoted } from '../job/duration.js';

const WHY = { missed: 'missed', overlap: 'left out, because the one before still ran' } as const;

/** What does not run is said: in the log and as an event. It is counted where it is stored. */
export function reportSkipped(logger: DelayQueueLogger, message: OccurrencesSkippedMessage): void {
  const { queue, schedule, reason, count, first, last } = message;
  const what =
    count === 1
      ? `the occurrence of ${iso(first)} was`
      : `${count} occurrences from ${iso(first)} to ${iso(last)} were`;
  logger.warn(`Schedule ${quoted(schedule)} of queue "${queue}": ${what} ${WHY[reason]}.`, { queue });
  if (channels.occurrencesSkipped.hasSubscribers) channels.occurrencesSkipped.publish(message);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
