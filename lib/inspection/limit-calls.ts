import type { InstanceContext } from '../instance/instance-context.js';
import { assertShares, limitsText, parseLimits, resolveLimits, shareProblem } from '../job/queue-limits.js';
import type { QueueLimits } from '../job/queue-limits.js';
import { decodeEnvelope } from '../job/envelope.js';
import { integer, readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { typedError } from '../redis/redis.errors.js';
import { askLimits, spreadLimits } from '../shards/spread-limits.js';

/** The limits that hold, and who set them. */
export interface StoredLimits {
  limits: QueueLimits | undefined;
  /** `'operator'`: by `setLimits()`; what applications say at boot does not change them. */
  setBy: 'config' | 'operator';
  /** Of an operator: what applications said last, which `setLimits(queue, 'config')` puts back. */
  config?: QueueLimits | undefined;
}

/** A group that has jobs. */
export interface QueueGroup {
  /** Undefined for jobs without a group, and where the stored text of a job is damaged. */
  group: string | undefined;
  /** Jobs that wait, due ones included. */
  waiting: number;
  due: number;
  running: number;
  /** Until then, or until a run ends, no job of it starts. */
  limitedUntil?: Date;
}

export interface GroupsOptions {
  /** So many groups are looked at for a page: 1 to 100. Those of which no job is left are not in it. Default 50. */
  limit?: number;
  /** The cursor that the previous page returned. */
  cursor?: string;
}

/** A shard, and what lib/lua/limits/groups.lua has replied. */
const PLACE = /^(?:(\d{1,3}):)?((?:r?\d{1,16}|p-?\d{1,16}_\d{1,16})?)$/;

const GROUPS_RULES: OptionRules<GroupsOptions, { limit: number; shard: number; from: string }> = {
  limit: (draft, value, field) => {
    draft.limit = integer(value, 1, 100, field);
  },
  cursor: (draft, value, field) => {
    const [, shard = '0', from] = (typeof value === 'string' && PLACE.exec(value)) || [];
    if (from === undefined || value === '') throw new InvalidOptionError(`${field}: is no cursor of groups().`);
    draft.shard = Number(shard);
    draft.from = from;
  },
};

/** What the inspector does about limits and groups of one queue. */
export class LimitCalls {
  constructor(
    private readonly context: InstanceContext,
    private readonly queue: string,
  ) {}

  async set(limits: QueueLimits | 'config' | undefined): Promise<void> {
    const text = await this.checked(limits);
    // All shards have the same text, and each takes its share.
    await this.#typed('setLimits', spreadLimits(this.stores, text, limits === 'config' ? 'r' : 'o'));
  }

  /**
   * @returns the limits as the script takes them
   * @throws what `set()` would throw before it changes anything
   */
  async checked(limits: QueueLimits | 'config' | undefined): Promise<string> {
    const shards = this.stores.length;
    if (limits === 'config' && shards > 1) this.#assertConfigFits((await this.read()).config, shards);
    if (limits === 'config' || limits === undefined) return '';
    const resolved = resolveLimits(limits, (option) => `setLimits("${this.queue}", { ${option} })`);
    assertShares(resolved, shards, `setLimits("${this.queue}", limits)`);
    return limitsText(resolved);
  }

  async read(): Promise<StoredLimits> {
    const { holding, setBy, ofSettings } = await this.#typed('limits', askLimits(this.stores[0]!));
    const limits = parseLimits(holding);
    return setBy === 'o' ? { limits, setBy: 'operator', config: parseLimits(ofSettings) } : { limits, setBy: 'config' };
  }

  /** One shard after the other. */
  async groups(options: GroupsOptions): Promise<{ groups: QueueGroup[]; cursor?: string }> {
    const draft = { limit: 50, shard: 0, from: '' };
    const { limit, shard, from } = readOptions(options, GROUPS_RULES, draft, (option) => `groups({ ${option} })`);
    const shards = this.stores.length;
    if (shard >= shards) return { groups: [] };
    const answer = await this.#typed('groups', this.stores[shard]!.call('groups', [from, limit]));
    const [next, ...rows] = answer as [string, ...(readonly [string, number, number, number, number, string])[]];
    const groups = rows.map(([, waiting, due, running, until, head]) => ({
      group: nameIn(head),
      waiting,
      due,
      running,
      ...(until >= 0 && { limitedUntil: new Date(until) }),
    }));
    if (next !== '') return { groups, cursor: shard === 0 ? next : `${shard}:${next}` };
    return shard + 1 < shards ? { groups, cursor: `${shard + 1}:` } : { groups };
  }

  /** They were said for the number of shards that the queue had then. */
  #assertConfigFits(config: QueueLimits | undefined, shards: number): void {
    const { globalConcurrency, rateLimit } = config ?? {};
    const problem = shareProblem({ globalConcurrency, rateLimit }, shards);
    if (problem === undefined) return;
    throw new InvalidOptionError(`setLimits("${this.queue}", 'config'): of what applications said last, ${problem}`);
  }

  private get stores() {
    return this.context.stores(this.queue);
  }

  async #typed<T>(what: string, call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      throw typedError(error, `${what} of queue "${this.queue}"`);
    }
  }
}

function nameIn(head: string): string | undefined {
  try {
    return head === '' ? undefined : decodeEnvelope(`${head}\n`).header.group;
  } catch {
    return undefined;
  }
}
