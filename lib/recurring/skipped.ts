import { channels } from '../delay-queue.channels.js';
import type { OccurrencesSkippedMessage } from '../delay-queue.channels.js';
import type { DelayQueueLogger } from '../delay-queue.logger.js';
import { quoted } from '../job/duration.js';
import { clearTimeout, setTimeout } from '../time-and-randomness.js';

const WHY = { missed: 'missed', overlap: 'left out, because the one before still ran' } as const;
/** For so long lines of one schedule wait for others. */
const GATHER_MS = 500;

/** What does not run is said: in the log and as an event. It is counted where it is stored. */
export function reportSkipped(logger: DelayQueueLogger, message: OccurrencesSkippedMessage): void {
  log(logger, message);
  publish(message);
}

function log(logger: DelayQueueLogger, { queue, schedule, reason, count, first, last }: OccurrencesSkippedMessage) {
  const what =
    count === 1
      ? `the occurrence of ${iso(first)} was`
      : `${count} occurrences from ${iso(first)} to ${iso(last)} were`;
  logger.warn(`Schedule ${quoted(schedule)} of queue "${queue}": ${what} ${WHY[reason]}.`, { queue });
}

function publish(message: OccurrencesSkippedMessage): void {
  if (channels.occurrencesSkipped.hasSubscribers) channels.occurrencesSkipped.publish(message);
}

/** Those that a worker leaves out one by one: after an outage sixty of a schedule are stored, and one line tells of them all. Each is an event. */
export class SkippedOneByOne {
  readonly #lines = new Map<string, OccurrencesSkippedMessage>();
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly logger: DelayQueueLogger) {}

  add(message: OccurrencesSkippedMessage): void {
    publish(message);
    const key = `${message.reason} ${message.schedule}`;
    const before = this.#lines.get(key);
    this.#lines.set(key, before ? joined(before, message) : message);
    this.#timer ??= setTimeout(() => this.end(), GATHER_MS).unref();
  }

  /** Says at once what waits for others. */
  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = [...this.#lines.values()];
    this.#lines.clear();
    for (const line of lines) log(this.logger, line);
  }
}

function joined(one: OccurrencesSkippedMessage, other: OccurrencesSkippedMessage): OccurrencesSkippedMessage {
  const first = Math.min(one.first, other.first);
  return { ...one, count: one.count + other.count, first, last: Math.max(one.last, other.last) };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
