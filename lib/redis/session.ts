import type { AnyScriptName } from '../lua/scripts.js';
import type { ShardKeys } from './keys.js';
import type { RedisConnection } from './redis.connection.js';
import {
  hasNoGroups,
  isOtherShard,
  isTransient,
  NoAnswerError,
  NotSentError,
  serverTimeOfLate,
} from './redis.errors.js';
import type { ServerClock } from './server-clock.js';
import { performance, random, sleep } from '../time-and-randomness.js';

/** Makes sure that the shard exists with the number of shards that this process uses. */
export interface ShardOpening {
  open(): Promise<void>;
  /** A call was answered: the shard is what this process takes it for. */
  answered(): void;
  /** Makes all shards of the queue such that may have groups. */
  beginGroups(): Promise<void>;
}

const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 2_000;

/** What lib/lua/shared/session.lua writes. */
const SESSION_OVER = '9007199254740991 ';
const SESSION_OVER_MS = 600_000;

/** A call of a script, and how it is tried. */
export interface SessionCall {
  readonly script: AnyScriptName;
  readonly args: (string | number)[];
  /** Where the script expects the sequence number. */
  readonly sequenceAt: number;
  /** Runs before each try, which leaves in the same turn in which it ends. If it fails, the call does not leave. */
  readonly before?: (() => Promise<void>) | undefined;
  /** Asked before each resend; true ends the trying with the last error. */
  readonly giveUp?: () => boolean;
  /**
   * Which errors are answers; by default all that waiting does not cure. `mayHaveRun` is true when an earlier copy of the call got no
   * answer: a refusal says nothing of that copy.
   */
  readonly isFinal?: (error: unknown, mayHaveRun: boolean) => boolean;
  /** Called when the request leaves: from then on it may take effect. */
  readonly onSent?: (() => void) | undefined;
  /** Called when a try ended without an answer, or with an error that is none. */
  readonly onDoubt?: (error: unknown) => void;
  /** Runs after the answer. If it fails, the try counts as failed and the call is resent. */
  readonly confirm?: (() => Promise<void>) | undefined;
}

/**
 * A numbered sequence of calls to one shard. It sends a call only after the previous one was answered, and resends a
 * call without an answer unchanged; the script remembers the last answer. So a lost reply never claims, settles or
 * enqueues twice. A copy of a call may arrive after that. It then finds the remembered answer, which is always kept for
 * a call that was resent, or it is refused, because each copy says by which server time it must arrive.
 */
export class Session {
  readonly key: string;
  #sequence = 0;
  #busy = false;
  /** A call got no answer, and no later answer is known to be remembered. */
  #inDoubt = false;
  /** Until then a copy of a call may still arrive; monotonic ms. */
  #copiesUntil = -Infinity;

  constructor(
    private readonly connection: RedisConnection,
    private readonly keys: ShardKeys,
    name: string,
    private readonly clock: ServerClock,
    private readonly opening?: ShardOpening,
  ) {
    this.key = keys.session(name);
  }

  get busy(): boolean {
    return this.#busy;
  }

  /** It has sent calls, so Redis remembers it. */
  get isUsed(): boolean {
    return this.#sequence > 0;
  }

  /** Whether the last call took effect is not known, and may be asked. */
  get isInDoubt(): boolean {
    return this.#inDoubt && !this.connection.isInterrupted;
  }

  /** No call that it sent can still take effect, so Redis may forget it. */
  get isSettled(): boolean {
    return !this.#busy && !this.#inDoubt && !this.expectsCopies;
  }

  /** A copy of a call that got no answer may still arrive. */
  get expectsCopies(): boolean {
    return performance.now() < this.#copiesUntil;
  }

  /** Calls a script under the next sequence number, until it is answered. */
  call(call: SessionCall): Promise<unknown> {
    this.#sequence++;
    return this.again(call);
  }

  /** Calls under the number of the last call, which was given up: the answer is the one of then. */
  async again({
    script,
    args,
    sequenceAt,
    before,
    giveUp = () => false,
    isFinal = (error) => !isTransient(error),
    onSent,
    onDoubt,
    confirm,
  }: SessionCall): Promise<unknown> {
    this.#busy = true;
    const sequence = this.#sequence;
    let mayHaveRun = false;
    try {
      for (let delay = FIRST_RETRY_MS; ; delay = Math.min(delay * 2, LAST_RETRY_MS)) {
        const inDoubt = this.#inDoubt;
        let stamp = '';
        try {
          if (before) await before().catch(notSent);
          stamp = this.clock.stamp();
          args[sequenceAt] = sequence + stamp + (inDoubt ? 'd' : '');
          const answer = await this.connection.run(script, this.keys.fixed, this.key, args, onSent);
          this.opening?.answered();
          // All calls before it have a lower number than the one that is remembered now.
          if (inDoubt) this.#inDoubt = false;
          if (confirm) await confirm();
          return answer;
        } catch (refusal) {
          if (refusal instanceof NoAnswerError) {
            mayHaveRun = true;
            this.#inDoubt = true;
            const until = stamp === '' ? Infinity : performance.now() + this.clock.arrivalMs;
            this.#copiesUntil = Math.max(this.#copiesUntil, until);
          }
          const serverNow = serverTimeOfLate(refusal);
          if (serverNow !== undefined && this.clock.learn(serverNow) && !giveUp()) continue;
          const error = this.opening ? await this.#opened(this.opening, refusal) : refusal;
          const isAnswer = isFinal(error, mayHaveRun);
          if (!isAnswer) onDoubt?.(error);
          if (isAnswer || giveUp() || this.connection.isClosed) throw error;
          if (this.connection.isReady) await sleep(delay * (0.5 + random()), undefined, { ref: false });
          else await this.connection.whenReady(LAST_RETRY_MS).catch(() => undefined);
          if (giveUp()) throw error;
        }
      }
    } finally {
      this.#busy = false;
    }
  }

  /** @returns why the call was not answered: once the shard is open to it, it only has to be sent again */
  async #opened(opening: ShardOpening, refusal: unknown): Promise<unknown> {
    if (!isOtherShard(refusal) && !hasNoGroups(refusal)) return refusal;
    return (isOtherShard(refusal) ? opening.open() : opening.beginGroups()).then(
      () => new NotSentError(refusal),
      (error: unknown) => error,
    );
  }
}

function notSent(error: unknown): never {
  throw new NotSentError(error);
}

/**
 * Deletes what Redis remembers of sessions of one shard that are used no more. If a copy of a call may still arrive, Redis keeps a
 * mark instead that the session is over.
 */
export async function forget(connection: RedisConnection, sessions: readonly Session[]): Promise<void> {
  const { commands } = connection;
  const awaited = sessions.filter(({ expectsCopies }) => expectsCopies);
  const keys = sessions.filter((session) => !awaited.includes(session)).map(({ key }) => key);
  await Promise.all([
    keys.length > 0 && connection.send(() => commands.unlink(...keys), keys[0]),
    ...awaited.map(({ key }) => connection.send(() => commands.set(key, SESSION_OVER, 'PX', SESSION_OVER_MS), key)),
  ]);
}
