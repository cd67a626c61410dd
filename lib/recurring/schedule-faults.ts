import { DelayQueueError } from '../delay-queue.errors.js';
import type { DelayQueueLogger } from '../delay-queue.logger.js';
import { isOfLayout, isTransient, typedError } from '../redis/redis.errors.js';
import type { ShardStore } from '../redis/shard-store.js';
import { isWrongType, wrongKeyOf } from '../redis/wrong-key.js';

/** What is refused, and what is said once it goes on. */
const WHAT = {
  schedules: [
    'Schedules of queue "%" make no occurrences, and what is due of them may wait',
    'Schedules of queue "%" go on',
  ],
  zones: [
    'Jobs at a local time of queue "%" are not looked at for newer time-zone data',
    'Jobs at a local time of queue "%" are looked at again',
  ],
  notes: [
    'Notes of jobs at a local time of queue "%" are not removed',
    'Notes of jobs at a local time of queue "%" are removed again',
  ],
} as const;
type What = keyof typeof WHAT;

/** What these keys held is not there any more. */
const LOST_WITH = /:(schedules|ticks)$/;

/** The error of a call that somebody else tells of: the connection, where it may succeed a moment later; the worker, where the queue is left alone. */
export function passes(error: unknown): boolean {
  return isTransient(error) || isOfLayout(error) || (error instanceof DelayQueueError && error.retryable);
}

/** What Redis refuses whoever makes the occurrences of one shard, as a key of a wrong type: told once, until it is mended. */
export class ScheduleFaults {
  readonly #said = new Map<What, string>();

  constructor(
    private readonly queue: string,
    private readonly store: ShardStore,
    private readonly logger: DelayQueueLogger,
  ) {}

  /** Never rejects. What passes by itself is not told. @returns whether it succeeded */
  async try(what: What, act: () => Promise<void>): Promise<boolean> {
    try {
      await act();
    } catch (error) {
      if (!passes(error)) await this.#tell(what, error);
      return false;
    }
    if (this.#said.delete(what)) this.logger.log(this.#about(`${WHAT[what][1]}.`), { queue: this.queue });
    return true;
  }

  async #tell(which: What, error: unknown): Promise<void> {
    const wrong = isWrongType(error) ? await wrongKeyOf(this.store) : undefined;
    // Of other keys the tick tells that comes behind this.
    if (wrong && which !== 'schedules' && !wrong.key.endsWith(':zoned')) return;
    const why = wrong ? remedyOf(wrong) : typedError(error, `schedules of queue "${this.queue}"`).message;
    if (this.#said.get(which) === why) return;
    this.#said.set(which, why);
    const what = this.#about(WHAT[which][0]);
    this.logger.error(`${what}: ${why}`, { queue: this.queue });
  }

  #about(text: string): string {
    return text.replace('%', () => this.queue);
  }
}

function remedyOf({ key, type }: { key: string; type: string }): string {
  const rename = `key "${key}" is no ${type}, so Redis refuses the scripts. Rename it: RENAME "${key}" "${key}.wrong"`;
  return LOST_WITH.test(key)
    ? `${rename}. Then make the schedules of the queue again, by schedule() or, those of handlers, by a restart.`
    : rename;
}
