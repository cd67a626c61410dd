import type { ScriptName } from '../lua/scripts.js';
import type { ShardKeys } from './keys.js';
import type { QueueOpening } from './queue-opening.js';
import type { RedisConnection } from './redis.connection.js';
import { isOtherShard, isTransient, NotSentError } from './redis.errors.js';
import { sleep } from '../real-time.js';

const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 2_000;

/**
 * A numbered line of calls to one shard. It sends its next call only after the last one was answered, and resends an
 * unanswered one unchanged; the script remembers the last answer of the lane. So a lost reply never claims, settles or
 * enqueues twice.
 */
export class Lane {
  readonly key: string;
  #sequence = 0;
  #busy = false;

  constructor(
    private readonly connection: RedisConnection,
    private readonly keys: ShardKeys,
    name: string,
    private readonly opening?: QueueOpening,
  ) {
    this.key = keys.lane(name);
  }

  get busy(): boolean {
    return this.#busy;
  }

  /**
   * Calls `script` with the sequence number put at `args[sequenceAt]`, until it is answered.
   *
   * @param giveUp asked before each resend; true ends the trying with the last error
   * @param isFinal which errors are answers; by default all that waiting does not cure
   * @param onSent called when the request leaves: from then on it may take effect
   * @param onDoubt called when a try ended without an answer, or with one that waiting may cure
   * @param confirm what must succeed after the answer; when it does not, the try counts as failed and the call is resent
   */
  async call(
    script: ScriptName,
    args: (string | number)[],
    sequenceAt: number,
    giveUp: () => boolean = () => false,
    isFinal: (error: unknown) => boolean = (error) => !isTransient(error),
    onSent?: () => void,
    onDoubt?: (error: unknown) => void,
    confirm?: () => Promise<void>,
  ): Promise<unknown> {
    this.#busy = true;
    args[sequenceAt] = ++this.#sequence;
    try {
      for (let delay = FIRST_RETRY_MS; ; delay = Math.min(delay * 2, LAST_RETRY_MS)) {
        try {
          const answer = await this.connection.run(script, this.keys.fixed, this.key, args, onSent);
          if (confirm) await confirm();
          return answer;
        } catch (refusal) {
          const error = this.opening && isOtherShard(refusal) ? await this.#opened(this.opening, refusal) : refusal;
          if (!isFinal(error)) onDoubt?.(error);
          if (isFinal(error) || giveUp() || this.connection.isClosed) throw error;
          if (this.connection.isReady) await sleep(delay * (0.5 + Math.random()), undefined, { ref: false });
          else await this.connection.whenReady(LAST_RETRY_MS).catch(() => undefined);
          if (giveUp()) throw error;
        }
      }
    } finally {
      this.#busy = false;
    }
  }

  /** @returns why the call was not answered: now that the shard is open it only has to be sent again */
  #opened(opening: QueueOpening, refusal: unknown): Promise<unknown> {
    return opening.open().then(
      () => new NotSentError(refusal),
      (error: unknown) => error,
    );
  }
}
