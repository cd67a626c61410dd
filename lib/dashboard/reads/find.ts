import { readJob } from '../../instance/job-shards.js';
import { assertStoredId } from '../../job/job-id.js';
import { typedError } from '../../redis/redis.errors.js';
import type { FindResponse, JobRow } from '../api.js';
import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';
import { storedJob } from './job-rows.js';

const MOST_QUEUES = 200;
const VALID_MS = 2_000;

/** Whoever has an id, of a log line, does not have to know its queue. */
export async function readFind(view: InstanceView, query: Fields): Promise<FindResponse> {
  const id = assertStoredId(query.text('id'));
  query.end();
  return view.shared.value(`find ${id}`, VALID_MS, () => find(view, id));
}

async function find(view: InstanceView, id: string): Promise<FindResponse> {
  const names = await view.queueNames();
  const looks = await Promise.allSettled(names.slice(0, MOST_QUEUES).map((queue) => rowOf(view, queue, id)));
  const answered = looks.filter((look) => look.status === 'fulfilled');
  // Redis is away, and not one queue damaged.
  if (answered.length === 0 && looks[0]?.status === 'rejected')
    throw typedError(looks[0].reason, `the search for "${id}"`);
  const jobs = answered.map(({ value }) => value).filter((row) => row !== undefined);
  return { jobs, looked: answered.length, left: names.length - answered.length };
}

async function rowOf(view: InstanceView, queue: string, id: string): Promise<JobRow | undefined> {
  const raw = await readJob(view.context, { call: 'find', queue, id });
  return raw ? (await storedJob(view, queue, id, raw)).row : undefined;
}
