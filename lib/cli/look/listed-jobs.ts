import type { JobSnapshot } from '../../redis/job-snapshot.js';
import type { Session } from '../connection/session.js';
import type { Range } from '../terminal/range.js';

export const STATES = ['delayed', 'due', 'running', 'dead', 'completed'] as const;
export type State = (typeof STATES)[number];

const PAGE = 200;

/** Jobs in one state, page by page as they are read. */
export async function* listedJobs(
  { inspector }: Session,
  queue: string,
  state: State,
  { from, to }: Range = {},
): AsyncGenerator<JobSnapshot> {
  // The library lists the last moment as well; a range of a command ends before it.
  const range = { ...(from !== undefined && { from }), ...(to !== undefined && { to: Math.max(0, to - 1) }) };
  let cursor: string | undefined;
  do {
    const page = await inspector.list(queue, state, { ...range, limit: PAGE, ...(cursor !== undefined && { cursor }) });
    yield* page.jobs;
    cursor = page.cursor;
  } while (cursor !== undefined);
}
