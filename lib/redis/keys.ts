/**
 * Every key of one shard, in the order in which all scripts get them (lib/lua/shared/keys.lua).
 *
 * | key       | type   | content                                                                              |
 * |-----------|--------|--------------------------------------------------------------------------------------|
 * | due       | zset   | id -> due time, ms                                                                   |
 * | running   | zset   | id -> claim number: the token                                                        |
 * | leases    | zset   | claim number -> deadline, ms; ends on .5 while its only job is alone in its process  |
 * | jobs      | hash   | id -> envelope; of dead letters too                                                  |
 * | followups | hash   | id -> what follows the present run: an envelope, `!` (cancelled), `=due` (give back) |
 * | attempts  | hash   | id -> attempts, losses in a row, snoozes, last lost claim, limit; only who had any   |
 * | quarantine | zset  | ids that lost a lease, waiting to run alone -> when it was taken back, ms            |
 * | dead      | zset   | id -> time of death, ms                                                              |
 * | errors    | hash   | id -> lines: reason, last error as JSON, the last five attempts in short             |
 * | unique    | zset   | id -> end of its uniqueness window, ms                                               |
 * | debounce  | hash   | id -> start of its debounce burst, ms                                                |
 * | idle      | zset   | wake-up channel of a waiting process -> until when it sleeps, ms                     |
 * | completed | zset   | id -> when it was completed, ms; only with `keepCompleted`                            |
 * | history   | hash   | id of a completed job -> attempts record, newline, envelope                          |
 * | meta      | hash   | layout, needs, paused, counters, last claim, seenAt, graceUntil, leader, isolator, ... |
 * | changed   | string | when something changed that a resting worker must know, us                            |
 * | session:X  | string | last sequence number of session X and its whole answer; the only keys with a TTL        |
 *
 * Only for the scripts of recurring jobs, behind those (lib/lua/shared/schedule-keys.lua):
 *
 * | schedules | hash   | `{id}` -> record of a schedule; what else is known of it under `floor{id}`, `missed{id}`, `overlapped{id}`, `paused{id}`, `ahead{id}` |
 * | ticks     | zset   | id of a schedule -> when it needs more occurrences, ms                               |
 * | zoned     | zset   | id of a job at a local time -> when it was due when it was made, ms                 |
 * | pending   | zset   | id of a schedule of which a process was told -> since when it needs more occurrences, ms |
 */
export const KEY_NAMES = [
  'due',
  'running',
  'leases',
  'jobs',
  'followups',
  'attempts',
  'quarantine',
  'dead',
  'errors',
  'unique',
  'debounce',
  'idle',
  'meta',
  'completed',
  'history',
  'changed',
] as const;

export type KeyName = (typeof KEY_NAMES)[number];

export const SCHEDULE_KEY_NAMES = ['schedules', 'ticks', 'zoned', 'pending'] as const;

export type ScheduleKeyName = (typeof SCHEDULE_KEY_NAMES)[number];

/** The keys of recurring jobs in the shard that has these fixed keys. */
export function scheduleKeys([due]: readonly string[]): string[] {
  return SCHEDULE_KEY_NAMES.map((name) => due!.slice(0, -'due'.length) + name);
}

/**
 * Of a queue that uses groups, priorities or limits four more, behind all others (lib/lua/shared/groups.lua):
 *
 * | key     | type | content                                                                                   |
 * |---------|------|-------------------------------------------------------------------------------------------|
 * | grouped | zset | seven digits of the due time, id -> place: group * 16 + 9 - priority; all jobs of `due`       |
 * | ring    | zset | base of a group, its place with priority 0 -> whose turn it is, or until when it is not      |
 * | held    | zset | id of a job with a group that runs or is in quarantine -> place                              |
 * | rates   | hash | base of a group, or nothing for the queue -> starts within the window, `ms:count:first ...`  |
 */
export const LIMIT_KEY_NAMES = ['grouped', 'ring', 'held', 'rates'] as const;

/** Of the shard that has this key of due jobs. */
export function limitKeys(due: string): readonly string[] {
  const tag = due.slice(0, -'due'.length);
  return LIMIT_KEY_NAMES.map((name) => tag + name);
}

/** How long the sessions of processes that are gone are kept. lib/lua/shared/session.lua says the same. */
export const SESSION_PX = 600_000;
/** What stands in the hash tag: of a queue that is not split its own name, so that such keys never change. */
export function shardName(queue: string, index: number, count: number): string {
  return count === 1 ? queue : `${queue}:${index}`;
}

/** The keys of one shard. One hash tag holds them together in one Cluster slot. */
export class ShardKeys {
  /** In the order of `KEY_NAMES`, for scripts. */
  readonly fixed: readonly string[];
  readonly #tag: string;
  /** Tells every script which shard of how many the caller means (lib/lua/shared/layout.lua). */
  readonly #claim: string;

  constructor(prefix: string, queue: string, index = 0, count = 1) {
    this.#tag = `${prefix}:{${shardName(queue, index, count)}}:`;
    this.#claim = count === 1 ? '' : `~${index}/${count}~`;
    this.fixed = KEY_NAMES.map((name) => this.key(name));
  }

  /** With those of schedules, and those that only queues with groups, priorities or limits have. */
  get all(): readonly string[] {
    return [...this.fixed, ...scheduleKeys(this.fixed), ...limitKeys(this.due)];
  }

  key(name: KeyName): string {
    return this.#tag + name;
  }

  /** Those that are asked for, by their names. */
  named<Name extends KeyName>(...names: readonly Name[]): Readonly<Record<Name, string>> {
    return Object.fromEntries(names.map((name) => [name, this.key(name)])) as Record<Name, string>;
  }

  /** What wake-up messages carry to say which shard they mean. */
  get due(): string {
    return this.fixed[0]!;
  }

  /** What workers that rest read. */
  get changed(): string {
    return this.key('changed');
  }

  get meta(): string {
    return this.key('meta');
  }

  session(name: string): string {
    return `${this.#tag}session:${this.#claim}${name}`;
  }
}

/** The set of queue names ever used. Outside every shard's slot, so it is a convenience and never the truth. */
export function queueNamesKey(prefix: string): string {
  return `${prefix}:queues`;
}

export function wakeChannel(prefix: string, processName: string): string {
  return `${prefix}:wake:${processName}`;
}

/** The Cluster slot of a key: CRC-16/XMODEM of its hash tag, of 16,384. */
export function slotOf(key: string): number {
  const tag = /\{([^}]+)\}/.exec(key)?.[1] ?? key;
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  }
  return crc & 0x3fff;
}
