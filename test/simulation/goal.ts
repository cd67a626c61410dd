import { ALL_KINDS } from './fault-kinds.js';
import type { AnyKind } from './fault-kinds.js';

export const YEAR_MS = 365.25 * 86_400_000;
/** Before that nobody can say how often a kind comes. */
const LEAST_SEEDS = 50;

/** What a campaign is to reach; 0 of what does not matter. */
export interface Goal {
  /** Faults that took effect. */
  readonly faults: number;
  /** Simulated. */
  readonly years: number;
  /** Faults of each kind. */
  readonly each: number;
}

export type Effects = Partial<Record<AnyKind, number>>;

/** What was counted. */
export interface Tally {
  seeds: number;
  simulatedMs: number;
  readonly effects: Effects;
}

export function faultsOf({ effects }: Tally): number {
  return Object.values(effects).reduce((sum, count) => sum + count, 0);
}

/** Kinds of which there are fewer than that. */
export function shortOf(each: number, effects: Effects): AnyKind[] {
  return ALL_KINDS.filter((kind) => (effects[kind] ?? 0) < each);
}

export function isReached(goal: Goal, all: Tally): boolean {
  return hasEnough(goal, all) && shortOf(goal.each, all.effects).length === 0;
}

/** Whether the goal is reached but for kinds that are short. */
export function hasEnough({ faults, years }: Goal, all: Tally): boolean {
  return faultsOf(all) >= faults && all.simulatedMs >= years * YEAR_MS;
}

/**
 * Kinds that will be short when there are faults and years enough, if seeds go on as they did.
 *
 * @param plain of the seeds that were given nothing for the sake of such kinds
 */
export function behind(goal: Goal, all: Tally, plain: Tally): AnyKind[] {
  if (hasEnough(goal, all)) return shortOf(goal.each, all.effects);
  if (plain.seeds < LEAST_SEEDS) return [];
  const faults = (goal.faults - faultsOf(all)) / (faultsOf(plain) / plain.seeds);
  const years = (goal.years * YEAR_MS - all.simulatedMs) / (plain.simulatedMs / plain.seeds);
  const seedsLeft = Math.max(0, faults, years);
  return ALL_KINDS.filter((kind) => {
    const more = ((plain.effects[kind] ?? 0) / plain.seeds) * seedsLeft;
    return (all.effects[kind] ?? 0) + more < goal.each;
  });
}
