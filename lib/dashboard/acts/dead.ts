import type { RequeueOptions } from '../../inspection/inspector-options.js';
import { sum } from '../../inspection/queue-counts.js';
import type { DeadReason } from '../../job/error-record.js';
import { decodeError } from '../../job/error-record.js';
import type { Duration } from '../../job/duration.js';
import { typedError } from '../../redis/redis.errors.js';
import { serverTime } from '../../history/server-time.js';
import type { RemoveDeadResponse, RequeueResponse } from '../api.js';
import { MOST } from '../fields.js';
import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';
import { badRequest } from '../problems.js';
import type { Act } from './act.js';

/** @returns 'all', or ids, which the library checks */
function chosenBy(body: Fields): 'all' | string[] {
  const [ids, all] = [body.any('ids'), body.flag('all')];
  if ((ids === undefined) !== all) throw badRequest('body: give either `ids` or `all: true`.');
  if (all) return 'all';
  if (body.any('most') !== undefined) throw badRequest('body: `most` goes with `all: true`.');
  if (!Array.isArray(ids)) throw badRequest('body: `ids` must be an array of ids.');
  if (ids.length > MOST)
    throw badRequest(`body: ${ids.length} \`ids\` are more than ${MOST}. Give them in several calls.`);
  return [...new Set(ids as string[])];
}

/** Dead letters among these ids: the dry run of a cancellation says how each of them is. */
async function deadAmong({ inspector }: InstanceView, queue: string, ids: string[]): Promise<number> {
  const { results } = await inspector.bulk.cancel(queue, { ids }, { dryRun: true });
  return results.filter(({ outcome }) => outcome === 'dead').length;
}

async function remainingOf({ calls }: InstanceView, queue: string): Promise<number> {
  return sum((await calls.counts(queue)).map(({ dead }) => dead));
}

export const requeue: Act = async (view, queue, body) => {
  const chosen = chosenBy(body);
  const [reason, cursor, dryRun] = [body.optionalText('reason'), body.optionalText('cursor'), body.flag('dryRun')];
  const resetAttempts = body.any('resetAttempts');
  const [delay, spread, most] = [body.any('delay'), body.any('spread'), body.most()];
  body.end();
  if (chosen !== 'all' && (reason !== undefined || cursor !== undefined)) {
    throw badRequest('body: `reason` and `cursor` go with `all: true`.');
  }
  const before = chosen === 'all' ? await beforeOf(view, cursor) : undefined;
  // Those of them that were not given are left to the library.
  const options: RequeueOptions = Object.fromEntries(
    Object.entries({
      delay: delay as Duration,
      spread: spread as Duration,
      resetAttempts: resetAttempts as boolean,
      reason: reason as DeadReason,
      before,
      ...(chosen === 'all' && { limit: most }),
    }).filter(([, value]) => value !== undefined),
  );
  let answer: RequeueResponse;
  if (dryRun) {
    const requeued =
      chosen === 'all'
        ? Math.min(most, await matching(view, queue, before!, reason))
        : await deadAmong(view, queue, chosen);
    answer = { requeued, remaining: await remainingOf(view, queue) };
  } else {
    answer = await view.inspector.requeueDead(queue, chosen, options);
    const isMore = chosen === 'all' && answer.requeued >= most && answer.remaining > 0;
    if (isMore) answer = { ...answer, cursor: String(before) };
  }
  const outcomes = { requeued: answer.requeued };
  return { answer, count: answer.requeued, outcomes, dryRun };
};

/** Jobs that die again while all are requeued wait for the next time: the first call says when that is. */
async function beforeOf({ context }: InstanceView, cursor: string | undefined): Promise<number> {
  if (cursor !== undefined) {
    if (/^\d{1,16}$/.test(cursor)) return Number(cursor);
    throw badRequest('body: `cursor` is not what the call before gave.');
  }
  try {
    await context.connection.whenReady();
    return (await serverTime(context.connection)) + 1;
  } catch (error) {
    throw typedError(error, 'the time of Redis');
  }
}

/** How many of the oldest dead letters the next call would requeue. */
async function matching(
  { context }: InstanceView,
  queue: string,
  before: number,
  reason: string | undefined,
): Promise<number> {
  const { connection } = context;
  const { commands } = connection;
  let count = 0;
  try {
    for (const { keys } of context.stores(queue)) {
      const [dead, errors] = [keys.key('dead'), keys.key('errors')];
      const past = await connection.send(() => commands.zcount(dead, '-inf', `(${before}`), dead);
      if (reason === undefined) {
        count += past;
        continue;
      }
      // As the call does, which looks on until it has enough. By place: by time each page would go through all pages before it.
      for (let from = 0; from < past && count < MOST; from += MOST) {
        const page = () => commands.zrange(dead, String(from), String(Math.min(from + MOST, past) - 1));
        const ids = await connection.send(page, dead);
        if (ids.length === 0) break;
        const texts = await connection.send(() => commands.hmget(errors, ...ids), errors);
        count += texts.filter((text) => text !== null && decodeError(text).reason === reason).length;
      }
    }
  } catch (error) {
    throw typedError(error, `the dead letters of queue "${queue}"`);
  }
  return Math.min(count, MOST);
}

export const removeDead: Act = async (view, queue, body) => {
  const chosen = chosenBy(body);
  const [dryRun, most] = [body.flag('dryRun'), body.most()];
  body.end();
  let answer: RemoveDeadResponse;
  if (dryRun) {
    const remaining = await remainingOf(view, queue);
    const removed = chosen === 'all' ? Math.min(most, remaining) : await deadAmong(view, queue, chosen);
    answer = { removed, remaining };
  } else {
    answer = await view.inspector.removeDead(queue, chosen, { limit: most });
  }
  return { answer, count: answer.removed, outcomes: { removed: answer.removed }, dryRun };
};
