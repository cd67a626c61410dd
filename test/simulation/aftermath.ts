import type { Configuration, EnqueueOperation, Operation } from './plan.js';
import { rounded } from './random.js';
import type { Random } from './random.js';

/** What is added to the number of an operation for another version of its job. */
const REPEATED = 500_000;

/** What else is asked of a job, or of its queue. */
export function drawAftermath(random: Random, configuration: Configuration, job: EnqueueOperation): Operation[] {
  const { queue, id } = job;
  const later = (most: number) => rounded(job.at + random.between(0, most));
  const found: Operation[] = [];
  if (random.chance(configuration.cancels)) {
    found.push({ kind: 'cancel', at: later(2_000), queue, id, running: random.chance(0.5) });
  }
  if (random.chance(configuration.moves)) {
    found.push({ kind: 'reschedule', at: later(2_000), queue, id, delay: random.whole(0, 2_000) });
  }
  if (random.chance(configuration.repeats)) found.push(drawRepeat(random, job, later(2_000)));
  if (random.chance(configuration.moves)) found.push({ kind: 'moveQuarantined', at: later(2_000) });
  const calmFrom = configuration.faultsMs;
  if (random.chance(configuration.operators) && job.at < calmFrom) {
    found.push(
      random.chance(0.5)
        ? { kind: 'pause', at: later(500), queue, forMs: random.whole(100, 2_000) }
        : { kind: 'requeueDead', at: later(500), queue },
    );
  }
  return found;
}

/** Another call under the same id. */
function drawRepeat(random: Random, job: EnqueueOperation, at: number): EnqueueOperation {
  const onDuplicate = random.pick(['keep', 'replace', 'replace', 'reschedule', 'reject'] as const);
  const debounces = onDuplicate === 'replace' || onDuplicate === 'reschedule';
  return {
    ...job,
    at,
    delay: random.whole(0, 1_000),
    run: { n: job.run.n + REPEATED, work: job.run.work },
    onDuplicate,
    ...(debounces && random.chance(0.5) && { maxWait: 1_500 }),
    ...(onDuplicate === 'replace' && random.chance(0.2) && { dueAt: 'keep' }),
    ...(onDuplicate === 'keep' && random.chance(0.3) && { onDead: 'keep' }),
    ...(random.chance(0.3) && { uniqueFor: random.pick([500, 5_000]) }),
  };
}
