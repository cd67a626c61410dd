import { mayReshard } from './bounds.js';
import { processesOf } from './fleet.js';
import type { Build } from './fleet.js';
import type { Configuration, EnqueueOperation, Operation, RunPlan } from './plan.js';
import { isPlain, MOVED } from './queues.js';
import { rounded } from './random.js';
import type { Random } from './random.js';

interface OfJob {
  readonly at: number;
  readonly queue: string;
  readonly id: string;
}
interface OfQueue {
  readonly at: number;
  readonly queue: string;
}

/** What producers and operators do beside enqueueing, cancelling and rescheduling. */
export type FurtherOperation =
  | (OfJob & { readonly kind: 'update' | 'signal'; readonly run: RunPlan })
  | (OfJob & { readonly kind: 'runNow' })
  | (OfQueue & { readonly kind: 'transfer'; readonly ids: readonly string[]; readonly target: string })
  | (OfQueue & { readonly kind: 'pausePublishing'; readonly forMs: number })
  | (OfQueue & { readonly kind: 'requeueSome'; readonly resetAttempts: boolean; readonly spread: number })
  | (OfQueue & { readonly kind: 'removeDead' })
  | (OfQueue & { readonly kind: 'purge'; readonly states: readonly ('waiting' | 'dead')[] })
  | (OfQueue & { readonly kind: 'removeQueue' })
  | (OfQueue & { readonly kind: 'look' })
  | (OfQueue & { readonly kind: 'reshard'; readonly to: number })
  | { readonly kind: 'deploy'; readonly at: number; readonly process: string; readonly build: Build };

/** Added to the number of an operation for the payload that updates its job. */
const UPDATED = 300_000;
const IN_BURST = 10_000_000;
const MOST_AT_A_TIME = 1_000;
const RESHARD_EVERY_MS = 4_000;
/** So many jobs are enqueued from look to look. */
const LOOK_AFTER = 10;

/** Has a stream of its own, so that it changes nothing of what is enqueued. */
export function drawFurtherOperations(
  random: Random,
  configuration: Configuration,
  operations: readonly Operation[],
): Operation[] {
  const found: Operation[] = drawBurst(random, configuration);
  for (const operation of operations) {
    if (operation.kind !== 'enqueue' || operation.onDuplicate) continue;
    found.push(...drawChanges(random, configuration, operation));
    if (random.chance(configuration.transfers)) found.push(drawTransfer(random, operation));
    if (random.chance(configuration.operators) && operation.at < configuration.faultsMs) {
      found.push(drawForQueue(random, operation));
    }
    // Somebody who operates the queue looks now and then, while jobs wait.
    if (configuration.operators > 0 && operation.run.n % LOOK_AFTER === 0) {
      const { queue, at, delay } = operation;
      found.push({ kind: 'look', at: rounded(at + 0.2 * delay), queue });
    }
  }
  for (const [n, to] of (mayReshard(configuration) ? configuration.reshards : []).entries()) {
    const at = rounded(random.between(2_000, 2_000 + RESHARD_EVERY_MS) + n * RESHARD_EVERY_MS);
    found.push({ kind: 'reshard', at, queue: 'jobs', to });
  }
  if (configuration.older) found.push(...drawDeployment(random, configuration));
  return found;
}

/** From process to process; now and then one goes back. */
function drawDeployment(random: Random, configuration: Configuration): FurtherOperation[] {
  const found: FurtherOperation[] = [];
  for (const { name: process } of processesOf(configuration)) {
    const at = rounded(random.between(2_000, configuration.faultsMs));
    found.push({ kind: 'deploy', at, process, build: 'present' });
    if (random.chance(0.2)) found.push({ kind: 'deploy', at: rounded(at + 4_000), process, build: 'older' });
  }
  return found;
}

function drawChanges(
  random: Random,
  { updates }: Configuration,
  { at, queue, id, run }: EnqueueOperation,
): FurtherOperation[] {
  if (!random.chance(updates)) return [];
  const later = rounded(at + random.between(0, 2_000));
  if (random.chance(0.3)) return [{ kind: 'runNow', at: later, queue, id }];
  const kind = random.chance(0.3) ? 'signal' : 'update';
  // Another payload changes no option of the job.
  const { timeout } = run;
  return [{ kind, at: later, queue, id, run: { n: run.n + UPDATED, work: run.work, ...(timeout && { timeout }) } }];
}

/** Moves the job and some that came before it. */
function drawTransfer(random: Random, { at, id }: EnqueueOperation): FurtherOperation {
  const last = Number(id.slice(1));
  const count = random.pick([1, 3, 30]);
  const ids = Array.from({ length: Math.min(count, last + 1) }, (_, i) => `j${last - i}`);
  const isBack = random.chance(0.2);
  return {
    kind: 'transfer',
    at: rounded(at + random.between(0, 1_000)),
    queue: isBack ? MOVED : 'jobs',
    target: isBack ? 'jobs' : MOVED,
    ids,
  };
}

function drawForQueue(random: Random, job: EnqueueOperation): FurtherOperation {
  const of = { at: rounded(job.at + random.between(0, 500)), queue: job.queue };
  const kinds = ['pausePublishing', 'requeueSome', 'requeueSome', 'removeDead', 'purge', 'look'] as const;
  const kind = isPlain(job.queue) && random.chance(0.1) ? 'removeQueue' : random.pick(kinds);
  switch (kind) {
    case 'pausePublishing':
      return { ...of, kind, forMs: random.whole(100, 2_000) };
    case 'requeueSome':
      return { ...of, kind, resetAttempts: random.chance(0.5), spread: random.pick([0, 500]) };
    case 'purge':
      return { ...of, kind, states: random.pick([['dead'], ['waiting', 'dead']] as const) };
    default:
      return { ...of, kind };
  }
}

/** More jobs than anybody has at the beginning. */
function drawBurst(random: Random, { burst, burstWorkMs }: Configuration): Operation[] {
  const found: Operation[] = [];
  for (let first = 0; first < burst; first += MOST_AT_A_TIME) {
    const at = 1_000 + first / 10;
    const jobs = Array.from({ length: Math.min(MOST_AT_A_TIME, burst - first) }, (_, i): EnqueueOperation => {
      const n = first + i;
      const work = rounded(burstWorkMs * random.between(0.5, 1));
      return { kind: 'enqueue', at, queue: 'jobs', id: `burst${n}`, delay: 0, run: { n: IN_BURST + n, work } };
    });
    found.push({ kind: 'bulk', at, queue: 'jobs', jobs });
  }
  return found;
}
