import type { AnyScriptName } from '../lua/scripts.js';
import { SCHEDULE_KEY_NAMES, scheduleKeys, ShardKeys } from '../redis/keys.js';
import type { KeyName, ScheduleKeyName } from '../redis/keys.js';
import { linkOf } from '../redis/redis.client.js';
import type { RedisConnection } from '../redis/redis.connection.js';
import type { ShardState } from '../shards/shard-state.js';

type Outcome = 'y' | 'n' | 'u' | 'b';

type PagedIndex = 'due' | 'quarantine' | 'dead' | 'unique' | 'completed' | 'zoned' | 'ticks';

/** The keys of one hash tag, for the code that decides whether they are a queue or a shard. */
export class ShardMarks {
  readonly keys: ShardKeys;

  constructor(
    private readonly connection: RedisConnection,
    private readonly prefix: string,
    readonly name: string,
  ) {
    this.keys = new ShardKeys(prefix, name);
  }

  /** By what these keys are written at this moment. */
  get link(): unknown {
    return linkOf(this.connection.commands, this.keys.due);
  }

  /** The same keys over another connection. */
  over(connection: RedisConnection): ShardMarks {
    return new ShardMarks(connection, this.prefix, this.name);
  }

  /** Writes a state if one of `accepted` is there. `conditions` as lib/lua/reshard/mark-shard.lua says. */
  async mark(
    to: ShardState,
    conditions: string,
    accepted: readonly ShardState[],
  ): Promise<{ outcome: Outcome; state: ShardState; running: number }> {
    const answer = await this.run('markShard', [to, conditions, ...accepted]);
    const [outcome, state, running] = answer as [Outcome, ShardState, number];
    return { outcome, state, running };
  }

  async state(): Promise<ShardState> {
    return (await this.mark('', '', ['?'])).state;
  }

  async run(script: AnyScriptName, args: readonly (string | number)[]): Promise<unknown> {
    await this.connection.whenReady();
    return this.connection.run(script, this.keys.fixed, this.keys.session('none'), [...args]);
  }

  async meta(fields: readonly string[]): Promise<(string | null)[]> {
    await this.connection.whenReady();
    return this.connection.send(() => this.connection.commands.hmget(this.keys.meta, ...fields), this.keys.meta);
  }

  async forget(fields: readonly string[]): Promise<void> {
    if (fields.length === 0) return;
    await this.connection.whenReady();
    await this.connection.send(() => this.connection.commands.hdel(this.keys.meta, ...fields), this.keys.meta);
  }

  /** All ids of an index, a page at a time. An id that is there throughout comes at least once. */
  async *pages(index: PagedIndex): AsyncGenerator<string[]> {
    const at = SCHEDULE_KEY_NAMES.indexOf(index as ScheduleKeyName);
    const key = at < 0 ? this.keys.key(index as KeyName) : scheduleKeys(this.keys.fixed)[at]!;
    let cursor = '0';
    do {
      await this.connection.whenReady();
      const from = cursor;
      const [next, flat] = await this.connection.send(
        () => this.connection.commands.zscan(key, from, 'COUNT', 200),
        key,
      );
      cursor = next;
      yield flat.filter((_, at) => at % 2 === 0);
    } while (cursor !== '0');
  }
}
