import { OncePerTurn } from '../once-per-turn.js';
import { performance } from '../time-and-randomness.js';
import { Alarm } from './alarm.js';

/** A worker that takes slots from a pool. */
export interface SlotUser {
  /** A slot for which it waited is free. */
  wake(): void;
  /** Would it ask for jobs at once, if it could? */
  wantsJobs(now: number): boolean;
  /** Only where a slot holds a batch: how many slots it has, when `asked` jobs more may come. */
  batchSlots?(asked: number): number;
}

/** Slots that one step asks jobs for. */
export interface Reservation {
  readonly user: SlotUser;
  /** For so many jobs. */
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
 *
 * With `batch` a slot holds a batch of one shard from the moment its first job is asked for, however few jobs it has. Then each worker says
 * how many slots it has, which is one call for each shard and plan: a batch fills, begins and ends in too many ways to count along.
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
  /** With `batch`: jobs that steps on their way may bring. */
  readonly #asked = new Map<SlotUser, number>();
  /** The worker whose turn it is: no other comes before it. */
  #serving: SlotUser | undefined;
  readonly #serveSoon = new OncePerTurn(() => this.#serve());

  constructor(
    public size: number,
    private readonly ofBatches = false,
  ) {}

  get isShared(): boolean {
    return this.#users.size > 1;
  }

  join(user: SlotUser): void {
    this.#users.add(user);
  }

  leave(user: SlotUser): void {
    this.#users.delete(user);
    this.#waiting.delete(user);
    this.#asked.delete(user);
    if (this.#users.size === 0) this.#silentSteps.clear();
    else this.freed();
  }

  /** Slots that `user` may take, after those that began to wait before it. */
  freeFor(user: SlotUser): number {
    const free = this.#free;
    if (this.#waiting.size === 0 || user === this.#serving) return free;
    let before = 0;
    for (const other of this.#waiting) {
      if (other === user) break;
      before++;
    }
    return free - before;
  }

  /** With `batch`: those that `user` may fill, the ones that it has among them. Less than these when there are fewer by now. */
  batchesOf(user: SlotUser): number {
    return this.#slotsOf(user, 0) + this.#free;
  }

  /** With `batch`: the same for those that are still to be asked for, after others that began to wait before it. */
  batchesFor(user: SlotUser): number {
    return this.#slotsOf(user, 0) + Math.max(0, this.freeFor(user));
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
  reserve(reservation: Reservation): void {
    const { user, slots } = reservation;
    this.#takes(user, slots);
    if (slots > 0 && this.#waiting.size > 0) this.#waiting.delete(user);
    if (this.isShared && slots > 0) this.#unanswered.add(reservation);
  }

  /** It was answered. @returns how many of the `jobs` that it brought may start: after a long silence perhaps not all */
  answered(reservation: Reservation, jobs: number): number {
    const room = reservation.held ? jobs : this.#roomFor(reservation.user, jobs);
    this.#giveBack(reservation);
    if (!this.ofBatches) this.#taken += room;
    return room;
  }

  /** Jobs have ended. */
  release(jobs: number): void {
    if (!this.ofBatches) this.#taken -= jobs;
    if (jobs > 0) this.freed();
  }

  /** Others may have what waits for a slot. */
  freed(): void {
    if (this.#waiting.size > 0) this.#serveSoon.schedule();
  }

  get #free(): number {
    if (!this.ofBatches) return this.size - this.#taken;
    let taken = 0;
    for (const user of this.#users) taken += this.#slotsOf(user, 0);
    return this.size - taken;
  }

  #slotsOf(user: SlotUser, more: number): number {
    return user.batchSlots!((this.#asked.get(user) ?? 0) + more);
  }

  #takes(user: SlotUser, jobs: number): void {
    if (this.ofBatches) this.#asked.set(user, (this.#asked.get(user) ?? 0) + jobs);
    else this.#taken += jobs;
  }

  #roomFor(user: SlotUser, jobs: number): number {
    if (!this.ofBatches) return Math.min(jobs, Math.max(0, this.#free));
    const most = this.#slotsOf(user, 0) + Math.max(0, this.#free);
    let room = jobs;
    while (room > 0 && this.#slotsOf(user, room) > most) room--;
    return room;
  }

  #giveBack(reservation: Reservation): void {
    if (!reservation.held) return;
    reservation.held = false;
    this.#unanswered.delete(reservation);
    this.#takes(reservation.user, -reservation.slots);
    if (reservation.slots > 0) this.freed();
  }

  #serve(): void {
    for (const user of Array.from(this.#waiting)) {
      if (this.#free <= 0) break;
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
