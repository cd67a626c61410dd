import { LATER_KINDS, SENTINEL_KINDS } from './fault-kinds.js';
import type { Configuration } from './plan.js';
import type { Random } from './random.js';

/** In what an application, or its server, differs from most others. */
const TRAITS = [
  // How it connects and boots
  'eager',
  'checked',
  'url',
  'ownClient',
  'otherDatabase',
  'sentinels',
  'consumesList',
  'handed',
  // What its server says of itself
  'evicting',
  'evictsTimed',
  'oldServer',
  'valkey',
  // What stands around its handlers and calls
  'defined',
  'debounced',
  'throttled',
  'refusing',
  'failingBatches',
  'context',
  'traced',
  'retryRules',
  'middleware',
  'unheard',
  'chatty',
  // How its jobs are stored
  'compressed',
  'heavy',
  'otherCodec',
  'stated',
  'durable',
  'fewDeadLetters',
  // It makes calls that are refused before anything is sent
  'mistaken',
] as const;
/** They came later, and are drawn by a stream of their own: a seed without them does what it did. */
const LATER_TRAITS = [
  // Its workers tell others what has become of jobs
  'tellsFleet',
] as const;
export type Trait = (typeof TRAITS)[number] | (typeof LATER_TRAITS)[number];

export interface TraitsOfPlan {
  readonly traits: readonly Trait[];
}

/** Half of all runs have none of them. */
export function drawTraits(
  random: Random,
  { older, cluster, kinds, contentIds, reshards, persistence }: Configuration,
): TraitsOfPlan & Pick<Configuration, 'kinds'> {
  const hasSome = random.chance(0.5);
  const traits = TRAITS.filter((trait) => random.chance(trait === 'sentinels' ? 0.35 : 0.15));
  const later = LATER_KINDS.filter(() => random.chance(0.3));
  const ofSentinels = SENTINEL_KINDS.filter(() => random.chance(0.8));
  // Not all older builds know them.
  if (!hasSome || older) return { traits: [], kinds };
  // What an id is made of is what the codec makes.
  const impossible: readonly Trait[] = [
    ...(cluster ? ['sentinels' as const] : []),
    ...(contentIds > 0 ? ['otherCodec' as const] : []),
    // Redis never says that the file has it, and until it does no shard lets go of its jobs.
    ...(cluster && reshards.length > 0 && persistence === 'no' ? ['durable' as const] : []),
    ...(traits.includes('debounced') ? ['throttled' as const] : []),
  ];
  const possible = traits.filter((trait) => !impossible.includes(trait));
  if (kinds.length === 0) return { traits: possible, kinds };
  return { traits: possible, kinds: [...kinds, ...later, ...(possible.includes('sentinels') ? ofSentinels : [])] };
}

/** @param configuration with the other traits: where there are none, there is none of these either */
export function drawLaterTraits(random: Random, { traits }: Configuration): TraitsOfPlan {
  return { traits: traits.length === 0 ? traits : [...traits, ...LATER_TRAITS.filter(() => random.chance(0.15))] };
}

/** What INFO says in place of the usual. */
export function oddInfo(traits: readonly Trait[]): Readonly<Record<string, string>> {
  return {
    ...(traits.includes('oldServer') && { redis_version: '6.0.16' }),
    ...(traits.includes('valkey') && { valkey_version: '8.0.2' }),
    ...(traits.includes('evictsTimed') && { maxmemory_policy: 'volatile-lru', maxmemory: '1000000' }),
    ...(traits.includes('evicting') && { maxmemory_policy: 'allkeys-lru' }),
  };
}
