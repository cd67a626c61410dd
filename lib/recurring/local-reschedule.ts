import { LayoutError, StoredDataError } from '../delay-queue.errors.js';
import { AGAIN } from '../instance/compare-and-set.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { askShardOf } from '../instance/job-shards.js';
import type { NamedJob } from '../instance/job-shards.js';
import { decodeEnvelope, encodeContent } from '../job/envelope.js';
import type { Envelope } from '../job/envelope.js';
import { parseInstant } from '../job/duration.js';
import { assertStoredId } from '../job/job-id.js';
import { parseLocalTime } from '../job/wall-clock.js';
import type { ZonedMoment } from '../job/wall-clock.js';
import { parseReschedule } from '../redis/change.protocol.js';
import type { ChangeReply } from '../redis/change.protocol.js';
import { bytesOf } from '../redis/enqueue.protocol.js';
import { readInTime } from './read-in-time.js';
import { noteZone } from './zone-notes.js';

const WAITS: ReadonlySet<string | undefined> = new Set(['l', 'd']);
const NOT_WAITING: Readonly<Record<string, ChangeReply<'rescheduled'>>> = {
  r: { outcome: 'running', state: 'running', dueAt: undefined },
  x: { outcome: 'dead', state: 'dead', dueAt: undefined },
};
const NOT_FOUND: ChangeReply<'rescheduled'> = { outcome: 'notFound', state: undefined, dueAt: undefined };

/**
 * Gives a waiting job the moment of a local time. The local time goes into the header, which no script reads: so the job is read, and
 * written only if nobody has changed it since.
 *
 * @param at `{ local, timeZone }`
 * @throws InvalidOptionError, InvalidDelayError, InvalidIdError before anything is sent
 */
export async function rescheduleLocally(
  context: InstanceContext,
  job: NamedJob,
  at: unknown,
): Promise<ChangeReply<'rescheduled'>> {
  const zoned = parseLocalTime(at, 'reschedule({ at })');
  parseInstant(zoned.at, 'reschedule({ at })');
  assertStoredId(job.id, 'reschedule(queue, id)');
  return context.changes.run(job, () =>
    askShardOf<ChangeReply<'rescheduled'> | typeof AGAIN>(
      context,
      job,
      (shard) => rescheduleIn(context, shard, job, zoned),
      (reply) => reply !== AGAIN && reply.outcome === 'notFound',
    ),
  );
}

/** In one shard. */
async function rescheduleIn(
  context: InstanceContext,
  shard: number,
  { queue, id }: NamedJob,
  zoned: ZonedMoment,
): Promise<ChangeReply<'rescheduled'> | typeof AGAIN> {
  const found = await readInTime(context.stores(queue)[shard]!, 'get', [id], { call: 'reschedule', id });
  const [state, , , , text = ''] = (found as string[] | null) ?? [];
  if (!WAITS.has(state)) return NOT_WAITING[state ?? ''] ?? NOT_FOUND;
  const { header, body, mark } = decoded(queue, id, text);
  const content = encodeContent({ ...header, zoned }, body, mark);
  const calls = context.ofShard(queue, shard);
  // Before, as at an enqueue: it tells processes with newer zone data to look again.
  await noteZone(calls, { id, zonedAt: zoned.at }, 'reschedule');
  const words = { call: 'reschedule', bytes: bytesOf({ id, content }) };
  const answer = await calls.run('rezone', id, [id, text, '', zoned.at, content, ''], words);
  return answer === 'c' ? AGAIN : parseReschedule(answer);
}

function decoded(queue: string, id: string, text: string): Envelope {
  try {
    return decodeEnvelope(text);
  } catch (cause) {
    const message = `reschedule("${queue}", "${id}"): ${(cause as Error).message}`;
    throw cause instanceof LayoutError ? new LayoutError(message) : new StoredDataError(message, { cause });
  }
}
