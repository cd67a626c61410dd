import { LATENESS_BOUNDS } from '../tally/tally.js';
import type { QueueTally } from '../tally/tally.js';

/** What is counted of the jobs of a queue. */
export const KINDS = [
  'enqueued',
  'claimed',
  'completed',
  'failed',
  'retried',
  'snoozed',
  'expired',
  'deadLettered',
  'leasesLost',
] as const;

export type Kind = (typeof KINDS)[number];

/** One more than there are bounds: what was later than all of them. */
export const LATENESS_FIELDS = Array.from({ length: LATENESS_BOUNDS.length + 1 }, (_, n) => `late${n}`);

/** Fields of the hash of a minute, and their values. All are whole numbers that only grow, so any process may add to them. */
export type MinuteCounts = Record<string, number>;

/** How long a process had more due jobs than it could start, and how many it started meanwhile. */
export interface Busy {
  readonly ms: number;
  readonly claimed: number;
  /** The same of the beginning and the end of such times, which say less. */
  readonly edgeMs: number;
  readonly edgeClaimed: number;
}

/** All that a process has counted of a queue so far. */
export function countsOf(tally: QueueTally, busy: Busy): MinuteCounts {
  const { enqueued, deadLettered, lateness, duration } = tally;
  const counts: MinuteCounts = {
    ...Object.fromEntries(
      KINDS.map((kind) => [kind, kind === 'enqueued' || kind === 'deadLettered' ? 0 : tally[kind]]),
    ),
    enqueued: enqueued.created + enqueued.replaced + enqueued.rescheduled,
    deadLettered: sum(Object.values(deadLettered)),
    latenessMs: Math.round(lateness.sum * 1_000),
    ran: sum(duration.counts),
    ranMs: Math.round(duration.sum * 1_000),
    busyMs: Math.round(busy.ms),
    busyClaimed: busy.claimed,
    edgeMs: Math.round(busy.edgeMs),
    edgeClaimed: busy.edgeClaimed,
  };
  for (const [n, count] of lateness.counts.entries()) counts[LATENESS_FIELDS[n]!] = count;
  return counts;
}

/** What is new since then; undefined when nothing is. */
export function newCounts(now: MinuteCounts, then: MinuteCounts | undefined): MinuteCounts | undefined {
  const grown = Object.entries(now)
    .map(([field, count]) => [field, count - (then?.[field] ?? 0)] as const)
    .filter(([, count]) => count > 0);
  return grown.length > 0 ? Object.fromEntries(grown) : undefined;
}

export function added(all: readonly MinuteCounts[]): MinuteCounts {
  const total: MinuteCounts = {};
  for (const counts of all) {
    for (const [field, count] of Object.entries(counts)) total[field] = (total[field] ?? 0) + count;
  }
  return total;
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
