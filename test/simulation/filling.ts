import {
  CLUSTER_KINDS,
  FAULT_KINDS,
  KINDS_FOR_GOOD,
  LATER_KINDS,
  SENTINEL_KINDS,
  WEATHER_KINDS,
} from './fault-kinds.js';
import type { AnyKind, FaultKind, KindForGood, WeatherKind } from './fault-kinds.js';
import type { Configuration } from './plan.js';
import { Random } from './random.js';

/**
 * Short; all else is drawn by the seed. Few kinds come as often each as in other runs: more jumps of the clock within a lease, or more
 * calls within one fault, than the rules know of would break them.
 */
const SHORT: Partial<Configuration> = {
  workers: 4,
  leaseMs: 2_000,
  commandTimeoutMs: 1_000,
  rate: 4,
  concurrency: 3,
  queues: 0,
  burst: 0,
  killers: 0,
  older: false,
  nights: 0,
  bulks: 0,
  faultEveryMs: 200,
  restMs: 0,
  faultsMs: 20_000,
  mendingMs: 33_000,
};
/** Workers that one run loses: most of them are replaced, so that there is another one to lose. */
const LOST = 24;
/** Of a few kinds each one comes often. */
const MOST_KINDS = 6;
/** They come often enough by themselves, and too many of them within a lease would be something else. */
const JUMPS: readonly AnyKind[] = ['serverClockJump', 'serverClockJumpsTwice'];
const OF_CLUSTER: readonly AnyKind[] = ['slotMoves', 'nodeFails', ...CLUSTER_KINDS];

/** What only one world knows: a Cluster, a master that Sentinels watch, or replicas that somebody waits for. */
const WORLDS: readonly { readonly knows: readonly AnyKind[]; readonly given: Partial<Configuration> }[] = [
  { knows: OF_CLUSTER, given: { cluster: true, traits: [] } },
  { knows: SENTINEL_KINDS, given: { cluster: false, traits: ['sentinels'] } },
  { knows: ['replicasLag'], given: { cluster: false, traits: [], replicas: 2, durable: 0.3 } },
];

/**
 * What to give a seed so that kinds of faults which are behind come often. They take effect, or not, as in any other run.
 *
 * @param kinds at least one
 */
export function fillingFor(seed: number, kinds: readonly AnyKind[]): Partial<Configuration> {
  const random = new Random(seed, 'filling');
  const behind = kinds.filter((kind) => !JUMPS.includes(kind));
  if (behind.length === 0) return {};
  const first = random.pick(behind);
  const world = WORLDS.find(({ knows }) => knows.includes(first));
  const elsewhere = WORLDS.flatMap((other) => (other === world ? [] : other.knows));
  const possible = behind.filter((kind) => !elsewhere.includes(kind));
  // The first one is among them.
  const few = [...new Set([first, ...Array.from({ length: MOST_KINDS }, () => random.pick(possible))])];
  const forGood = few.filter(isForGood);
  const weather = few.filter(isWeather);
  return {
    ...SHORT,
    ...world?.given,
    kinds: few.filter(isPlanned),
    forGood: forGood.length > 0 ? Array.from({ length: LOST }, () => random.pick(forGood)) : [],
    ...(weather.length > 0 && { weather }),
  };
}

function isForGood(kind: AnyKind): kind is KindForGood {
  return (KINDS_FOR_GOOD as readonly AnyKind[]).includes(kind);
}

function isWeather(kind: AnyKind): kind is WeatherKind {
  return (WEATHER_KINDS as readonly AnyKind[]).includes(kind);
}

function isPlanned(kind: AnyKind): kind is FaultKind {
  return ([...FAULT_KINDS, ...LATER_KINDS, ...CLUSTER_KINDS, ...SENTINEL_KINDS] as readonly AnyKind[]).includes(kind);
}
