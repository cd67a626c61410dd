import { FAULT_KINDS, KINDS_FOR_GOOD } from './fault-kinds.js';
import type { FaultKind } from './fault-kinds.js';
import type { Configuration, Fault } from './plan.js';
import { rounded } from './random.js';
import type { Random } from './random.js';

/** The first one comes when all processes work. */
const FIRST_MS = 1_500;
const VOLLEY_MS = [500, 3_000] as const;
/** From this lease on, what lasts as long as a lease comes less often. */
const USUAL_LEASE_MS = 5_000;

/** How often a kind is drawn, where others are drawn once: what seldom takes effect, or is possible in few worlds, more often. */
const WEIGHTS: Readonly<Partial<Record<FaultKind, number>>> = {
  aimedLateStep: 2,
  aimedFreeze: 2,
  aimedCrash: 2,
  lateStep: 2,
  replicasLag: 4,
  inPieces: 4,
  messagesLost: 2,
  slotMoves: 4,
  nodeFails: 12,
  masterFails: 4,
  masterChanges: 4,
  sentinelsLie: 2,
};

/** They last longer the longer leases are, and meanwhile nothing else can happen to their process. */
const LAST_FOR_LEASES: readonly FaultKind[] = ['freeze', 'aimedFreeze', 'cutOff'];
const OF_CLUSTER: readonly FaultKind[] = ['slotMoves', 'nodeFails'];

/** Each seed leaves out most kinds, so that rare combinations come about; of those that only few worlds know it leaves out fewer. */
export function drawKinds(random: Random, { cluster, replicas, durable }: Configuration): FaultKind[] {
  return FAULT_KINDS.filter((kind) => {
    const isDrawn = random.chance(0.4);
    if (OF_CLUSTER.includes(kind)) return cluster && (random.chance(0.6) || isDrawn);
    if (kind === 'replicasLag') return replicas > 0 && durable > 0 && (random.chance(0.6) || isDrawn);
    return isDrawn;
  });
}

/** At least one worker is left. */
export function drawForGood(random: Random, { workers }: Configuration): Pick<Configuration, 'forGood'> {
  const count = workers > 1 && random.chance(0.5) ? random.whole(1, workers - 1) : 0;
  return { forGood: Array.from({ length: count }, () => random.pick(KINDS_FOR_GOOD)) };
}

export function drawFaults(random: Random, configuration: Configuration): Fault[] {
  const { kinds, forGood, faultEveryMs, faultsMs, restMs, workers } = configuration;
  const weighted = kinds.flatMap((kind) => Array.from({ length: weightOf(kind, configuration) }, () => kind));
  const faults: Fault[] = [];
  const part = () => Math.floor(random.next() * 10_000) / 10_000;
  const add = (kind: FaultKind, at: number) =>
    faults.push({ n: faults.length, at: rounded(at), kind, who: part(), a: part(), b: part(), c: part() });
  let restAt = restMs > 0 ? FIRST_MS : Infinity;
  for (let at = FIRST_MS; at < faultsMs && weighted.length > 0; at += random.between(0, 2 * faultEveryMs)) {
    if (at >= restAt) {
      if (at > FIRST_MS) at += random.between(0, 2 * restMs);
      restAt = at + random.between(...VOLLEY_MS);
    }
    add(random.pick(weighted), at);
  }
  // Another worker has to do what they do not.
  for (const kind of forGood.slice(0, workers - 1)) add(kind, random.between(FIRST_MS, faultsMs));
  return faults;
}

/** In quarters of the usual. */
function weightOf(kind: FaultKind, { leaseMs }: Configuration): number {
  const weight = 4 * (WEIGHTS[kind] ?? 1);
  return LAST_FOR_LEASES.includes(kind) && leaseMs > USUAL_LEASE_MS
    ? Math.ceil((weight * USUAL_LEASE_MS) / leaseMs)
    : weight;
}
