import { readJobPage } from '../../inspection/job-pages.js';
import { queueNameOf } from '../../job/queue-definition.js';
import type { JobState } from '../../redis/letters.js';
import type { JobsResponse } from '../api.js';
import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';
import { storedJob } from './job-rows.js';

export async function readJobs(view: InstanceView, query: Fields): Promise<JobsResponse> {
  const queue = queueNameOf(query.text('queue'));
  // list() says which there are.
  const state = query.text('state') as JobState;
  const [from, to, limit] = [query.number('from'), query.number('to'), query.number('limit')];
  const cursor = query.optionalText('cursor');
  query.end();
  const page = await readJobPage(view.context, view.calls, queue, state, { from, to, limit, cursor });
  const rows = page.jobs.map(async ([id, ...raw]) => (await storedJob(view, queue, id, raw)).row);
  return { jobs: await Promise.all(rows), ...(page.cursor !== undefined && { cursor: page.cursor }) };
}
