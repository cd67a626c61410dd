import { serverTime } from '../../history/server-time.js';
import { askShardOf } from '../../instance/job-shards.js';
import type { Backoff } from '../../job/backoff.js';
import type { JobHeader } from '../../job/envelope.js';
import { assertStoredId, parseOccurrenceId } from '../../job/job-id.js';
import { queueNameOf } from '../../job/queue-definition.js';
import { typedError } from '../../redis/redis.errors.js';
import type { JobResponse, Ms } from '../api.js';
import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';
import { notFound } from '../problems.js';
import { storedJob } from './job-rows.js';
import type { StoredJob } from './job-rows.js';

export async function readJob(view: InstanceView, query: Fields): Promise<JobResponse> {
  const queue = queueNameOf(query.text('queue'));
  const id = assertStoredId(query.text('id'));
  query.end();
  const { context, privateParts } = view;
  let raw: string[] | null;
  let shard = 0;
  let now: Ms;
  let leaseUntil: Ms | undefined;
  try {
    const ask = async (asked: number) => {
      shard = asked;
      return (await context.stores(queue)[asked]!.call('get', [id])) as string[] | null;
    };
    raw = await askShardOf(context, { call: 'get', queue, id }, ask, (answer) => answer === null);
    now = await serverTime(context.connection);
    if (raw?.[0] === 'r') leaseUntil = await leaseOf(view, queue, shard, raw[1]!);
  } catch (error) {
    throw typedError(error, `get("${queue}", "${id}")`);
  }
  if (!raw) throw notFound(`Queue "${queue}" has no job "${id}". It has ended, or there never was one.`);
  const job = await storedJob(view, queue, id, raw);
  const { row, payload, envelope, record, errors } = job;
  const occurrence = parseOccurrenceId(id);
  const lastError = privateParts.error(errors.error, true);
  const endedAt = row.state === 'dead' || row.state === 'completed' ? Number(job.score) : undefined;
  return {
    ...row,
    ...(lastError && { lastError }),
    now,
    shard,
    payload,
    ...(!privateParts.hidesContext && envelope?.header.context && { context: { ...envelope.header.context } }),
    errors: errors.attempts.map((one) => privateParts.error(one, false)!),
    ...(leaseUntil !== undefined && { leaseUntil }),
    ...(endedAt !== undefined && { endedAt }),
    ...(envelope?.expiresAt !== undefined && { expiresAt: envelope.expiresAt }),
    snoozes: record.snoozes,
    options: envelope ? optionsOf(envelope.header, job) : {},
    ...(occurrence && { schedule: { id: occurrence.schedule, at: occurrence.at } }),
  };
}

/** The deadline of the claim, which the process that has it renews. */
async function leaseOf(view: InstanceView, queue: string, shard: number, claim: string): Promise<Ms | undefined> {
  const { connection } = view.context;
  const key = view.context.stores(queue)[shard]!.keys.key('leases');
  const deadline = await connection.send(() => connection.commands.zscore(key, claim), key);
  return deadline === null ? undefined : Math.floor(Number(deadline));
}

function optionsOf(
  { attempts, backoff, timeoutMs, keepExpired }: JobHeader,
  { record }: StoredJob,
): JobResponse['options'] {
  return {
    ...(attempts !== undefined && { attempts }),
    ...(record.limit !== undefined && { 'attempts of this run': record.limit }),
    ...(backoff && { backoff: describeBackoff(backoff) }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(keepExpired && { keepExpired }),
  };
}

function describeBackoff(backoff: Backoff): string {
  if (backoff.type === 'fixed') return `${backoff.delay} ms`;
  if (backoff.type === 'steps') return `${backoff.delays.join(', ')} ms`;
  const { first, factor, max, jitter } = backoff;
  const most = max === undefined ? '' : `, at most ${max} ms`;
  return `${first} ms, each time ${factor} times as long${most}${jitter > 0 ? `, jitter ${jitter}` : ''}`;
}
