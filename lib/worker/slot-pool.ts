import { OncePerTurn } from '../once-per-turn.js';
import { performance } from '../time-and-randomness.js';
import { Alarm } from './alarm.js';

/** A worker that takes slots from a pool. */
export interface SlotUser {
  /** A slot for which it waited is free. */
  wake(): void;
  /** Would it ask for jobs at once, if it could? */
  wantsJobs(now: number): boolean;
}

/** Slots that one step asks jobs for. */
export interface Reservation {
  readonly slots: number;
  readonly at: number;
  /** False once its slots were given to others, because no answer came. */
  held: boolean;
}

/** How long a step without an answer may keep its slots from other shards: its node may hang while others work. */
const SILENT_STEP_MS = 1_000;

/**
 * The slots of one queue in one process: its concurrency. With shards several workers share it. A worker without a free
 * slot joins a queue; a freed slot goes to the worker that has waited longest, so neither a busy shard nor one with
 * long jobs can starve the others.
 */
export class SlotPool {
  /** Whoever has asked for jobs does not wait for them. */
  looksOnce = false;
  readonly #users = new Set<SlotUser>();
  /** In the order in which they began to wait. */
  readonly #waiting = new Set<SlotUser>();
  readonly #unanswered = new Set<Reservation>();
  readonly #silentSteps = new Alarm(() => this.#takeFromSilent());
  #taken = 0;
  /** The worker whose turn it is: no other comes before it. */
  #serving: SlotUser | undefined;
  readonly #serveSoon = new OncePerTurn(() => this.#serve());

  constructor(public size: number) {}

  get isShared(): boolean {
    return this.#users.size > 1;
  }

  join(user: SlotUser): void {
    this.#users.add(user);
  }

  leave(user: SlotUser): void {
    this.#users.delete(user);
    this.#waiting.delete(user);
    if (this.#users.size === 0) this.#silentSteps.clear();
    else this.#freed();
  }

  /** Slots that `user` may take, after those that began to wait before it. */
  freeFor(user: SlotUser): number {
    const free = this.size - this.#taken;
    if (this.#waiting.size === 0 || user === this.#serving) return free;
    let before = 0;
    for (const other of this.#waiting) {
      if (other === user) break;
      before++;
    }
    return free - before;
  }

  /**
   * The most that one step of `user` should ask for: all slots, or its share if other shards are about to ask as well.
   */
  shareOf(user: SlotUser, now: number): number {
    if (!this.isShared) return this.size;
    for (const other of this.#users) if (other !== user && other.wantsJobs(now)) return this.fairShare;
    return this.size;
  }

  get fairShare(): number {
    return Math.ceil(this.size / Math.max(1, this.#users.size));
  }

  /** Wakes `user` when there is a slot for it. */
  wait(user: SlotUser): void {
    this.#waiting.add(user);
    const [oldest] = this.#unanswered;
    if (oldest) this.#silentSteps.set(oldest.at + SILENT_STEP_MS);
  }

  /** A step leaves that may bring that many jobs. */
  reserve(user: SlotUser, reservation: Reservation): void {
    const { slots } = reservation;
    this.#taken += slots;
    if (slots > 0 && this.#waiting.size > 0) this.#waiting.delete(user);
    if (this.isShared && slots > 0) this.#unanswered.add(reservation);
  }

  /** It was answered. @returns how many of the `jobs` that it brought may start: after a long silence perhaps not all */
  answered(reservation: Reservation, jobs: number): number {
    const room = reservation.held ? jobs : Math.min(jobs, Math.max(0, this.size - this.#taken));
    this.#giveBack(reservation);
    this.#taken += room;
    return room;
  }

  release(slots: number): void {
    this.#taken -= slots;
    if (slots > 0) this.#freed();
  }

  #giveBack(reservation: Reservation): void {
    if (!reservation.held) return;
    reservation.held = false;
    this.#unanswered.delete(reservation);
    this.release(reservation.slots);
  }

  #freed(): void {
    if (this.#waiting.size > 0) this.#serveSoon.schedule();
  }

  #serve(): void {
    for (const user of Array.from(this.#waiting)) {
      if (this.size - this.#taken <= 0) break;
      // First: it may have become unable to ask, and the next one must not wait for that; or wait for more than it gets.
      this.#waiting.delete(user);
      this.#serving = user;
      user.wake();
    }
    this.#serving = undefined;
  }

  #takeFromSilent(): void {
    const since = performance.now() - SILENT_STEP_MS;
    for (const reservation of this.#unanswered) {
      if (reservation.at <= since) this.#giveBack(reservation);
      else return void (this.#waiting.size > 0 && this.#silentSteps.set(reservation.at + SILENT_STEP_MS));
    }
  }
}
