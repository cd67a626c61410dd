import { PublishingPausedError } from '../delay-queue.errors.js';
import { AGAIN } from '../instance/compare-and-set.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { parseOccurrenceId } from '../job/job-id.js';
import { bytesOfTick, goneOfTick, overOfTick, tickArgs, tickScript } from '../redis/schedule.protocol.js';
import type { StoredSchedule, TickRequest } from '../redis/schedule.protocol.js';
import { withOver } from './over-occurrences.js';
import { decodeRecord, encodeRecord, waitingAhead } from './schedule-record.js';
import type { ScheduleRecord, ScheduleState } from './schedule-record.js';
import type { FoundSchedule } from './schedule-search.js';

/** A change of a schedule that was read: the record that follows, and what comes with it. */
export type Change = Omit<TickRequest, 'id' | 'read' | 'ahead' | 'since' | 'pauses'>;

/** The schedule after a change. */
export interface Changed {
  readonly record: ScheduleRecord;
  readonly now: number;
  readonly shard: number;
  /** Times of those that were due, and went with it. */
  readonly gone: readonly number[];
}

/** What follows; the record when nothing is to be written, undefined when there is nothing to change. */
export type Decide = (
  stored: StoredSchedule | undefined,
  record: ScheduleRecord | undefined,
  now: number,
  shard: number,
) => Promise<Change | ScheduleRecord | undefined>;

/** One try of a change: a read, and a write if nobody has written since. */
export class ScheduleWrite {
  /** Times that earlier tries have found to be over. */
  readonly #over: number[] = [];

  constructor(
    private readonly context: InstanceContext,
    private readonly call: string,
    private readonly queue: string,
    private readonly id: string,
  ) {}

  /** @param before from when on it comes too late, ms */
  async run(
    { now, stored, shard }: FoundSchedule,
    decide: Decide,
    before = Infinity,
  ): Promise<Changed | undefined | typeof AGAIN> {
    const { context, call, queue, id } = this;
    const record = stored && decodeRecord(stored.text);
    const change = await decide(stored, record && withOver(record, this.#over), now, shard);
    if (!change) return undefined;
    if (!('follows' in change)) return { record: change, now, shard, gone: [] };
    const validBefore = Math.min(change.validBefore ?? Infinity, before);
    const follows = decodeRecord(change.follows)!;
    const request: TickRequest = {
      ...change,
      id,
      read: stored?.text,
      since: now,
      pauses: change.pausedAt !== undefined && follows.state.paused,
      ahead: waitingAhead(follows.state, now).length,
      validBefore: validBefore === Infinity ? undefined : validBefore,
    };
    const args = tickArgs(request, context.connection.movedMs);
    const words = { call, bytes: bytesOfTick(request) };
    const answer = await context.ofShard(queue, shard).run(tickScript(request), id, args, words);
    if (answer === 'b') throw new PublishingPausedError(queue);
    const toCome = request.gone.slice(request.goneDue ?? 0);
    this.#over.push(...(timesOfIds(overOfTick(toCome, answer)) ?? []));
    const gone = timesOfIds(goneOfTick(request, answer));
    return gone ? { record: follows, now, shard, gone } : AGAIN;
  }
}

function timesOfIds(occurrences: readonly string[] | undefined): number[] | undefined {
  return occurrences?.map((occurrence) => parseOccurrenceId(occurrence)!.at);
}

/** A change of the state only. */
export function changeOfState(record: ScheduleRecord, state: ScheduleState, tick: number): Change {
  const follows = encodeRecord({ ...record, state: { ...state, revision: record.state.revision + 1 } });
  return { follows, tick, missed: 0, gone: [], validBefore: undefined, occurrences: [] };
}
