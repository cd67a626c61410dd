import type { DelayQueueInspector } from '../inspection/delay-queue.inspector.js';
import type { QueueRef } from '../job/queue-definition.js';
import { queueNameOf } from '../job/queue-definition.js';
import type { JobSnapshot } from '../redis/job-snapshot.js';

/** All jobs in one state, page by page. */
export async function listed(
  inspector: DelayQueueInspector,
  queue: QueueRef,
  state: 'due' | 'delayed' | 'running' | 'dead',
): Promise<JobSnapshot[]> {
  const all: JobSnapshot[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await inspector.list(queueNameOf(queue), state, { limit: 200, ...(cursor && { cursor }) });
    all.push(...page.jobs);
    cursor = page.cursor;
    if (cursor === undefined) return all;
  }
}

/** Due jobs twice: one that becomes due between two looks is in neither of them. */
export async function listedWaiting(inspector: DelayQueueInspector, queue: QueueRef): Promise<JobSnapshot[]> {
  const found = new Map<string, JobSnapshot>();
  for (const state of ['due', 'delayed', 'due'] as const) {
    for (const job of await listed(inspector, queue, state)) found.set(job.id, job);
  }
  return [...found.values()].sort((a, b) => a.dueAt.getTime() - b.dueAt.getTime());
}
