import { BackPressureError, UnavailableError } from '../delay-queue.errors.js';
import type { ScriptName } from '../lua/scripts.js';
import type { Link } from '../redis/barrier.js';
import type { Lane } from '../redis/lane.js';
import {
  isFull,
  isMoving,
  isRefusal,
  isTransient,
  MOVING,
  NoAnswerError,
  replyCode,
  typedError,
} from '../redis/redis.errors.js';
import type { ShardStore } from '../redis/shard.store.js';
import { clearInterval, performance, setImmediate, setInterval, setTimeout } from '../real-time.js';

/** A job as lib/lua/enqueue.lua takes it. */
export interface EnqueueItem {
  readonly id: string;
  readonly spec: string;
  readonly rest: string;
}

/** What must be known of a call before it counts as answered. */
export interface Confirmation {
  /** Where it is just being sent. */
  link(): Link;
  /** @throws what makes the call be sent again */
  wait(link: Link): Promise<number>;
}

interface Call {
  /** The answer of the script: of an enqueue, the part that concerns this item. */
  resolve(answer: string): void;
  reject(error: Error): void;
  /** Monotonic ms. */
  readonly deadline: number;
  readonly bytes: number;
  settled: boolean;
  readonly id: string;
  /** One job of an enqueue, or a script of its own. */
  readonly item?: EnqueueItem;
  readonly script?: ScriptName;
  readonly args?: (string | number)[];
}

interface Flight {
  readonly calls: Call[];
  sent: boolean;
  /** A try of it ended without an answer: whatever comes later, it may have taken effect. */
  inDoubt: boolean;
  link?: Link;
  /** What the confirmation gave. */
  reached?: number;
  lastError?: unknown;
}

const LANES = 4;
const MAX_IDS = 200;
const MAX_BYTES = 1024 * 1024;
/** What one shard's unanswered calls may hold in memory. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
const DEADLINE_CHECKS = 20;

/**
 * The calls of one process to one shard, in order: those of one turn of the event loop go as one script call, and at most
 * four are on their way. A deadline that passes before sending means "not accepted"; afterwards "maybe", and the lane goes
 * on until it is answered, because its sequence number is open.
 */
export class ProducerQueue {
  readonly #lanes: Lane[];
  #waiting: Call[] = [];
  /** Bulk calls give way to single ones after each chunk. */
  #bulk: Call[] = [];
  readonly #flights = new Set<Flight>();
  #bytes = 0;
  #scheduled = false;
  /** The connection is waited for: once, however many calls wait. */
  #offline = false;
  #closed = false;
  #deadlines: NodeJS.Timeout | undefined;

  constructor(
    private readonly store: ShardStore,
    private readonly timeoutMs: number,
    private readonly confirmation?: Confirmation,
  ) {
    this.#lanes = Array.from({ length: LANES }, () => store.lane());
  }

  /** @returns `now outcome state due`, and what the confirmation gave where there is one */
  enqueue(item: EnqueueItem, bulk = false): Promise<string> {
    return this.#add((settle) => ({ ...settle, id: item.id, item, bytes: item.id.length + item.rest.length }), bulk);
  }

  /** @returns the whole answer of the script */
  run(script: ScriptName, id: string, args: (string | number)[]): Promise<string> {
    return this.#add((settle) => ({ ...settle, id, script, args, bytes: 64 }), false);
  }

  /** Waits for what is on its way, then refuses the rest. */
  async close(ms: number): Promise<void> {
    const until = performance.now() + ms;
    while (this.#flights.size + this.#waiting.length + this.#bulk.length > 0 && performance.now() < until) {
      if (!this.store.connection.isReady) break;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    this.#closed = true;
    clearInterval(this.#deadlines);
    for (const call of [...this.#waiting, ...this.#bulk]) this.#give(call, this.#unavailable(call, false));
    for (const { calls } of this.#flights) for (const call of calls) this.#give(call, this.#unavailable(call, true));
    this.#waiting = [];
    this.#bulk = [];
  }

  /** Lane keys of this queue, for whoever cleans up. */
  get laneKeys(): string[] {
    return this.#lanes.map((lane) => lane.key);
  }

  #add(
    build: (settle: Pick<Call, 'resolve' | 'reject' | 'deadline' | 'settled'>) => Call,
    bulk: boolean,
  ): Promise<string> {
    return new Promise((resolve, reject) => {
      const call = build({ resolve, reject, deadline: performance.now() + this.timeoutMs, settled: false });
      if (this.#closed) return reject(this.#unavailable(call, false));
      if (this.#bytes + call.bytes > MAX_WAITING_BYTES) {
        const waiting = `${Math.round(this.#bytes / 1024)} KiB wait to be sent to queue "${this.store.queue}"`;
        return reject(new BackPressureError(`${waiting}, which is the most one process may hold. Retry later.`));
      }
      this.#bytes += call.bytes;
      (bulk ? this.#bulk : this.#waiting).push(call);
      this.#deadlines ??= setInterval(() => this.#checkDeadlines(), Math.max(10, this.timeoutMs / DEADLINE_CHECKS));
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#dispatch();
    });
  }

  #dispatch(): void {
    if (!this.store.connection.isReady) {
      // Nothing is put on a lane while offline, so that a deadline can still say "not accepted" for sure.
      if (this.#waiting.length + this.#bulk.length > 0 && !this.#offline && !this.#closed) {
        this.#offline = true;
        const again = () => {
          this.#offline = false;
          this.#schedule();
        };
        this.store.connection.whenReady(this.timeoutMs).then(again, () => {
          this.#checkDeadlines();
          setTimeout(again, 100).unref();
        });
      }
      return;
    }
    for (const lane of this.#lanes) {
      if (lane.busy) continue;
      const calls = this.#next(this.#waiting) ?? this.#next(this.#bulk);
      if (!calls) return;
      void this.#send(lane, calls);
    }
  }

  /** The next script call: one script of its own, or as many jobs as fit. */
  #next(queue: Call[]): Call[] | undefined {
    let bytes = 0;
    let count = 0;
    for (const call of queue) {
      if (call.script ? count > 0 : count === MAX_IDS || (count > 0 && bytes + call.bytes > MAX_BYTES)) break;
      bytes += call.bytes;
      count++;
      if (call.script) break;
    }
    return count === 0 ? undefined : queue.splice(0, count);
  }

  async #send(lane: Lane, calls: Call[]): Promise<void> {
    const flight: Flight = { calls, sent: false, inDoubt: false };
    this.#flights.add(flight);
    const [first] = calls;
    const { confirmation } = this;
    const args: (string | number)[] = [0];
    if (first!.script) args.push(...first!.args!);
    else for (const { item } of calls) args.push(item!.id, item!.spec, item!.rest);
    try {
      const answer = (await lane.call(
        first!.script ?? 'enqueue',
        args,
        0,
        // Resending for ever would outlive the memory of the lane (10 minutes), and then make a second job.
        () => this.#closed || calls.every((call) => call.settled),
        (error) => isFull(error) || !isTransient(error),
        () => {
          flight.sent = true;
          flight.link = confirmation?.link();
        },
        (error) => {
          flight.lastError = error;
          flight.inDoubt ||= error instanceof NoAnswerError;
          if (this.store.connection.isInterrupted) this.#checkDeadlines();
        },
        confirmation && (async () => void (flight.reached = await confirmation.wait(flight.link!))),
      )) as string;
      if (first!.script) this.#give(first!, answer);
      else this.#share(calls, answer, flight.reached);
    } catch (error) {
      const what = `${first!.script ?? 'enqueue'} of queue "${this.store.queue}"`;
      const failure = typedError(error, what);
      flight.lastError ??= error;
      for (const call of calls) {
        const unsure = failure instanceof UnavailableError || flight.inDoubt;
        this.#give(call, unsure ? this.#unavailable(call, flight.sent, flight.lastError) : failure);
      }
    }
    this.#flights.delete(flight);
    if (this.#flights.size + this.#waiting.length + this.#bulk.length === 0) {
      clearInterval(this.#deadlines);
      this.#deadlines = undefined;
    } else if (this.#waiting.length + this.#bulk.length > 0) {
      this.#schedule();
    }
  }

  #share(calls: Call[], answer: string, reached: number | undefined): void {
    const words = answer.split(' ');
    for (let i = 0; i < calls.length; i++) {
      const at = 1 + i * 3;
      const own = `${words[0]} ${words[at]} ${words[at + 1]} ${words[at + 2]}`;
      this.#give(calls[i]!, reached === undefined ? own : `${own} ${reached}`);
    }
  }

  #give(call: Call, result: string | Error): void {
    if (call.settled) return;
    call.settled = true;
    this.#bytes -= call.bytes;
    if (typeof result === 'string') call.resolve(result);
    else call.reject(result);
  }

  #checkDeadlines(): void {
    const now = performance.now();
    const { isInterrupted } = this.store.connection;
    const expired = (call: Call) => call.settled || isInterrupted || now >= call.deadline;
    for (const name of ['waiting', 'bulk'] as const) {
      const queue = name === 'waiting' ? this.#waiting : this.#bulk;
      if (!queue.some(expired)) continue;
      for (const call of queue) if (expired(call)) this.#give(call, this.#unavailable(call, false));
      const rest = queue.filter((call) => !call.settled);
      if (name === 'waiting') this.#waiting = rest;
      else this.#bulk = rest;
    }
    // What is on a lane may yet be sent, for the sake of calls that travel with it: "not sent" could become a lie.
    for (const { calls, lastError } of this.#flights) {
      for (const call of calls) if (expired(call)) this.#give(call, this.#unavailable(call, true, lastError));
    }
    if (this.#flights.size + this.#waiting.length + this.#bulk.length === 0) {
      clearInterval(this.#deadlines);
      this.#deadlines = undefined;
    }
  }

  #unavailable(call: Call, sent: boolean, cause?: unknown): UnavailableError {
    const refused =
      cause !== undefined && isRefusal(cause) ? `refused all writes (${replyCode(cause)})` : 'did not answer';
    const what =
      cause !== undefined && isMoving(cause)
        ? MOVING
        : `Redis at ${this.store.connection.address} ${refused} for ${this.timeoutMs} ms`;
    const verb = call.script ?? 'enqueue';
    const consequence = sent
      ? `${verb} of "${call.id}" may have taken effect; repeating it with this id is safe.`
      : `${verb} of "${call.id}" was not sent.`;
    const message = `${what} (queue "${this.store.queue}"): ${consequence}`;
    return new UnavailableError(message, { cause, maybeAccepted: sent, ids: [call.id] });
  }
}
