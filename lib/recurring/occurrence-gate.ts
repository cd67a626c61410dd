import type { DelayQueueLogger } from '../delay-queue.logger.js';
import type { HandlerOutcome } from '../handlers/handler-outcome.js';
import type { OccurrenceHeader } from '../job/occurrence-header.js';
import { occurrenceId, parseOccurrenceId } from '../job/job-id.js';
import { isTransient } from '../redis/redis.errors.js';
import type { ShardStore } from '../redis/shard-store.js';
import { performance } from '../time-and-randomness.js';
import { laterThan } from './later-occurrences.js';
import { SkippedOneByOne } from './skipped.js';

/** How long an occurrence waits before it asks again whether the one before it has ended. */
const ASK_AGAIN_MS = 1_000;

/**
 * How often Redis is asked while no answer comes. Were the occurrence given back after the first time, a process with a bad network would claim it
 * again by the call that gives it back, and keep it from others.
 */
const MOST_ASKS = 3;

/** Redis has noted that it ends with this run; an outcome of the run changes nothing. */
const SKIPPED: HandlerOutcome = { kind: 'skipped' };

/** A claimed occurrence that is about to begin. */
export interface Beginning {
  readonly id: string;
  /** Its nominal time. */
  readonly at: number;
  readonly claim: number;
  /** A run of it ended in a retry or was put off: it is no longer missed. */
  readonly hasBegun: boolean;
  /** A process died with it. Perhaps its handler had begun: unless several may run at once, Redis knows. */
  readonly wasLost: boolean;
  readonly dueAt: number;
  /** When its schedule, or somebody since, has said that it is due. */
  readonly givenDueAt: number;
  readonly rules: OccurrenceHeader;
  /** Server time. */
  readonly now: number;
}

/**
 * Is it due at another moment than it was made for? Whoever does that, by `reschedule()`, `runNow()` or as a dead letter that is due again,
 * wants it to run. Where an older library made it, this is seen only when it is due behind the next one.
 */
function isPutOff({ at, givenDueAt, rules: { nextDue, dueAfterMs } }: Beginning): boolean {
  if (dueAfterMs !== undefined) return givenDueAt !== at + dueAfterMs;
  return nextDue !== undefined && givenDueAt >= nextDue;
}

/** Does the schedule want this occurrence to be given up, because it is too late? Pure. */
export function isMissed(beginning: Beginning): boolean {
  const { hasBegun, wasLost, dueAt, rules, now } = beginning;
  const { missed, nextDue, graceMs, overlap } = rules;
  if (isPutOff(beginning)) return false;
  // Where several may run at once, Redis does not know which of them have begun.
  if (hasBegun || (overlap === 'allow' && (wasLost || dueAt !== beginning.givenDueAt))) return false;
  if (missed === 'once') return nextDue !== undefined && nextDue <= now;
  return missed === 'skip' && dueAt + graceMs < now;
}

/** When a run that its process had to interrupt is due again: of an occurrence this tells that it had begun (lib/lua/shared/withdraw.lua). */
export function dueAgain(dueAt: number, rules: OccurrenceHeader | undefined): number {
  return rules ? dueAt + 1 : dueAt;
}

/** Decides in a worker whether an occurrence runs: by the policies that it carries, and by the one before it. */
export class OccurrenceGate {
  readonly #skipped: SkippedOneByOne;
  /** By schedule, the latest question that may take several calls. It never rejects. */
  readonly #asking = new Map<string, Promise<unknown>>();

  constructor(
    private readonly store: ShardStore,
    logger: DelayQueueLogger,
  ) {
    this.#skipped = new SkippedOneByOne(logger);
  }

  /** Its worker stops. */
  end(): void {
    this.#skipped.end();
  }

  /**
   * @param asks how often Redis has been asked, with this time
   * @returns undefined when it may run; otherwise its outcome. Never rejects
   */
  async begin(claimed: Omit<Beginning, 'at'>, asks = 1): Promise<HandlerOutcome | undefined> {
    const { movedMs } = this.store.connection;
    const { schedule, at } = parseOccurrenceId(claimed.id) ?? {};
    if (schedule === undefined || at === undefined) return undefined;
    const { dueAt, givenDueAt } = claimed;
    const beginning = {
      ...claimed,
      at,
      dueAt: dueAt + movedMs,
      givenDueAt: givenDueAt + movedMs,
      now: claimed.now + movedMs,
    };
    const mayMiss = isMissed(beginning);
    if (!mayMiss && beginning.rules.overlap === 'allow') return undefined;
    const askedAt = performance.now();
    const decide = () =>
      this.#decide(schedule, beginning, mayMiss).catch(async (error: unknown) => {
        // What a call has noted that got no answer stands. It may be too late by now.
        const now = claimed.now + Math.round(performance.now() - askedAt);
        // Where several may run at once nothing tells that one has begun: a copy of a question that comes late would end it.
        const mayAsk = beginning.rules.overlap !== 'allow' && asks < MOST_ASKS;
        if (isTransient(error) && mayAsk) return this.begin({ ...claimed, now }, asks + 1);
        // Redis cannot be asked, so nothing is known of the one before it. The connection logs why, or who makes occurrences.
        return { kind: 'released' as const, restMs: ASK_AGAIN_MS, unbegun: true };
      });
    if (asks > 1) return decide(); // It has had its turn.
    // Occurrences of one answer begin in their order: one call is answered before the next one, but a later occurrence must not begin, or go,
    // between the calls of an earlier one, which may be missed only by the time that it asks again. That costs a round trip for each.
    const before = this.#asking.get(schedule);
    const decided = before ? before.then(decide) : decide();
    if (beginning.rules.missed === 'once') {
      const ended = () => void (this.#asking.get(schedule) === decided && this.#asking.delete(schedule));
      this.#asking.set(schedule, decided);
      void decided.then(ended);
    }
    return decided;
  }

  /** @throws errors of the connection */
  async #decide(schedule: string, beginning: Beginning, mayMiss: boolean): Promise<HandlerOutcome | undefined> {
    const { at, rules, now } = beginning;
    if (mayMiss) {
      const answer = await this.#askMissed(schedule, beginning);
      if (answer === 'g') return undefined;
      if (answer === 'm') this.#report(schedule, at, 'missed');
      if (answer !== 'n') return SKIPPED;
    }
    if (rules.overlap === 'allow') return undefined;
    const isNewest = !(rules.nextDue !== undefined && rules.nextDue <= now);
    const waits = isPutOff(beginning) || (rules.overlap === 'queue' && isNewest);
    const answer = await this.#ask(schedule, beginning, waits ? 'w' : 's');
    if (answer === 'g') return undefined;
    // Another claim has it by now, and says what becomes of it. Or a call before has left it out, whose answer was lost.
    if (answer === 'l') return SKIPPED;
    if (answer === 'm') {
      this.#report(schedule, at, 'missed');
      return SKIPPED;
    }
    if (waits) return { kind: 'released', restMs: ASK_AGAIN_MS, unbegun: 'passable' };
    this.#report(schedule, at, 'overlap');
    return SKIPPED;
  }

  async #ask(
    schedule: string,
    { id, claim, at, givenDueAt }: Beginning,
    what: 'm' | 's' | 'w',
    later: readonly string[] = [],
  ): Promise<unknown> {
    return this.store.call('beginOccurrence', [schedule, id, claim, what, Math.max(at, givenDueAt), ...later]);
  }

  /**
   * With `missed: 'once'` it gives way to a later one only where there is one: the next one may have been cancelled, or taken back because
   * the schedule has changed. That one is asked for first, and most often it is there.
   *
   * @returns also `n`: it is the latest one
   */
  async #askMissed(schedule: string, beginning: Beginning): Promise<unknown> {
    const { missed, next, overlap } = beginning.rules;
    if (missed !== 'once' || next === undefined) return this.#ask(schedule, beginning, 'm');
    const answer = await this.#ask(schedule, beginning, 'm', [occurrenceId(schedule, next)]);
    if (answer !== 'n') return answer;
    const later = await laterThan(this.store, schedule, beginning.at, overlap);
    if (later?.length === 0) return 'n';
    return this.#ask(schedule, beginning, 'm', later);
  }

  #report(schedule: string, at: number, reason: 'missed' | 'overlap'): void {
    const { connection, queue } = this.store;
    this.#skipped.add({ instance: connection.instance, queue, schedule, reason, count: 1, first: at, last: at });
  }
}
