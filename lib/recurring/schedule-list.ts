import { InvalidOptionError } from '../delay-queue.errors.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { shown } from '../job/duration.js';
import { decodeEnvelope } from '../job/envelope.js';
import type { MissedPolicy, OverlapPolicy } from '../job/occurrence-header.js';
import { integer, readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import type { Payloads } from '../job/payloads.js';
import { priorityOf } from '../job/place.js';
import { typedError } from '../redis/redis.errors.js';
import { parseSchedules } from '../redis/schedule.protocol.js';
import type { StoredSchedule } from '../redis/schedule.protocol.js';
import type { ShardStore } from '../redis/shard-store.js';
import { asItWas, countsOf, decodeRecord } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';
import { findElsewhere, isLeaving, isLiving } from './schedule-search.js';
import { jobsAhead, timesToCome } from './times-to-come.js';
import { waitingOf } from './waiting-occurrences.js';

/** A schedule as it stands in Redis. Times are the server's. */
export interface ScheduleSnapshot<T = unknown> {
  id: string;
  queue: string;
  cron: string | undefined;
  timeZone: string | undefined;
  everyMs: number | undefined;
  from: Date | undefined;
  until: Date | undefined;
  limit: number | undefined;
  jitterMs: number;
  missed: MissedPolicy;
  overlap: OverlapPolicy;
  /** Of its occurrences; undefined without one. */
  group: string | undefined;
  /** Of its occurrences, 0 to 9. */
  priority: number;
  /** Undefined if it cannot be decoded, or not by this process. */
  payload: T;
  /** Made by `schedule()`, or declared by `@OnDelayed(queue, { repeat })`. */
  owner: 'code' | 'call';
  paused: boolean;
  /** The next time for which an occurrence will run, without jitter; undefined while it is paused, and when it is over. */
  next: Date | undefined;
  /** Id of the job that began last, of those to which `overlap` applies. */
  lastJob: string | undefined;
  counts: {
    /** Occurrences so far: those that were made, and those of an outage that were not. */
    made: number;
    /** How many did not run because of `missed`, or were due when the schedule was paused; with those that were triggered or backfilled. */
    missed: number;
    /** How many did not run because of `overlap`. */
    overlapped: number;
  };
}

export interface SchedulePage<T = unknown> {
  schedules: ScheduleSnapshot<T>[];
  /** For the next page; undefined after the last one. */
  cursor: string | undefined;
  /** Ids of schedules that a newer library wrote. */
  unreadable: string[];
}

export interface ScheduleListOptions {
  /** The cursor that the previous page returned. */
  cursor?: string;
  /** Most schedules per page: 1 to 200. Default 50. */
  limit?: number;
}

interface Draft {
  limit: number;
  shard: number;
  score: string;
  id: string;
}

const RULES: OptionRules<ScheduleListOptions, Draft> = {
  limit: (draft, value, field) => {
    draft.limit = integer(value, 1, 200, field);
  },
  cursor: (draft, value, field) => {
    const [, shard, score, id] = (typeof value === 'string' && /^(\d{1,3}):(\d{0,16}):(.*)$/s.exec(value)) || [];
    if (shard === undefined) throw new InvalidOptionError(`${field}: ${shown(value)} is not the cursor of a page.`);
    Object.assign(draft, { shard: Number(shard), score: score!, id: id! });
  },
};

/** One page: of one shard after the other. */
export async function listSchedules(
  context: InstanceContext,
  queue: string,
  options: ScheduleListOptions,
): Promise<SchedulePage> {
  const { schedules, ...page } = await pageOfSchedules(context, queue, options, 1);
  return { ...page, schedules: schedules.map((listed) => snapshotOf(listed, queue, context.payloads)) };
}

/** A schedule as it is stored, and what it means. */
export interface ListedSchedule {
  readonly stored: StoredSchedule;
  readonly record: ScheduleRecord;
  /** Its next times, ms. */
  readonly next: readonly number[];
}

/** The same as it is stored. @param most how many next times of each */
export async function pageOfSchedules(
  context: InstanceContext,
  queue: string,
  options: ScheduleListOptions,
  most: number,
): Promise<{ schedules: ListedSchedule[]; cursor: string | undefined; unreadable: string[] }> {
  const draft: Draft = { limit: 50, shard: 0, score: '', id: '' };
  const { limit, shard, score, id } = readOptions(options, RULES, draft, (option) => `listSchedules({ ${option} })`);
  const stores = context.stores(queue);
  const page = {
    schedules: [] as ListedSchedule[],
    cursor: undefined as string | undefined,
    unreadable: [] as string[],
  };
  const store = stores[shard];
  if (!store) return page;
  try {
    const reply = parseSchedules((await store.call('schedules', ['', limit, score, id])) as (string | number)[]);
    const found: Omit<ListedSchedule, 'next'>[] = [];
    for (const stored of reply.schedules) {
      if (await isRest(context, queue, shard, stored)) continue;
      const record = decodeRecord(stored.text);
      if (record) found.push({ stored, record: asItWas(record) });
      else page.unreadable.push(stored.id);
    }
    page.schedules = await withNext(store, found, reply.now + context.connection.movedMs, most);
    const last = reply.schedules.at(-1);
    if (last && reply.schedules.length === limit) page.cursor = `${shard}:${last.tick}:${last.id}`;
    else if (shard + 1 < stores.length) page.cursor = `${shard + 1}::`;
    return page;
  } catch (error) {
    throw typedError(error, `listSchedules("${queue}")`);
  }
}

async function withNext(
  store: ShardStore,
  found: readonly Omit<ListedSchedule, 'next'>[],
  now: number,
  most: number,
): Promise<ListedSchedule[]> {
  const ahead = found.flatMap(({ stored, record }) => jobsAhead(stored.id, record, now));
  const waiting = await waitingOf(store, ahead);
  const listed: ListedSchedule[] = [];
  for (const one of found) {
    listed.push({ ...one, next: await timesToCome(one.stored.id, one.record, now, most, waiting) });
  }
  return listed;
}

/** Of one that has come to another shard, what is left here: that shard tells of it. */
async function isRest(
  context: InstanceContext,
  queue: string,
  shard: number,
  stored: StoredSchedule,
): Promise<boolean> {
  if (!isLeaving({ stored, shard, now: 0 })) return false;
  const others = await findElsewhere(context, 'listSchedules', queue, stored.id, shard);
  return others.some(isLiving);
}

export function snapshotOf(
  { stored: { id, ...own }, record, next: [next] }: ListedSchedule,
  queue: string,
  payloads: Payloads,
): ScheduleSnapshot {
  const { definition, state } = record;
  const counted = countsOf(state, own);
  return {
    id,
    queue,
    cron: definition.cron ?? undefined,
    timeZone: definition.timeZone ?? undefined,
    everyMs: definition.everyMs ?? undefined,
    from: dateOf(definition.from),
    until: dateOf(definition.until),
    limit: definition.limit ?? undefined,
    jitterMs: definition.jitterMs,
    missed: definition.missed,
    overlap: definition.overlap,
    ...contentOf(record.content, payloads),
    priority: definition.place ? priorityOf(definition.place) : 0,
    owner: state.owner,
    paused: state.paused,
    next: dateOf(next ?? null),
    lastJob: counted.lastJob,
    counts: { made: state.made, missed: counted.missed, overlapped: counted.overlapped },
  };
}

function dateOf(ms: number | null): Date | undefined {
  return ms === null ? undefined : new Date(ms);
}

function contentOf(content: string, payloads: Payloads): Pick<ScheduleSnapshot, 'group' | 'payload'> {
  // An envelope has times before what is written here.
  const [version, rest] = content.startsWith('2') ? ['2', content.slice(1)] : ['1', content];
  try {
    const { header, body, mark } = decodeEnvelope(`${version}-${','.repeat(14)}${rest}`);
    return { group: header.group, payload: decoded(() => payloads.decode(body, mark)) };
  } catch {
    return { group: undefined, payload: undefined };
  }
}

function decoded(decode: () => unknown): unknown {
  try {
    return decode();
  } catch {
    return undefined;
  }
}
