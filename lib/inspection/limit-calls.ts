import type { InstanceContext } from '../instance/instance-context.js';
import { limitsText, parseLimits, refuseShards, resolveLimits } from '../job/queue-limits.js';
import type { QueueLimits } from '../job/queue-limits.js';
import { decodeEnvelope } from '../job/envelope.js';
import { integer, readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { typedError } from '../redis/redis.errors.js';

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

const GROUPS_RULES: OptionRules<GroupsOptions, { limit: number; from: string }> = {
  limit: (draft, value, field) => {
    draft.limit = integer(value, 1, 100, field);
  },
  cursor: (draft, value, field) => {
    if (typeof value !== 'string' || !/^r?\d{1,16}$/.test(value)) {
      throw new InvalidOptionError(`${field}: is no cursor of groups().`);
    }
    draft.from = value;
  },
};

/** What the inspector does about limits and groups of one queue. */
export class LimitCalls {
  constructor(
    private readonly context: InstanceContext,
    private readonly queue: string,
  ) {}

  async set(limits: QueueLimits | 'config' | undefined): Promise<void> {
    await this.#run('setLimits', [this.check(limits), limits === 'config' ? 'r' : 'o']);
  }

  /**
   * @returns the limits as the script takes them
   * @throws what `set()` would throw before anything is sent
   */
  check(limits: QueueLimits | 'config' | undefined): string {
    if (limits === 'config') return '';
    const naming = (option: string) => `setLimits("${this.queue}", { ${option} })`;
    const text = limits === undefined ? '' : limitsText(resolveLimits(limits, naming));
    refuseShards(this.context.stores(this.queue).length, naming('...'));
    return text;
  }

  async read(): Promise<StoredLimits> {
    const [, text, by, ofSettings = ''] = await this.#run('limits', ['?', 'c']);
    const limits = parseLimits(text);
    return by === 'o' ? { limits, setBy: 'operator', config: parseLimits(ofSettings) } : { limits, setBy: 'config' };
  }

  async groups(options: GroupsOptions): Promise<{ groups: QueueGroup[]; cursor?: string }> {
    const draft = { limit: 50, from: '' };
    const { limit, from } = readOptions(options, GROUPS_RULES, draft, (option) => `groups({ ${option} })`);
    const answer = await this.#call('groups', 'groups', [from, limit]);
    const [cursor, ...rows] = answer as [string, ...(readonly [string, number, number, number, number, string])[]];
    const groups = rows.map(([, waiting, due, running, until, head]) => ({
      group: nameIn(head),
      waiting,
      due,
      running,
      ...(until >= 0 && { limitedUntil: new Date(until) }),
    }));
    return cursor === '' ? { groups } : { groups, cursor };
  }

  #run(what: string, args: string[]): Promise<[string, string, string, string?]> {
    return this.#call('limit', what, args) as Promise<[string, string, string, string?]>;
  }

  async #call(script: 'limit' | 'groups', what: string, args: (string | number)[]): Promise<unknown> {
    try {
      return await this.context.stores(this.queue)[0]!.call(script, args);
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
