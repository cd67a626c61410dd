import { InvalidOptionError } from '../delay-queue.errors.js';
import { reading } from '../job/option-rules.js';
import { groupNumber } from '../job/place.js';
import { assertGroup } from '../job/queue-limits.js';
import { stateOf } from '../redis/letters.js';
import type { JobState } from '../redis/letters.js';
import { typedError } from '../redis/redis.errors.js';
import { shardOf } from '../shards/shard-hash.js';
import type { InstanceContext } from './instance-context.js';

/** A job that a call is about, and which call it is. */
export interface NamedJob {
  readonly call: string;
  readonly queue: string;
  readonly id: string;
  /** Name of its group; undefined when the caller does not say. */
  readonly group?: string | undefined;
}

/** Says where a job is. */
export interface GroupOption {
  /**
   * The group of the job. Only for queues with several shards, where it saves looking for the job in all of them, and tells jobs of one
   * id in different groups apart.
   */
  group?: string;
}

/** @returns the group that the only option names */
export function onlyGroup(options: GroupOption | undefined, call: string): string | undefined {
  const [group, others] = takeGroup<object>(options, `${call}: group`);
  if (Object.keys(others).length > 0) throw new InvalidOptionError(`${call}: the only option is { group }.`);
  return group;
}

/** @returns the group, and the other options that were given */
export function takeGroup<Others extends object>(
  options: (Others & GroupOption) | undefined,
  field: string,
): [group: string | undefined, others: Others] {
  const read = () => {
    const { group, ...others } = (options ?? {}) as Others & GroupOption;
    return { group, others };
  };
  const { group, others } = reading(() => field, read);
  return [group === undefined ? undefined : assertGroup(group, field), others as unknown as Others];
}

/**
 * Asks the shard of a job. When the caller names no group, that is first the shard of the id; if that does not have the job and the queue
 * uses groups, the shard of a group that has it.
 *
 * @param ask one shard; only the last answer counts
 * @param isMissing it has no such job
 * @throws InvalidOptionError when several groups have a job of this id; UnavailableError; and what `ask` throws
 */
export async function askShardOf<Answer>(
  context: InstanceContext,
  job: NamedJob,
  ask: (shard: number) => Promise<Answer>,
  isMissing: (answer: Answer) => boolean,
): Promise<Answer> {
  const { queue, id, group } = job;
  const own = context.shardOf(queue, id, group === undefined ? 0 : groupNumber(group));
  const answer = await ask(own);
  const stores = context.stores(queue);
  if (group !== undefined || stores.length === 1 || !isMissing(answer) || !stores[own]!.isLimited) return answer;
  const looks = stores.map(async (store, shard) => {
    const raw = shard === own ? null : ((await store.call('get', [id])) as readonly string[] | null);
    return raw ? [{ shard, isKept: raw[0] === 'c' }] : [];
  });
  const answers = await Promise.all(looks).catch((error: unknown) => {
    throw typedError(error, `${job.call}("${queue}", "${id}")`);
  });
  const found = answers.flat();
  const alive = found.filter(({ isKept }) => !isKept);
  if (alive.length > 1) throw ambiguous(job);
  const [there] = [...alive, ...found];
  return there ? ask(there.shard) : answer;
}

/** @returns what lib/lua/get.lua answers of a job, or null when there is none. @throws errors of the connection */
export function readJob(context: InstanceContext, job: NamedJob): Promise<string[] | null> {
  const stores = context.stores(job.queue);
  const ask = (shard: number) => stores[shard]!.call('get', [job.id]) as Promise<string[] | null>;
  return askShardOf(context, job, ask, (raw) => raw === null);
}

function ambiguous({ call, queue, id }: NamedJob): InvalidOptionError {
  return new InvalidOptionError(
    `${call}("${queue}", "${id}"): several groups have a job with this id. Say which one is meant: { group }.`,
  );
}

/** Most ids of one look (lib/lua/select.lua). */
const MOST_IDS = 200;

/** The shard of each id, where all of them are in this group. */
export function shardsInGroup(
  context: InstanceContext,
  queue: string,
  ids: readonly string[],
  group: string,
): Map<string, number> {
  const shard = context.shardOf(queue, '', groupNumber(group));
  return new Map(ids.map((id) => [id, shard]));
}

/**
 * The shard of each id: that of the id itself, or of the group that has a job of this id.
 *
 * @param wanted of several jobs with one id those in this state are meant
 * @throws InvalidOptionError when several groups have such a job; errors of the connection
 */
export async function shardsOf(
  context: InstanceContext,
  call: string,
  queue: string,
  ids: readonly string[],
  wanted?: JobState,
): Promise<Map<string, number>> {
  const stores = context.stores(queue);
  const shards = new Map(ids.map((id) => [id, shardOf(id, stores.length)]));
  if (stores.length === 1 || !(await hasGroups(context, queue))) return shards;
  const unique = [...shards.keys()];
  for (let at = 0; at < unique.length; at += MOST_IDS) {
    const chunk = unique.slice(at, at + MOST_IDS);
    const looks = await Promise.all(
      stores.map((store) => store.call('select', ['i', '-', '-', '-', '', MOST_IDS, ...chunk])),
    );
    for (const [n, id] of chunk.entries()) {
      const states = looks.map((look) => stateOf((look as string[])[3 + 3 * n + 1]));
      const found = states.flatMap((state, shard) => (state === undefined ? [] : [{ state, shard }]));
      const inState = found.filter(({ state }) => state === wanted);
      const chosen = inState.length > 0 ? inState : found;
      if (chosen.length === 0 || chosen.some(({ shard }) => shard === shards.get(id))) continue;
      if (chosen.length > 1) throw ambiguous({ call, queue, id });
      shards.set(id, chosen[0]!.shard);
    }
  }
  return shards;
}

/** Does the queue use groups, priorities or limits? @throws errors of the connection */
export async function hasGroups(context: InstanceContext, queue: string): Promise<boolean> {
  const [outcome] = (await context.stores(queue)[0]!.call('limit', ['?', 'c'])) as [string];
  return outcome !== 'n';
}
