import { channels } from '../delay-queue.channels.js';
import type { EndedMessage } from '../delay-queue.channels.js';
import { decodeError, summarizeError } from '../job/error-record.js';
import type { FleetNews } from '../redis/fleet.protocol.js';
import type { FleetEvents } from './fleet-events.js';
import type { Ended } from './settlement-buffer.js';
import type { Settlement } from './settlement.js';

/** Does anybody want to know how runs end? Then they are timed. */
export function endingsAreHeard(fleet: FleetEvents | undefined): boolean {
  return (
    fleet !== undefined ||
    channels.completed.hasSubscribers ||
    channels.failed.hasSubscribers ||
    channels.retried.hasSubscribers ||
    channels.snoozed.hasSubscribers ||
    channels.deadLettered.hasSubscribers ||
    channels.expired.hasSubscribers
  );
}

/**
 * Tells of an ending that Redis has confirmed; before that it may turn out that the lease was lost.
 *
 * @param superseded the job was replaced or cancelled while it ran, so that nothing follows from a failure
 */
export function publishEnding(
  instance: string,
  queue: string,
  { id, settlement, run, notStarted }: Ended,
  superseded: boolean,
  fleet?: FleetEvents,
): void {
  if (fleet) tellFleet(fleet, { id, settlement, run, notStarted }, superseded);
  const { attempt = 0, latenessMs = 0 } = run?.job ?? notStarted ?? {};
  const ended: EndedMessage = { instance, queue, id, attempt, latenessMs, durationMs: run?.durationMs };
  switch (settlement.verb) {
    case 'complete':
      if (channels.completed.hasSubscribers) channels.completed.publish(ended);
      break;
    case 'retry': {
      const failed = { ...ended, error: run?.error ?? errorOf(settlement) };
      if (channels.failed.hasSubscribers) channels.failed.publish(failed);
      if (!superseded && channels.retried.hasSubscribers)
        channels.retried.publish({ ...failed, delayMs: settlement.delayMs });
      break;
    }
    case 'dead': {
      const failed = { ...ended, error: run?.error ?? errorOf(settlement) };
      if (settlement.charge && channels.failed.hasSubscribers) channels.failed.publish(failed);
      if (!superseded && channels.deadLettered.hasSubscribers)
        channels.deadLettered.publish({ ...failed, reason: settlement.reason });
      break;
    }
    case 'snooze':
      if (channels.snoozed.hasSubscribers) channels.snoozed.publish({ ...ended, delayMs: settlement.delayMs });
      break;
    case 'expired':
      if (channels.expired.hasSubscribers) channels.expired.publish({ instance, queue, id, attempt, latenessMs });
  }
}

/** The same for other processes. */
function tellFleet(
  fleet: FleetEvents,
  { id, settlement, run, notStarted }: Pick<Ended, 'id' | 'settlement' | 'run' | 'notStarted'>,
  superseded: boolean,
): void {
  const { attempt = 0, latenessMs = 0 } = run?.job ?? notStarted ?? {};
  const about = { id, attempt, latenessMs };
  const ran = run?.durationMs === undefined ? about : { ...about, durationMs: run.durationMs };
  const tell = (news: FleetNews) => fleet.tell(news);
  switch (settlement.verb) {
    case 'complete':
      return tell({ type: 'completed', ...ran });
    case 'snooze':
      return tell({ type: 'snoozed', ...ran, delayMs: settlement.delayMs });
    case 'expired':
      return tell({ type: 'expired', ...about });
    case 'retry': {
      const error = summarizeError(errorOf(settlement));
      tell({ type: 'failed', ...ran, error });
      if (!superseded) tell({ type: 'retried', ...ran, error, delayMs: settlement.delayMs });
      return;
    }
    case 'dead': {
      const error = summarizeError(errorOf(settlement));
      if (settlement.charge) tell({ type: 'failed', ...ran, error });
      if (!superseded) tell({ type: 'deadLettered', ...ran, error, reason: settlement.reason });
    }
  }
}

/** An error as it is stored, made an error again. */
function errorOf(settlement: Extract<Settlement, { error: string }>): Error {
  // Parsers quote their input, and that is the payload.
  if (settlement.verb === 'dead' && settlement.reason === 'undecodable') return new Error('It cannot be decoded.');
  const { name, message } = decodeError(`\n${settlement.error}`).error!;
  return Object.assign(new Error(message), { name });
}
