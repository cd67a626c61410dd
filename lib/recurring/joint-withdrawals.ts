import type { Failure } from '../producer/call.js';
import type { EnqueueBatcher } from '../producer/enqueue-batcher.js';
import { OncePerTurn } from '../once-per-turn.js';
import type { Stretch } from './given-up.js';
import { FIRST_PAGE, parsePage } from './occurrence-pages.js';
import type { Cursor } from './occurrence-pages.js';

/** Schedules that one look through what is due serves. */
const MOST_SCHEDULES = 200;
/** Ids that one call names. */
const MOST_NAMED = 500;

/** What goes with one schedule, in words of lib/lua/recurring/withdraw-occurrences.lua. */
export interface OneWithdrawal {
  readonly schedule: string;
  readonly latest: string;
  readonly dueBy: number;
  readonly wasDue: string;
  readonly named: readonly string[];
  readonly readAt: number;
  /** Called for each part that was counted as missed, also when a later one fails. */
  readonly counted: (part: Stretch) => void;
}

interface Waiting extends OneWithdrawal {
  count: number;
  readonly resolve: (count: number) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Takes back occurrences of one shard. To find them all that is due is looked through, page by page. Schedules that come while that
 * goes on wait for the next time, which serves all of them: or a thousand of them would look through it a thousand times at once.
 */
export class JointWithdrawals {
  #waiting: Waiting[] = [];
  #isLooking = false;
  readonly #lookSoon = new OncePerTurn(() => void this.#lookUntilNoneWaits());

  constructor(
    private readonly batcher: EnqueueBatcher,
    private readonly call: string,
    private readonly page: number,
  ) {}

  /** @returns how many were taken back @throws what the call fails with */
  add(withdrawal: OneWithdrawal): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...withdrawal, count: 0, resolve, reject });
      if (!this.#isLooking) this.#lookSoon.schedule();
    });
  }

  async #lookUntilNoneWaits(): Promise<void> {
    this.#isLooking = true;
    while (this.#waiting.length > 0) {
      const together = this.#next();
      const failure = await this.#look(together);
      for (const { schedule, count, resolve, reject } of together) {
        if (failure) reject(failure(schedule));
        else resolve(count);
      }
    }
    this.#isLooking = false;
  }

  /** Of one schedule only the first one: what the second one finds is its own. */
  #next(): Waiting[] {
    const together = new Map<string, Waiting>();
    for (const one of this.#waiting) {
      if (together.size === MOST_SCHEDULES) break;
      if (!together.has(one.schedule)) together.set(one.schedule, one);
    }
    this.#waiting = this.#waiting.filter((one) => together.get(one.schedule) !== one);
    return [...together.values()];
  }

  async #look(together: readonly Waiting[]): Promise<Failure | undefined> {
    const wanted = together.flatMap(({ schedule, latest, dueBy, wasDue }) => [schedule, latest, dueBy, wasDue]);
    const named = together.flatMap((one) => one.named);
    const readAt = together.map((one) => one.readAt);
    let cursor: Cursor | undefined = FIRST_PAGE;
    while (cursor) {
      const ids = named.splice(0, MOST_NAMED);
      // What is named goes first, the last part of it with the first page.
      const most = named.length > 0 ? 0 : this.page;
      const args = [most, ...cursor, together.length, ...wanted, ...ids, ...readAt];
      const answer = await this.batcher.ask('withdrawOccurrences', args, { call: this.call });
      if (typeof answer === 'function') return answer;
      const page = parsePage(answer);
      for (const [n, found] of page.found.split(',').entries()) {
        const [count, missed, first, last] = found.split(':') as [string, string, string, string];
        together[n]!.count += Number(count);
        if (missed === '0') continue;
        together[n]!.counted({ count: Number(missed), first: parseInt(first, 36), last: parseInt(last, 36) });
      }
      if (most > 0) cursor = page.cursor;
    }
    return undefined;
  }
}
