import type { Failure } from '../producer/call.js';
import type { EnqueueBatcher } from '../producer/enqueue-batcher.js';
import type { PlannedJob } from '../producer/job-planner.js';
import { ZONE_DATA } from './zone-data.js';

type AtLocalTime = Pick<PlannedJob, 'id' | 'zonedAt'>;

/**
 * Notes jobs at a local time before they are stored: a process that dies between the two leaves a note that nobody misses.
 *
 * @returns why they must not be enqueued, in words for one of them; undefined when they are noted
 */
export async function noteZones(
  batcher: EnqueueBatcher,
  jobs: readonly AtLocalTime[],
  call = 'enqueue',
): Promise<Failure | undefined> {
  const notes = jobs.flatMap(({ id, zonedAt }) => (zonedAt === undefined ? [] : [id, zonedAt]));
  if (notes.length === 0) return undefined;
  const answer = await batcher.ask('zone', [ZONE_DATA, ...notes], { call, prepares: true });
  return typeof answer === 'function' ? answer : undefined;
}

/** The same of one job. @throws what it must not be enqueued for */
export async function noteZone(batcher: EnqueueBatcher, job: AtLocalTime, call?: string): Promise<void> {
  const failure = await noteZones(batcher, [job], call);
  if (failure) throw failure(job.id);
}
