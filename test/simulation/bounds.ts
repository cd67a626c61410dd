import { createHash } from 'node:crypto';
import type { FaultKind } from './fault-kinds.js';
import type { FurtherOperation } from './further-operations.js';
import type { Configuration, EnqueueOperation, Operation } from './plan.js';
import { rounded } from './random.js';
import type { Random } from './random.js';

/** What bounds a queue, and how its jobs get their ids and times. */
export interface BoundsOfPlan {
  /** Most jobs that may wait and run in a shard; 0 for any number. */
  readonly maxSize: number;
  /** How many completed jobs a shard keeps, and for how long; 0 for none. */
  readonly keptCount: number;
  readonly keptMs: number;
  /** Probabilities, for each job: a worker gets another concurrency, its time is an instant, its id comes from its payload. */
  readonly resizes: number;
  readonly instants: number;
  readonly contentIds: number;
}

/** A worker gets another concurrency for a while. */
export interface ResizeOperation {
  readonly kind: 'resize';
  readonly at: number;
  readonly worker: number;
  readonly to: number;
  readonly forMs: number;
}

export const UNBOUNDED: BoundsOfPlan = { maxSize: 0, keptCount: 0, keptMs: 0, resizes: 0, instants: 0, contentIds: 0 };

/** A node that falls back alone would take shards apart while their number changes. */
const TAKE_SHARDS_APART: readonly FaultKind[] = ['restart', 'failover', 'splitBrain', 'nodeFails'];

/** Has a stream of its own: a seed that draws nothing here does what it did before there were bounds. */
export function drawBounds(
  random: Random,
  { older, burst, cluster, kinds, reshards: drawn }: Configuration,
): BoundsOfPlan & Partial<Configuration> {
  // Not all older builds know them.
  if (older) return UNBOUNDED;
  const some = (probability: number) => (random.chance(0.2) ? probability : 0);
  const bounds = {
    maxSize: burst === 0 && random.chance(0.15) ? random.pick([3, 10, 50]) : 0,
    keptCount: random.chance(0.2) ? random.pick([1, 5, 5, 1_000]) : 0,
    keptMs: random.pick([1_000, 5_000, 3_600_000]),
    resizes: some(0.1),
    instants: some(0.4),
    contentIds: some(0.2),
  };
  if (!cluster) return bounds;
  const reshards = random.chance(0.15) ? random.pick([[2], [3], [4, 1], [1]]) : drawn;
  if (reshards.length === 0) return bounds;
  return { ...bounds, reshards, kinds: kinds.filter((kind) => !TAKE_SHARDS_APART.includes(kind)) };
}

/** Whether the number of shards may change. */
export function mayReshard({ cluster, kinds }: Configuration): boolean {
  return !cluster || !kinds.some((kind) => TAKE_SHARDS_APART.includes(kind));
}

/** @returns all operations: those that there are, some of them changed, and new ones */
export function withBounds(
  random: Random,
  configuration: Configuration,
  operations: readonly Operation[],
): readonly Operation[] {
  const { resizes, instants, contentIds, faultsMs } = configuration;
  if (resizes + instants + contentIds === 0) return operations;
  const ids = new Map<string, string>();
  const found: Operation[] = operations.map((operation) => {
    if (operation.kind !== 'enqueue' || operation.onDuplicate || operation.run.kills) return operation;
    const isByContent = random.chance(contentIds);
    const isInstant = !isByContent && random.chance(instants);
    if (isByContent) ids.set(operation.id, contentIdOf(operation.run));
    return { ...operation, ...(isInstant && { isInstant }), ...(isByContent && { isByContent }) };
  });
  const named = found.map((operation) => renamed(operation, ids));
  for (const operation of found) {
    if (operation.kind !== 'enqueue' || operation.onDuplicate) continue;
    if (operation.isByContent) named.push(renamed(again(random, operation), ids));
    if (operation.at < faultsMs && random.chance(resizes)) named.push(drawResize(random, configuration, operation.at));
  }
  return named;
}

/** The same payload once more. */
function again(random: Random, operation: EnqueueOperation): EnqueueOperation {
  return { ...operation, at: rounded(operation.at + random.between(0, 1_000)) };
}

function drawResize(random: Random, { workers, concurrency }: Configuration, at: number): ResizeOperation {
  const worker = random.whole(0, workers - 1);
  const to = random.pick([1, Math.ceil(concurrency / 2), concurrency + 1, 2 * concurrency]);
  return { kind: 'resize', at, worker, to, forMs: random.whole(50, 3_000) };
}

function renamed<Some extends Operation | FurtherOperation>(operation: Some, ids: ReadonlyMap<string, string>): Some {
  const name = (id: string) => ids.get(id) ?? id;
  if ('id' in operation) return { ...operation, id: name(operation.id) };
  return 'ids' in operation ? { ...operation, ids: operation.ids.map(name) } : operation;
}

/** As docs/payloads.md says it: a hash of what the codec gives. */
function contentIdOf(payload: unknown): string {
  return createHash('sha256').update(JSON.stringify(payload)).digest('base64url').slice(0, 22);
}
