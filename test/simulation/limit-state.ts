import { LimitedStore, NO_GROUP } from './limited-store.js';
import type { StoredLimits } from './limited-store.js';
import { StartsOfQueue } from './limit-windows.js';
import type { Oracle } from './oracle.js';

/** A window that a clock lengthened, the longest that a group waits for nothing, and the time until somebody sweeps. */
const HEALED_MS = 5_000;
const SWEPT_MS = 10_000;
/** So many groups at a limit are looked at by the call that sets others. */
const LOOKED_AT = 200;

/**
 * What one queue with limits may start, by what it stores of jobs: not by its indexes of groups, which may be wrong. Times are simulated ms,
 * where nothing else is said.
 */
export class LimitState {
  readonly store: LimitedStore;
  starts = new StartsOfQueue();
  /** Jobs that keep the places of their groups while they wait to run again, and when they are due. */
  readonly kept = new Map<string, number>();
  /** Claimed to be settled as expired. */
  readonly expired = new Set<string>();
  isLimited = false;
  /** The latest time that a script here has seen, by the clock of the server, which may have gone back since. */
  latest = 0;
  /** How often somebody looked at what is stored. */
  looks = 0;
  /** Those that hold. */
  limits: StoredLimits;
  /** Jobs of each group that run, are in quarantine or keep their place, when the last script ended. */
  active: ReadonlyMap<string, number> = new Map();
  #isFull = false;
  /** Groups that have no place left. */
  #full: ReadonlySet<string> = new Set();
  /** Groups of which a job runs or is in quarantine: those that keep their places wait for it, where several do. */
  #busy: ReadonlySet<string> = new Set();
  /** Until when queue and groups were full. */
  #fullUntil = -Infinity;
  readonly #groupsFullUntil = new Map<string, number>();
  /** From when on what could start would be noticed, after limits were changed or a clock was. */
  #healedAt = -Infinity;

  constructor(oracle: Oracle, base: string) {
    this.store = new LimitedStore(oracle, base);
    [this.isLimited, this.limits] = this.store.read();
  }

  /** A script begins, or ended. @param now by the clock of the server */
  sees(now: number): void {
    this.latest = Math.max(this.latest, now);
    const { index, shards } = this.limits;
    [this.isLimited, this.limits] = this.store.read();
    // What has started in other shards does not move with the jobs.
    if (this.limits.index !== index || this.limits.shards !== shards) this.starts = new StartsOfQueue();
    this.starts.sees(now, this.limits.rate, this.limits.groupRate);
  }

  /** Nothing is known of what happened. @param at simulated ms */
  rolledBack(length: number, at: number): void {
    this.starts.rolledBack(length);
    this.kept.clear();
    // What is stored now was stored before: which jobs wait with the place of their group.
    for (const [id] of this.store.entries('held')) {
      const due = this.store.score('due', id);
      if (due !== undefined) this.kept.set(id, due);
    }
    this.#fullUntil = at;
    this.#healedAt = Math.max(this.#healedAt, at + HEALED_MS);
  }

  /** The clock of the server went back: groups are at a limit for longer, until somebody sweeps. */
  clockWentBack(at: number): void {
    const { rate, groupRate } = this.limits;
    this.#healedAt = at + Math.max(HEALED_MS, rate?.per ?? 0, groupRate?.per ?? 0) + SWEPT_MS;
  }

  /** Others hold from now on. What started by longer windows may still count in them. */
  limitsChanged(before: StoredLimits, at: number): void {
    const isMuch = this.store.size('ring') > LOOKED_AT;
    const pers = [before.rate, before.groupRate, this.limits.rate, this.limits.groupRate].map((rate) => rate?.per ?? 0);
    this.#healedAt = Math.max(this.#healedAt, at + Math.max(...pers, isMuch ? HEALED_MS + SWEPT_MS : 0));
  }

  keeps(id: string): boolean {
    const due = this.kept.get(id);
    if (due === undefined) return false;
    if (this.limits.blocks && this.store.score('due', id) === due) return true;
    this.kept.delete(id);
    return false;
  }

  /** Jobs that keep the place of this one's group while they wait, and when they are due: it may be one of them. */
  keptBefore(id: string): [id: string, due: number][] {
    const { base } = this.store.placeOf(id);
    return [...this.kept].filter(([other]) => this.keeps(other) && this.store.placeOf(other).base === base);
  }

  /** A script has changed what runs. @param at simulated ms */
  update(at: number): void {
    const { count, groupCount } = this.limits;
    const active = new Map<string, number>();
    const busy = new Set<string>();
    const running = this.store.entries('running');
    for (const [id] of [...running, ...this.store.entries('quarantine'), ...this.kept]) {
      const { base } = this.store.placeOf(id);
      if (base === NO_GROUP || this.expired.has(id) || this.store.isReserved(id)) continue;
      if (!this.kept.has(id)) busy.add(base);
      else if (!this.keeps(id)) continue;
      active.set(base, (active.get(base) ?? 0) + 1);
    }
    this.active = active;
    this.#busy = busy;
    if (this.#isFull) this.#fullUntil = at;
    for (const base of this.#full) this.#groupsFullUntil.set(base, at);
    this.#isFull = running.length >= count;
    this.#full = new Set([...active].filter(([, many]) => many >= groupCount).map(([base]) => base));
  }

  /** Whether one more of this group may start, by the limits of its group. @param now by the clock of the server */
  hasRoom(base: string, now: number): boolean {
    if (base === NO_GROUP) return true;
    const { groupRate } = this.limits;
    return !this.#full.has(base) && !(groupRate && this.starts.opensAt(now, groupRate, base) > now);
  }

  /** Since when a job that is due may have started; Infinity while it may not. @param now by the clock of the server */
  mayStartSince(id: string, now: number, at: number): number {
    if (!this.isLimited) return -Infinity;
    const { base } = this.store.placeOf(id);
    if (this.#isFull || (base === NO_GROUP && this.store.isAdopting)) return Infinity;
    if (base !== NO_GROUP && this.#full.has(base) && (this.#busy.has(base) || !this.keeps(id))) return Infinity;
    const { rate, groupRate } = this.limits;
    const opened = [
      rate ? this.starts.opensAt(now, rate) : -Infinity,
      groupRate && base !== NO_GROUP ? this.starts.opensAt(now, groupRate, base) : -Infinity,
    ].map((opens) => opens - now + at);
    return Math.max(this.#fullUntil, this.#groupsFullUntil.get(base) ?? -Infinity, this.#healedAt, ...opened);
  }
}
