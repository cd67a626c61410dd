import { LIST_DEFAULTS } from '../defaults.js';
import { InvalidOptionError } from '../delay-queue.errors.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { oneOf, readOptions } from '../job/option-rules.js';
import { baseOf, groupNumber } from '../job/place.js';
import { STATE_LETTERS } from '../redis/letters.js';
import type { JobState } from '../redis/letters.js';
import { CURSOR, LIST_RULES } from './inspector-options.js';
import type { ListDraft, ListOptions } from './inspector-options.js';
import type { ShardCalls } from './shard-calls.js';
import { BEGINNING, mergePages, readCursor } from './shard-pages.js';
import type { ShardPage } from './shard-pages.js';

/** About how many stored bytes one page of `list()` may have. A page has at least one job of each shard. */
const PAGE_BYTES = 1024 * 1024;

/** A job of a page: its id, and what `parseSnapshot` takes. */
export type ListedJob = readonly [id: string, ...raw: string[]];

/** What BullMQ calls them. */
const STATES_ELSEWHERE: Readonly<Record<string, JobState>> = {
  wait: 'due',
  waiting: 'due',
  prioritized: 'due',
  active: 'running',
  failed: 'dead',
};

/** @throws InvalidOptionError */
function assertState(state: unknown): void {
  const field = 'list(queue, state)';
  const here = typeof state === 'string' && Object.hasOwn(STATES_ELSEWHERE, state) && STATES_ELSEWHERE[state];
  if (here) throw new InvalidOptionError(`${field}: what BullMQ calls '${state}' is '${here}' here.`);
  oneOf(state, ['delayed', 'due', 'running', 'dead', 'completed'], field);
}

/**
 * One page of the jobs in one state, over all shards, as stored.
 *
 * @throws InvalidOptionError, InvalidDelayError before anything is sent
 */
export async function readJobPage(
  context: InstanceContext,
  calls: ShardCalls,
  queue: string,
  state: JobState,
  options: ListOptions,
): Promise<{ jobs: ListedJob[]; cursor: string | undefined }> {
  assertState(state);
  const { from, to, limit, cursor, group } = readOptions(
    options,
    LIST_RULES,
    { ...LIST_DEFAULTS } as ListDraft,
    (option) => `list({ ${option} })`,
  );
  if (state === 'running' && (from !== undefined || to !== undefined)) {
    throw new InvalidOptionError("list('running', { from, to }): running jobs are listed by claim and have no range.");
  }
  const place = group === undefined ? undefined : baseOf(group);
  if (place !== undefined && ((state !== 'due' && state !== 'delayed') || from !== undefined || to !== undefined)) {
    throw new InvalidOptionError("list({ group }): is for 'due' and 'delayed', without `from` and `to`.");
  }
  const stores = context.stores(queue);
  const cursors = cursor === undefined ? stores.map(() => BEGINNING) : readCursor(cursor, stores.length, CURSOR);
  const bytes = Math.ceil(PAGE_BYTES / stores.length);
  const letter = STATE_LETTERS[state];
  const only = group === undefined ? undefined : context.shardOf(queue, '', groupNumber(group));
  const argsOf = (index: number) => {
    const at = cursors[index];
    if (place !== undefined) return index === only ? at && [letter, place, at.score, at.id, limit, bytes] : undefined;
    return at && [letter, from ?? '-', to ?? '-', at.score, at.id, limit, bytes];
  };
  const raws = await calls.each(queue, place === undefined ? 'list' : 'listGroup', argsOf, 'list');
  const page = mergePages(raws as (ShardPage | undefined)[], cursors, limit);
  return { jobs: page.jobs.map(([id, ...fields]) => [id!, letter, ...fields]), cursor: page.cursor };
}
