import { InvalidQueueError, ShardCountError, StoredDataError } from '../delay-queue.errors.js';
import type { DelayQueueError } from '../delay-queue.errors.js';

/**
 * What the keys of one hash tag are, as the word `shards:...` in `meta.needs` says.
 *
 * | state       | under      | meaning                                                                                      |
 * |-------------|------------|----------------------------------------------------------------------------------------------|
 * | nothing | queue name | a queue in one piece, or an unused name |
 * | `3/8`       | `queue:3`  | shard 3 of 8                                                                                 |
 * | `=/8`       | queue name | the queue has 8 shards; its jobs are there. What counts when processes disagree              |
 * | `-/8`       | `queue:9`  | a shard that is no more; the queue had 8 then                                                |
 * | `4~8.x`     | both       | 4 shards are about to become 8: what runs may end, nothing starts. `x` names this one change |
 * | `4>8.x`     | both       | jobs move; everybody else is refused                                                         |
 * | `4<8.x`     | queue name | all have moved; the 8 are being opened                                                       |
 * | `4^8.x`     | queue name | the change is being taken back: too much still ran                                            |
 */
export type ShardState = string;

/** Each shard costs a process a worker, and each look of the inspector a call. */
export const MOST_SHARDS = 256;

/** How the marks begin of changes that were begun because the queue was empty. Any process that finds one may finish it. */
export const WHILE_EMPTY = 'empty-';

/** One change of the number of shards. */
export interface ShardChange {
  readonly phase: '~' | '>' | '<' | '^';
  readonly from: number;
  readonly to: number;
  readonly mark: string;
}

export function parseChange(state: ShardState): ShardChange | undefined {
  const [, from, phase, to, mark] = /^(\d+)([~><^])(\d+)\.(\S+)$/.exec(state) ?? [];
  if (mark === undefined || !isCount(from) || !isCount(to) || from === to) return undefined;
  return { phase: phase as ShardChange['phase'], from: Number(from), to: Number(to), mark };
}

export function changeState({ from, to, mark }: ShardChange, phase: ShardChange['phase']): ShardState {
  return `${from}${phase}${to}.${mark}`;
}

/** The state of a settled queue under its own name. */
export function baseState(count: number): ShardState {
  return count === 1 ? '' : `=/${count}`;
}

/** @param needs of `meta`: does it say that there may be groups, priorities and limits? */
export function hasGroupsWord(needs: string | null | undefined): boolean {
  return needs?.split(' ').includes('limits') ?? false;
}

/**
 * Shards of a settled queue, from the state under its name.
 *
 * @throws InvalidQueueError when that name is taken by a shard of another queue
 * @throws StoredDataError when it is none that this library writes
 */
export function storedCount(queue: string, state: ShardState): number {
  if (state === '') return 1;
  const [, index, count] = /^(=|-|\d+)\/(\d+)$/.exec(state) ?? [];
  if (index === undefined || !isCount(count)) throw damaged(queue, state);
  if (index !== '=') throw nameTaken(queue, Number(count));
  return Number(count);
}

/** How many shards field `needs` of `meta` names; undefined where it names none, or they are being changed. */
export function countIn(needs: string | null | undefined): number | undefined {
  const [, count] = /(?:^| )shards:=\/(\d+)(?: |$)/.exec(needs ?? '') ?? [];
  return isCount(count) ? Number(count) : undefined;
}

/** Junk must not pass for a number of shards: code that reads all shards makes an object for each. */
function isCount(text: string | undefined): boolean {
  return text !== undefined && /^[1-9]\d*$/.test(text) && Number(text) <= MOST_SHARDS;
}

function damaged(queue: string, state: ShardState): StoredDataError {
  return new StoredDataError(
    `Queue "${queue}": its shard state "${state}" cannot be read, so the queue is left alone. Field "needs" of its key "meta" ` +
      'is to say "shards:=/N" for N shards, and is not there without shards.',
  );
}

/** @param name in the hash tag, of which another queue is the owner */
export function nameTaken(name: string, count: number): InvalidQueueError {
  const owner = name.replace(/:\d+$/, '');
  return new InvalidQueueError(
    `Queue "${name}" cannot be used: its keys belong to queue "${owner}", which has or had ${count} shards. Rename one of them.`,
  );
}

/** @param name of a queue in one piece that is where a shard should be */
export function shardTaken(queue: string, name: string): InvalidQueueError {
  return new InvalidQueueError(
    `Queue "${queue}" cannot have a shard under "${name}": a queue of that name was used. Rename one of them, or, when it is ` +
      'no longer used, remove its keys.',
  );
}

/** @param reply `DQSHARDS stored given key-of-meta` of lib/lua/shared/layout.lua */
export function otherShardError(reply: string): DelayQueueError {
  const [, state, given, name] = /^DQSHARDS (\S+) (\S+) .*?\{(.*)\}:meta$/s.exec(reply) ?? [];
  if (name === undefined) return new StoredDataError(reply);
  const configured = Number(given!.split('/').at(-1));
  const queue = configured === 1 ? name : name.replace(/:\d+$/, '');
  const [index, count] = state!.split('/');
  if (state !== '?' && !isCount(count)) return damaged(queue, state!);
  const ofThisQueue = state === '?' || (configured === 1) === (index === '=');
  if (ofThisQueue) return new ShardCountError(queue, Number(count ?? 1), configured);
  return configured === 1 ? nameTaken(name, Number(count)) : shardTaken(queue, name);
}
