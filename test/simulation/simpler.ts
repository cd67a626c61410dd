import { withoutNight } from './nights.js';
import type { NightOperation } from './nights.js';
import { UNBOUNDED } from './bounds.js';
import { CLUSTER_KINDS, KINDS_FOR_GOOD, SENTINEL_KINDS } from './fault-kinds.js';
import type { FaultKind, KindForGood } from './fault-kinds.js';
import type { Configuration, Fault, Operation, Plan } from './plan.js';
import { QUEUES_OF_PULLERS, queuesOfWorkers } from './queues.js';

/** The plan without something that it has. */
type Feature = (plan: Plan) => Plan;

const OF_CLUSTER: readonly FaultKind[] = ['slotMoves', 'nodeFails', ...CLUSTER_KINDS];
const OF_SENTINELS: readonly FaultKind[] = SENTINEL_KINDS;
const FOR_GOOD: readonly FaultKind[] = KINDS_FOR_GOOD;

const hasSchedules = ({ schedules }: Configuration) => schedules > 0;
/** Where there can be operations of this kind. */
const NEEDS: Partial<Record<Operation['kind'], (configuration: Configuration) => boolean>> = {
  schedule: hasSchedules,
  unschedule: hasSchedules,
  pauseSchedule: hasSchedules,
  triggerSchedule: hasSchedules,
  backfillSchedule: hasSchedules,
  endSchedule: hasSchedules,
  transfer: ({ transfers }) => transfers > 0,
  reshard: ({ reshards }) => reshards.length > 0,
  resize: ({ resizes }) => resizes > 0,
  deploy: ({ older }) => older,
  setLimits: ({ limits }) => limits,
  lookAtLimits: ({ limits }) => limits,
  changeKept: ({ limits }) => limits,
};

/** What only the drawing reads: in a plan that is drawn it says nothing. */
export const DRAWN: Partial<Configuration> = {
  burst: 0,
  burstWorkMs: 0,
  fails: 0,
  cancels: 0,
  moves: 0,
  repeats: 0,
  snoozes: 0,
  expires: 0,
  bulks: 0,
  operators: 0,
  timeouts: 0,
  updates: 0,
  durable: 0,
  killers: 0,
  rolling: false,
  faultEveryMs: 0,
  restMs: 0,
  nights: 0,
  instants: 0,
  contentIds: 0,
};

/** Whole features of a configuration, each with all that stands or falls with it. */
const FEATURES: readonly Partial<Configuration>[] = [
  { cluster: false },
  { older: false },
  { queues: 0 },
  { limited: [] },
  { pull: false },
  { batch: false },
  { schedules: 0 },
  { transfers: 0, moved: false },
  { reshards: [] },
  { shards: 1 },
  { replicas: 0 },
  { persistence: 'everysec' },
  { ...UNBOUNDED },
  { workers: 1 },
  { concurrency: 1 },
  { latency: 1 },
];

/** Smaller by and by. */
const SMALLER: readonly ((configuration: Configuration) => Partial<Configuration>)[] = [
  ({ workers }) => ({ workers: Math.max(1, workers - 1) }),
  ({ concurrency }) => ({ concurrency: Math.max(1, Math.ceil(concurrency / 10)) }),
  ({ shards }) => ({ shards: Math.max(1, shards - 1) }),
  ({ queues }) => ({ queues: Math.floor(queues / 10) }),
  () => ({ longestDelayMs: 500, extends: 0 }),
];

/**
 * @returns all that the plan could do without, each as the plan without it: what makes runs slow first. With several of them, one is left out
 * of what another one has left.
 */
export function featuresOf(plan: Plan): Feature[] {
  const { configuration, operations, faults } = plan;
  const kinds = new Set<Operation['kind']>(operations.map(({ kind }) => kind));
  for (const kind of ['enqueue', 'bulk', 'schedule', 'night'] as const) kinds.delete(kind);
  const features: Feature[] = [
    ...FEATURES.map(
      (change): Feature =>
        (before) =>
          withConfiguration(before, change),
    ),
    ...configuration.limited.map(
      ({ queue }): Feature =>
        (before) =>
          withConfiguration(before, { limited: before.configuration.limited.filter((one) => one.queue !== queue) }),
    ),
    ...configuration.traits.map(
      (trait): Feature =>
        (before) =>
          withConfiguration(before, { traits: before.configuration.traits.filter((one) => one !== trait) }),
    ),
    ...configuration.weather.map(
      (kind): Feature =>
        (before) =>
          withConfiguration(before, { weather: before.configuration.weather.filter((one) => one !== kind) }),
    ),
    ...[...new Set(faults.map(({ kind }) => kind))].map(
      (kind): Feature =>
        (before) =>
          withoutFaults(before, kind),
    ),
    ...[...kinds].map((kind): Feature => (before) => ({
      ...before,
      operations: before.operations.filter((operation) => operation.kind !== kind),
    })),
    (before) => ({ ...before, operations: before.operations.filter((operation) => !isOfKiller(operation)) }),
  ];
  const before = JSON.stringify(plan);
  return features.filter((feature) => JSON.stringify(feature(plan)) !== before);
}

/** @returns plans that are smaller in one way each */
export function smallerThan(plan: Plan): Plan[] {
  const { configuration } = plan;
  const before = JSON.stringify(plan);
  const nights = plan.operations.filter((one): one is NightOperation => one.kind === 'night');
  const smaller = [
    ...nights.map((night) => withoutNight(plan, night)),
    ...SMALLER.map((change) => withConfiguration(plan, change(configuration))),
    withConfiguration(plan, { ...DRAWN, kinds: kindsOf(plan.faults), forGood: forGoodOf(plan.faults) }),
  ];
  return smaller.filter((one) => JSON.stringify(one) !== before);
}

/** The faults come to an end when the last one has come. */
export function sooner(plan: Plan): Plan {
  const last = Math.max(0, ...plan.operations.map(({ at }) => at), ...plan.faults.map(({ at }) => at));
  const faultsMs = Math.min(plan.configuration.faultsMs, Math.ceil(last) + 1);
  return { ...plan, configuration: { ...plan.configuration, faultsMs } };
}

/** With another configuration, and only what there can be in it. */
function withConfiguration(plan: Plan, change: Partial<Configuration>): Plan {
  const changed = { ...plan.configuration, ...change };
  const queues = new Set([...queuesOfWorkers(changed), ...(changed.pull ? QUEUES_OF_PULLERS : [])]);
  const limited = changed.limited.filter(({ queue }) => queues.has(queue));
  const configuration = { ...changed, limits: limited.length > 0, limited };
  return {
    ...plan,
    configuration,
    operations: plan.operations.filter(
      (operation) =>
        (!('queue' in operation) || queues.has(operation.queue)) && (NEEDS[operation.kind]?.(configuration) ?? true),
    ),
    faults: plan.faults.filter(
      ({ kind }) =>
        (configuration.cluster || !OF_CLUSTER.includes(kind)) &&
        (configuration.traits.includes('sentinels') || !OF_SENTINELS.includes(kind)),
    ),
  };
}

function withoutFaults(plan: Plan, kind: FaultKind): Plan {
  const faults = plan.faults.filter((fault) => fault.kind !== kind);
  return { ...plan, faults };
}

function kindsOf(faults: readonly Fault[]): FaultKind[] {
  return [...new Set(faults.map(({ kind }) => kind))].filter((kind) => !FOR_GOOD.includes(kind));
}

function forGoodOf(faults: readonly Fault[]): KindForGood[] {
  return faults.map(({ kind }) => kind).filter((kind): kind is KindForGood => FOR_GOOD.includes(kind));
}

function isOfKiller(operation: Operation): boolean {
  return operation.kind === 'enqueue' && operation.run.kills === true;
}
