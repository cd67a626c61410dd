import type { StepReply } from '../redis/step.protocol.js';
import { random } from '../time-and-randomness.js';
import { Departures } from './departures.js';

/** The longest sleep of a worker: wake-ups may be lost, so they are never the only source. */
const REREAD_MS = 5_000;
/** The longest rest: after it a worker looks itself, whatever it was told. lib/lua/shared/wake.lua goes by it. */
const REST_MS = 420_000;
const BACKUP_MIN_MS = 50;
const BACKUP_SPREAD_MS = 100;
const SWEEP_EVERY_MS = 1_000;

/**
 * When a worker must poll its queue next. All moments are monotonic ms; due times are measured from the server time in
 * the reply, never from a local wall clock.
 */
export class PollSchedule {
  /** How much longer than a sleep an entry in `idle` stays good. */
  static readonly IDLE_SLACK_MS = 2_000;

  at = 0;
  /** The longest sleep the next answer can lead to. */
  longestMs = REST_MS;
  /** Where time goes on only when somebody moves it, nothing becomes due by waiting: whoever moves it wakes this worker. */
  timePasses = true;
  #forced = false;
  #sweptAt = -Infinity;
  #sweepAt = 0;
  #idle = 0;
  readonly #departures = new Departures();
  readonly #rereadMs: number;
  readonly #sweepEveryMs: number;

  constructor(leaseMs: number) {
    // A gap of half a lease makes the scripts believe that the clock jumped.
    this.#rereadMs = Math.min(REREAD_MS, leaseMs / 3);
    this.#sweepEveryMs = Math.min(SWEEP_EVERY_MS, leaseMs / 4);
  }

  isDue(now: number): boolean {
    return this.#forced || now >= this.at;
  }

  /** A wake-up came: poll even if a step is on its way, which may have read the queue before. */
  get isForced(): boolean {
    return this.#forced;
  }

  force(): void {
    this.#forced = true;
  }

  /** A step that claims was planned: it sees all jobs of the wake-ups until now. */
  asked(): void {
    this.#forced = false;
  }

  /** Must this step sweep for leases that have ended? */
  takeSweep(now: number): boolean {
    if (now < this.#sweptAt + this.#sweepEveryMs && now < this.#sweepAt) return false;
    this.#sweptAt = now;
    this.#sweepAt = Infinity;
    return true;
  }

  /**
   * @param sentAt monotonic ms, as is `arrivedAt`
   * @param mayAsk this worker has free slots or is asking for jobs: it is not woken again for this head
   * @param hadSlots it asked for jobs for which slots were free, and not only ahead
   * @param mayRest it hears of changes of the shard without a step
   * @returns whether it rests from now on; undefined when that stays as it is
   */
  answered(
    reply: StepReply,
    sentAt: number,
    arrivedAt: number,
    asked: boolean,
    backlog: boolean,
    mayAsk = asked,
    hadSlots = true,
    mayRest = false,
  ): boolean | undefined {
    this.#departures.learn(reply.exactNow, sentAt, arrivedAt);
    const { isLeader } = reply;
    const idle = (this.#idle = reply.idle ?? this.#idle);
    // All idle processes but one are backups. A random delay keeps them from polling at one moment.
    const late = isLeader ? 0 : BACKUP_MIN_MS + random() * Math.max(BACKUP_SPREAD_MS, 2 * idle);
    this.longestMs = mayRest ? REST_MS : this.#rereadMs + 20 * idle;
    if (reply.firstLease !== undefined) {
      this.#sweepAt = arrivedAt + Math.max(0, reply.firstLease - reply.now) + late;
    }
    if (asked && backlog) {
      this.at = arrivedAt;
      return false;
    }
    let at = arrivedAt + this.#rereadMs + (isLeader ? 0 : random() * 20 * idle);
    const heard = reply.head !== undefined && !reply.paused;
    const headAt = heard && this.timePasses ? Math.max(arrivedAt, this.#departures.for(reply.head)) : Infinity;
    if (!asked) {
      // A step that claimed nothing must not postpone the next claim, unless that time has passed and no slot is free.
      // It may advance it: a job that it just retried can be the new head, which the claim on the other session read
      // too early to see.
      if (mayAsk) this.at = Math.min(this.at, headAt + late);
      else if (this.at <= arrivedAt) this.at = at;
      return undefined;
    }
    // A claim without a slot has told Redis that this worker is full, so nobody wakes it: it looks again as soon as it has a slot.
    if (!hadSlots) at = arrivedAt;
    else if (mayRest && reply.quiet !== undefined) {
      // Not all at one moment, and soon enough that the roles are given anew before the head is due.
      const restMs = Math.min(REST_MS * (1 - random() / 10), reply.quiet.until - reply.now - REREAD_MS);
      this.at = arrivedAt + Math.max(this.#rereadMs, restMs);
      return true;
    }
    // A claim that was cut left due jobs behind: claim again without the delay of a backup.
    const cut = (reply.isCut || reply.jobs.length > 0) && heard && reply.head <= reply.now;
    at = Math.min(at, headAt + (cut ? 0 : late));
    this.at = Math.min(at, this.#sweepAt);
    return false;
  }
}
