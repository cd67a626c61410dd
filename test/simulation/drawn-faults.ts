import { CLUSTER_KINDS, FAULT_KINDS, KINDS_FOR_GOOD, WEATHER_KINDS } from './fault-kinds.js';
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
  killedOne: 2,
  deaf: 2,
  requestHeld: 3,
  replyHeld: 3,
  aimedLateStep: 2,
  aimedFreeze: 5,
  aimedCrash: 2,
  lateStep: 3,
  halfOpen: 2,
  halfOpenOne: 2,
  slow: 2,
  full: 6,
  readOnly: 2,
  lostReply: 2,
  scriptsForgotten: 2,
  unwelcome: 3,
  diskFull: 2,
  damaged: 10,
  replicasLag: 12,
  inPieces: 4,
  messagesLost: 8,
  slotMoves: 16,
  nodeFails: 20,
  nodeClockSteps: 12,
  masterFails: 16,
  masterChanges: 16,
  sentinelsAway: 4,
  sentinelsLie: 8,
};

/** So many workers are lost and replaced at most. */
const MOST_REPLACED = 24;
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

/** A stream of its own: a seed without it does what it did. */
export function drawClusterKinds(
  random: Random,
  { cluster, older, kinds }: Configuration,
): Pick<Configuration, 'kinds'> {
  const isDrawn = cluster && !older && kinds.length > 0 && random.chance(0.5);
  return { kinds: isDrawn ? [...kinds, ...CLUSTER_KINDS] : kinds };
}

/** At least one worker is left. In some runs another one takes the place of each that is lost, so that more can be lost. */
export function drawForGood(random: Random, { workers }: Configuration): Pick<Configuration, 'forGood'> {
  const most = random.chance(0.6) ? MOST_REPLACED : workers - 1;
  const count = workers > 1 && random.chance(0.6) ? random.whole(Math.ceil(most / 2), most) : 0;
  return { forGood: Array.from({ length: count }, () => random.pick(KINDS_FOR_GOOD)) };
}

/** Most runs have some: the others show what is punctual while single things go wrong. */
export function drawWeather(random: Random, { older, kinds }: Configuration): Pick<Configuration, 'weather'> {
  const hasSome = random.chance(0.8);
  const weather = WEATHER_KINDS.filter(() => random.chance(0.75));
  return { weather: hasSome && !older && kinds.length > 0 ? weather : [] };
}

export function drawFaults(random: Random, configuration: Configuration): Fault[] {
  const { kinds, forGood, faultEveryMs, faultsMs, restMs, workers } = configuration;
  const weighted = kinds.flatMap((kind) => Array.from({ length: weightOf(kind, configuration) }, () => kind));
  const faults: Fault[] = [];
  const replaced: number[] = [];
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
  const times = forGood.map(() => random.between(FIRST_MS, faultsMs)).toSorted((one, other) => one - other);
  for (const [i, kind] of forGood.entries()) {
    add(kind, times[i]!);
    // The others have to do what the last ones do not.
    if (i < forGood.length - (workers - 1)) replaced.push(faults.length - 1);
  }
  return faults.map((fault) => (replaced.includes(fault.n) ? { ...fault, replacedAfterMs: replacedMs(fault) } : fault));
}

/** Until a machine that is lost has been given up and another one works in its place. */
function replacedMs({ b }: Fault): number {
  return Math.round(200 + 2_500 * b * b);
}

/** In quarters of the usual. */
function weightOf(kind: FaultKind, { leaseMs }: Configuration): number {
  const weight = 4 * (WEIGHTS[kind] ?? 1);
  return LAST_FOR_LEASES.includes(kind) && leaseMs > USUAL_LEASE_MS
    ? Math.ceil((weight * USUAL_LEASE_MS) / leaseMs)
    : weight;
}
