import { UnavailableError } from '../../delay-queue.errors.js';
import { queueNameOf } from '../../job/queue-definition.js';
import { pageOfSchedules, snapshotOf } from '../../recurring/schedule-list.js';
import type { ScheduleSnapshot } from '../../recurring/schedule-list.js';
import type { ApiJobState, Ms, ScheduleRow, SchedulesResponse } from '../api.js';
import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';
import { badRequest } from '../problems.js';

/** In one answer, as far as queues are not cut apart. */
const ROWS = 50;
/** Of all queues: those that one answer asks, so many of them at once. */
const MOST_QUEUES = 200;
const AT_ONCE = 25;
const NEXT = 10;

interface Listed {
  readonly snapshot: ScheduleSnapshot;
  readonly next: readonly Ms[];
}

export async function readSchedules(view: InstanceView, query: Fields): Promise<SchedulesResponse> {
  const queue = query.optionalText('queue');
  const cursor = query.optionalText('cursor');
  query.end();
  if (queue === undefined) return ofAll(view, cursor);
  const page = await pageOf(view, queueNameOf(queue), cursor);
  return {
    schedules: await rowsOf(view, page.schedules),
    ...(page.cursor !== undefined && { cursor: page.cursor }),
    unreadable: page.unreadable.map((id) => ({ queue, id })),
  };
}

async function pageOf(view: InstanceView, queue: string, cursor: string | undefined) {
  const { context } = view;
  const options = { limit: ROWS, ...(cursor !== undefined && { cursor }) };
  const { schedules, ...page } = await pageOfSchedules(context, queue, options, NEXT);
  const read = schedules.map((listed): Listed => ({
    snapshot: snapshotOf(listed, queue, context.payloads),
    next: listed.next,
  }));
  return { ...page, schedules: read };
}

/** One queue after the other, by name. The cursor holds the queue that comes next, and how far it was listed. */
async function ofAll(view: InstanceView, cursor: string | undefined): Promise<SchedulesResponse> {
  const [first, within] = cursor === undefined ? ['', undefined] : readCursor(cursor);
  const names = (await view.queueNames()).filter((name) => name >= first);
  const found: SchedulesResponse = { schedules: [], unreadable: [] };
  let next: string | undefined;
  for (let at = 0; at < names.length && next === undefined; at += AT_ONCE) {
    if (at >= MOST_QUEUES) next = writeCursor(names[at]!, undefined);
    else next = await take(view, names.slice(at, at + AT_ONCE), names[at + AT_ONCE], { first, within }, found);
  }
  return { ...found, ...(next !== undefined && { cursor: next }) };
}

/** @returns where the next answer goes on, once this one is full */
async function take(
  view: InstanceView,
  names: readonly string[],
  behind: string | undefined,
  from: { first: string; within: string | undefined },
  found: SchedulesResponse,
): Promise<string | undefined> {
  const looks = names.map((queue) => pageOf(view, queue, queue === from.first ? from.within : undefined));
  for (const [n, look] of (await Promise.allSettled(looks)).entries()) {
    const queue = names[n]!;
    if (look.status === 'rejected') {
      // One queue that cannot be read says nothing of the others; a Redis that is away does.
      if (look.reason instanceof UnavailableError) throw look.reason;
      continue;
    }
    const { schedules, unreadable, cursor } = look.value;
    found.schedules.push(...(await rowsOf(view, schedules)));
    found.unreadable.push(...unreadable.map((id) => ({ queue, id })));
    if (cursor !== undefined) return writeCursor(queue, cursor);
    const next = names[n + 1] ?? behind;
    if (found.schedules.length >= ROWS && next !== undefined) return writeCursor(next, undefined);
  }
  return undefined;
}

function writeCursor(queue: string, within: string | undefined): string {
  return Buffer.from(JSON.stringify([queue, within ?? null])).toString('base64url');
}

function readCursor(text: string): [queue: string, within: string | undefined] {
  try {
    const [queue, within] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[];
    if (typeof queue === 'string' && (within === null || typeof within === 'string'))
      return [queue, within ?? undefined];
  } catch {
    // The error below says it.
  }
  throw badRequest('query: `cursor` is not what the answer before gave.');
}

async function rowsOf(view: InstanceView, listed: readonly Listed[]): Promise<ScheduleRow[]> {
  const states = await statesOf(view, listed);
  return Promise.all(listed.map((one) => rowOf(view, one, states)));
}

async function rowOf(
  view: InstanceView,
  { snapshot, next }: Listed,
  states: ReadonlyMap<string, ApiJobState | undefined>,
): Promise<ScheduleRow> {
  const { id, queue, cron, timeZone, everyMs, from, until, limit, lastJob } = snapshot;
  const { jitterMs, missed, overlap, owner, paused, counts } = snapshot;
  const state = lastJob === undefined ? undefined : states.get(`${queue} ${lastJob}`);
  return {
    id,
    queue,
    ...(cron !== undefined && { cron }),
    ...(timeZone !== undefined && { timeZone }),
    ...(everyMs !== undefined && { everyMs }),
    ...(from && { from: from.getTime() }),
    ...(until && { until: until.getTime() }),
    ...(limit !== undefined && { limit }),
    jitterMs,
    missed,
    overlap,
    payload: await view.privateParts.decoded(snapshot.payload, { instance: view.name, queue, id }),
    owner,
    paused,
    next: [...next],
    ...(lastJob !== undefined && { lastJob: { id: lastJob, ...(state && { state }) } }),
    counts,
  };
}

/** How the jobs that began last are now: the dry run of a cancellation says it of many at once. */
async function statesOf(view: InstanceView, listed: readonly Listed[]): Promise<Map<string, ApiJobState | undefined>> {
  const byQueue = new Map<string, string[]>();
  for (const { snapshot } of listed) {
    const { queue, lastJob } = snapshot;
    if (lastJob !== undefined) byQueue.set(queue, [...(byQueue.get(queue) ?? []), lastJob]);
  }
  const states = new Map<string, ApiJobState | undefined>();
  for (const [queue, ids] of byQueue) {
    const { results } = await view.inspector.bulk.cancel(queue, { ids }, { dryRun: true });
    for (const { id, state } of results) states.set(`${queue} ${id}`, state);
  }
  return states;
}
