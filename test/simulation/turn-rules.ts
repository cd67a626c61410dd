import type { StartedJob } from './limit-rules.js';
import type { LimitState } from './limit-state.js';
import { NO_GROUP } from './limited-store.js';
import type { Oracle } from './oracle.js';

/** Jobs of one turn; see lib/lua/step/turns.lua. A claim of more gives each group an equal part. */
const TURN = 5;
/** Groups that had nothing due until now get at most half of each claim, so a round of the others is at most twice as long. */
const ROUNDS = 2;

/** A group that might start something, and does not. */
interface Waiting {
  /** What others started meanwhile. */
  starts: number;
  /** Others that started something, or had something due. */
  readonly others: Set<string>;
  longestClaim: number;
}

/** Within a group jobs start in their order, and groups take turns. */
export class TurnRules {
  readonly #waiting = new WeakMap<LimitState, Map<string, Waiting>>();

  constructor(private readonly oracle: Oracle) {}

  /** What groups wait for has changed. */
  forget(state: LimitState): void {
    this.#waiting.delete(state);
  }

  /** One claim. @param now by the clock of the server */
  judge(state: LimitState, started: readonly StartedJob[], now: number): void {
    const fromDue = started.filter(({ due }) => due !== undefined);
    if (fromDue.length === 0) return;
    const left = this.#leftIn(state, now);
    for (const job of fromDue) this.#judgeOrder(state, job, left.get(job.base));
    this.#judgeTurns(state, fromDue, left, now);
  }

  /** Of each group its due job that is the next one, by its order. */
  #leftIn({ store, limits }: LimitState, now: number): Map<string, { id: string; order: number }> {
    const next = new Map<string, { id: string; order: number }>();
    const isAdopting = store.isAdopting;
    for (const [id, due] of store.entries('due', String(now))) {
      const { base, priority } = store.placeOf(id);
      if (base === NO_GROUP && isAdopting) continue;
      const order = Math.floor(due) - priority * limits.stepMs;
      const known = next.get(base);
      if (!known || order < known.order) next.set(base, { id, order });
    }
    return next;
  }

  #judgeOrder(state: LimitState, job: StartedJob, next: { id: string; order: number } | undefined): void {
    const { id, base, due, priority, wasKept } = job;
    const { store, limits } = state;
    if (wasKept) return;
    const group = base === NO_GROUP ? 'no group' : `group ${base}`;
    const order = Math.floor(due!) - priority * limits.stepMs;
    if (next && next.order < order)
      this.oracle.report('order', `${id} of ${group} of ${store.base} starts, and ${next.id}, which is before it by ${order - next.order} ms, does not`); // prettier-ignore
    if (base === NO_GROUP || job.hasExpired) return;
    for (const other of state.kept.keys()) {
      if (other === id || !state.keeps(other) || store.placeOf(other).base !== base) continue;
      this.oracle.report('order', `${id} of ${group} of ${store.base} starts, though ${other} has the place of the group until it has run again`); // prettier-ignore
    }
  }

  /** A group in line waits for one turn of each of the others, beside as much of those that had nothing due until now. */
  #judgeTurns(
    state: LimitState,
    started: readonly StartedJob[],
    left: ReadonlyMap<string, unknown>,
    now: number,
  ): void {
    const waiting = this.#waiting.get(state) ?? new Map<string, Waiting>();
    this.#waiting.set(state, waiting);
    const had = new Set(started.map(({ base }) => base));
    for (const base of waiting.keys()) {
      if (had.has(base) || !left.has(base) || !state.hasRoom(base, now)) waiting.delete(base);
    }
    for (const base of left.keys()) {
      if (had.has(base) || !state.hasRoom(base, now)) continue;
      const one = waiting.get(base) ?? { starts: 0, others: new Set<string>(), longestClaim: 0 };
      waiting.set(base, one);
      one.starts += started.length;
      one.longestClaim = Math.max(one.longestClaim, started.length);
      for (const other of [...had, ...left.keys()]) one.others.add(other);
      const turn = Math.max(TURN, one.longestClaim);
      const most = ROUNDS * (one.others.size + 1) * turn + ROUNDS * one.longestClaim;
      if (one.starts <= most) continue;
      this.oracle.report('unfair', `group ${base} of ${state.store.base} might start something, and ${one.starts} jobs of ${one.others.size} groups started meanwhile`); // prettier-ignore
      waiting.delete(base);
    }
  }
}
