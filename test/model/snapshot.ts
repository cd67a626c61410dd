import type { Play } from './play.js';

/** Compares what `get()` says. @returns the state, or `nothing` */
export async function compareJob(play: Play, id: string): Promise<string> {
  const { model, system } = play;
  const snapshot = await system.producer.get(play.queue, id);
  const job = model.jobs.get(id);
  if (!snapshot || !job) {
    play.same(`get ${id}`, snapshot, job && { state: model.state(job) });
    return 'nothing';
  }
  const { version } = job;
  play.same(
    `get ${id}`,
    {
      state: snapshot.state,
      payload: snapshot.payload,
      dueAt: system.since(snapshot.dueAt),
      attempts: snapshot.attempts,
      maxAttempts: snapshot.maxAttempts,
      error: snapshot.lastError?.message,
      errors: snapshot.errors?.map(({ message }) => message) ?? [],
      deadReason: snapshot.deadReason,
      group: snapshot.group,
      priority: snapshot.priority ?? 0,
    },
    {
      state: model.state(job),
      payload: version.payload,
      dueAt: job.state === 'waiting' ? job.exact : version.exact,
      attempts: job.charged,
      maxAttempts: job.limit ?? version.maxAttempts,
      error: job.error,
      errors: job.errors,
      deadReason: job.reason,
      group: version.group,
      priority: version.priority,
    },
  );
  play.sameTime(`enqueuedAt of ${id}`, system.since(snapshot.enqueuedAt), version.made);
  return job.state === 'quarantined' ? 'quarantined' : snapshot.state;
}
