import { isDeepStrictEqual } from 'node:util';
import { clearTimeout, performance, setTimeout } from '../time-and-randomness.js';
import { bodyOf } from '../job/envelope.js';
import type { Payloads } from '../job/payloads.js';
import { bytesOf } from '../redis/enqueue.protocol.js';
import type { EnqueueItem } from '../redis/enqueue.protocol.js';

/** A job whose enqueue failed with `maybeAccepted`: Redis may have it or not. */
export interface Doubt<Flight> {
  readonly item: EnqueueItem;
  /** The call that carried the job. Sent again under its number, it is answered with the result of the job. */
  readonly flight: Flight;
  /** Which of the jobs of that call it is. */
  readonly place: number;
  /** Monotonic ms: until then an enqueue of its id counts as its repeat. */
  readonly until: number;
}

/**
 * How long an enqueue of an id in doubt counts as the repeat that the error asks for. A later enqueue may be meant as a
 * new job, which would be lost if it got the answer of another call.
 */
export const REPEAT_MS = 60_000;
/**
 * The most that is remembered for one shard. The oldest jobs are forgotten first, and their repeats are plain calls.
 */
const MOST_BYTES = 16 * 1024 * 1024;
/** About how many bytes a doubtful job takes in addition to its texts. */
const DOUBT_BYTES = 200;

/** Modes in which an id stands for one job: a second call under it wants nothing new. */
const ONE_JOB = 'nkox';

/** Its codec may be the application's, so it may throw. */
export type PayloadReader = Pick<Payloads, 'decode'>;

/** The enqueues of one shard that ended in doubt, by id, because callers may repeat them. */
export class DoubtfulJobs<Flight> {
  readonly #byId = new Map<string, Doubt<Flight>[]>();
  readonly #flights = new Map<Flight, number>();
  #bytes = 0;
  #sweeping: NodeJS.Timeout | undefined;

  constructor(private readonly payloads: PayloadReader) {}

  get isEmpty(): boolean {
    return this.#byId.size === 0;
  }

  isIn(flight: Flight): boolean {
    return this.#flights.has(flight);
  }

  /** With replace and reschedule every call counts by itself, so there is nothing to remember. */
  add(doubt: Doubt<Flight>): void {
    const { item, flight } = doubt;
    if (!isOneJob(item) || doubt.until <= performance.now()) return;
    const doubts = this.#byId.get(item.id);
    if (doubts) doubts.push(doubt);
    else this.#byId.set(item.id, [doubt]);
    this.#flights.set(flight, (this.#flights.get(flight) ?? 0) + 1);
    this.#bytes += sizeOf(doubt);
    while (this.#bytes > MOST_BYTES) this.forget(this.#byId.keys().next().value!);
    this.#sweepLater();
  }

  /** @returns the doubt that a call of this job repeats. It is over: the next call under the id is a new one. */
  take(item: EnqueueItem): Doubt<Flight> | undefined {
    const doubts = this.#byId.get(item.id);
    if (!doubts || !isOneJob(item)) return undefined;
    const now = performance.now();
    const at = doubts.findIndex((doubt) => doubt.until > now && isSame(doubt.item, item, this.payloads));
    if (at < 0) return undefined;
    const [doubt] = doubts.splice(at, 1);
    this.#release(doubt!);
    if (doubts.length === 0) this.#byId.delete(item.id);
    return doubt;
  }

  /** Another call concerned this id: the next enqueue under it is a new job. */
  forget(id: string): void {
    for (const doubt of this.#byId.get(id) ?? []) this.#release(doubt);
    this.#byId.delete(id);
  }

  /** The same of all. */
  forgetAll(): void {
    for (const id of this.#byId.keys()) this.forget(id);
  }

  clear(): void {
    this.#byId.clear();
    this.#flights.clear();
    this.#bytes = 0;
    clearTimeout(this.#sweeping);
  }

  #release(doubt: Doubt<Flight>): void {
    this.#bytes -= sizeOf(doubt);
    const left = this.#flights.get(doubt.flight)! - 1;
    if (left > 0) this.#flights.set(doubt.flight, left);
    else this.#flights.delete(doubt.flight);
  }

  #sweepLater(): void {
    this.#sweeping ??= setTimeout(() => {
      this.#sweeping = undefined;
      const now = performance.now();
      for (const [id, doubts] of this.#byId) if (doubts.every(({ until }) => until <= now)) this.forget(id);
      if (!this.isEmpty) this.#sweepLater();
    }, REPEAT_MS).unref();
  }
}

function isOneJob({ spec }: EnqueueItem): boolean {
  return ONE_JOB.includes(spec[0]!);
}

/**
 * The same payload and the same answer to a duplicate, whatever the context, trace and due time: a delay may have been
 * counted again.
 */
function isSame(one: EnqueueItem, other: EnqueueItem, payloads: PayloadReader): boolean {
  // The repeat of a call without an id says the one that the error told.
  if (one.spec[0] !== other.spec[0] && one.spec[0] !== 'n') return false;
  const [mine, theirs] = [bodyOf(one.content), bodyOf(other.content)];
  if (mine.body === theirs.body) return true;
  if (mine.mark?.codec === undefined || mine.mark.codec !== theirs.mark?.codec) return false;
  // A codec may write one payload differently each time, as those do that encrypt. Jobs in doubt are few, so both are decoded.
  try {
    return isDeepStrictEqual(payloads.decode(mine.body, mine.mark), payloads.decode(theirs.body, theirs.mark));
  } catch {
    // What cannot be read back is known by its id alone: a second job would be worse than an answer too few.
    return true;
  }
}

function sizeOf({ item }: Doubt<unknown>): number {
  return bytesOf(item) + DOUBT_BYTES;
}
