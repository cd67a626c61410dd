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

/** What lib/lua/enqueue.lua says of a job, in its letters. Jobs in a row of which it says the same share it. */
export interface Told {
  /** Server time of the call, epoch ms. */
  readonly now: number;
  readonly outcome: string;
  readonly state: string;
  readonly dueAt: number;
  /** What the confirmation gave. */
  readonly reached: number | undefined;
}

/** Why there is no answer, in words for one id. */
type Failure = (id: string) => Error;

interface Unanswered {
  readonly script: ScriptName;
  readonly bytes: number;
  /** Monotonic ms. */
  readonly deadline: number;
  settled: boolean;
  reject(failure: Failure): void;
}

/** Of the script `enqueue`; travels with others of its kind. */
interface JobsCall extends Unanswered {
  readonly items: readonly EnqueueItem[];
  resolve(told: Told[]): void;
}

/** Of any other script, one at a time. */
interface ScriptCall extends Unanswered {
  readonly items?: undefined;
  readonly args: readonly (string | number)[];
  resolve(answer: string): void;
}

type Call = JobsCall | ScriptCall;

/** Of one job, as most are: a class, because two functions more for each would be felt. */
class JobCall implements JobsCall {
  readonly script = 'enqueue';
  readonly items: readonly [EnqueueItem];
  readonly bytes: number;
  settled = false;

  constructor(
    item: EnqueueItem,
    readonly deadline: number,
    private readonly tell: (told: Told) => void,
    private readonly fail: (error: Error) => void,
  ) {
    this.items = [item];
    this.bytes = bytesOf(item);
  }

  resolve(told: Told[]): void {
    this.tell(told[0]!);
  }

  reject(failure: Failure): void {
    this.fail(failure(this.items[0].id));
  }
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
export const MAX_JOBS = 200;
export const MAX_BYTES = 1024 * 1024;
/** From so many calls on they go as two, when none is on its way: so Redis and this process do not wait for each other. */
const WORTH_HALVING = 16;
/** What a call that stores no job holds, about. */
const SCRIPT_BYTES = 64;
/** What one shard's unanswered calls may hold in memory. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
const DEADLINE_CHECKS = 20;

/**
 * The calls of one process to one shard, in order: those of one turn of the event loop go in few script calls, of which
 * at most four are on their way. A deadline that passes before sending means "not accepted"; afterwards "maybe", and the lane goes
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

  /** Nothing is to be sent or answered, and no call is in doubt whose repeat would need its session. */
  get isIdle(): boolean {
    const calls = this.#flights.size + this.#waiting.length + this.#bulk.length;
    return calls === 0 && !this.#offline && !this.#scheduled && this.#lanes.every((lane) => lane.isSettled);
  }

  /** @throws UnavailableError, BackPressureError, or what the server's refusal means */
  enqueue(item: EnqueueItem): Promise<Told> {
    return new Promise((resolve, reject) => {
      this.#add(this.#waiting, new JobCall(item, this.#deadline, resolve, reject));
    });
  }

  /**
   * @param items so many and so large that one script call takes them
   * @returns for each of them what the script said, or why it said nothing
   */
  enqueueMany(items: readonly EnqueueItem[]): Promise<(Told | Error)[]> {
    return new Promise((resolve) => {
      const bytes = items.reduce((sum, item) => sum + bytesOf(item), 0);
      const reject = (failure: Failure) => resolve(items.map(({ id }) => failure(id)));
      this.#add(this.#bulk, {
        script: 'enqueue',
        items,
        bytes,
        deadline: this.#deadline,
        settled: false,
        resolve,
        reject,
      });
    });
  }

  /** @returns the whole answer of the script */
  run(
    script: ScriptName,
    id: string,
    args: readonly (string | number)[],
    bytes: number = SCRIPT_BYTES,
  ): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#add(this.#waiting, {
        script,
        args,
        bytes,
        deadline: this.#deadline,
        settled: false,
        resolve,
        reject: (failure) => reject(failure(id)),
      });
    });
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
    for (const call of [...this.#waiting, ...this.#bulk]) this.#fail(call, this.#unavailable(call, false));
    for (const { calls } of this.#flights) for (const call of calls) this.#fail(call, this.#unavailable(call, true));
    this.#waiting = [];
    this.#bulk = [];
  }

  /** Lanes of this queue, for whoever cleans up. */
  get lanes(): readonly Lane[] {
    return this.#lanes;
  }

  /** Of a call that is made now; monotonic ms. */
  get #deadline(): number {
    return performance.now() + this.timeoutMs;
  }

  #add(queue: Call[], call: Call): void {
    if (this.#closed) return call.reject(this.#unavailable(call, false));
    if (this.#bytes + call.bytes > MAX_WAITING_BYTES) {
      const waiting = `${Math.round(this.#bytes / 1024)} KiB wait to be sent to queue "${this.store.queue}"`;
      return call.reject(
        () => new BackPressureError(`${waiting}, which is the most one process may hold. Retry later.`),
      );
    }
    this.#bytes += call.bytes;
    queue.push(call);
    this.#deadlines ??= setInterval(() => this.#checkDeadlines(), Math.max(10, this.timeoutMs / DEADLINE_CHECKS));
    this.#schedule();
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
    // Those that wait for replicas or the disk go together: each wait holds up the connection.
    const halves = !this.confirmation && this.#waiting.length >= WORTH_HALVING;
    for (const lane of this.#lanes) {
      if (lane.busy) continue;
      const half = halves && this.#flights.size === 0 ? Math.ceil(this.#waiting.length / 2) : MAX_JOBS;
      const calls = this.#next(this.#waiting, Math.min(half, MAX_JOBS)) ?? this.#next(this.#bulk, MAX_JOBS);
      if (!calls) return;
      void this.#send(lane, calls);
    }
  }

  /** The next script call: one script of its own, or as many jobs as fit. */
  #next(queue: Call[], most: number): Call[] | undefined {
    let bytes = 0;
    let jobs = 0;
    let count = 0;
    for (const call of queue) {
      if (!call.items) {
        if (count === 0) count = 1;
        break;
      }
      bytes += call.bytes;
      jobs += call.items.length;
      if (count > 0 && (jobs > most || bytes > MAX_BYTES)) break;
      count++;
    }
    return count === 0 ? undefined : queue.splice(0, count);
  }

  async #send(lane: Lane, calls: Call[]): Promise<void> {
    const flight: Flight = { calls, sent: false, inDoubt: false };
    this.#flights.add(flight);
    const first = calls[0]!;
    const { confirmation } = this;
    const args = first.items ? argsOf(calls as JobsCall[]) : [0, ...first.args];
    try {
      const answer = (await lane.call(
        first.script,
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
        confirmation && (async () => void (flight.reached = await confirmation.wait(flight.link))),
      )) as string;
      if (first.items) this.#share(calls as JobsCall[], answer, flight.reached);
      else this.#settle(first)?.resolve(answer);
    } catch (error) {
      const failure = typedError(error, `${first.script} of queue "${this.store.queue}"`);
      flight.lastError ??= error;
      const unsure = failure instanceof UnavailableError || flight.inDoubt;
      for (const call of calls) {
        this.#fail(call, unsure ? this.#unavailable(call, flight.sent, flight.lastError) : () => failure);
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

  #share(calls: readonly JobsCall[], answer: string, reached: number | undefined): void {
    const words = answer.split(' ');
    const now = Number(words[0]);
    this.store.learnTime(now);
    let at = 1;
    let told: Told;
    let more = 0;
    const next = () => {
      if (more > 0) {
        more--;
      } else {
        told = { now, outcome: words[at]!, state: words[at + 1]!, dueAt: Number(words[at + 2]), reached };
        at += 3;
        if (words[at]?.startsWith('=')) more = Number(words[at++]!.slice(1));
      }
      return told;
    };
    for (const call of calls) {
      const own = call.items.map(next);
      this.#settle(call)?.resolve(own);
    }
  }

  #fail(call: Call, failure: Failure): void {
    this.#settle(call)?.reject(failure);
  }

  /** @returns undefined when the call has ended before */
  #settle<C extends Call>(call: C): C | undefined {
    if (call.settled) return undefined;
    call.settled = true;
    this.#bytes -= call.bytes;
    return call;
  }

  #checkDeadlines(): void {
    const now = performance.now();
    const { isInterrupted } = this.store.connection;
    const expired = (call: Call) => call.settled || isInterrupted || now >= call.deadline;
    for (const name of ['waiting', 'bulk'] as const) {
      const queue = name === 'waiting' ? this.#waiting : this.#bulk;
      if (!queue.some(expired)) continue;
      for (const call of queue) if (expired(call)) this.#fail(call, this.#unavailable(call, false));
      const rest = queue.filter((call) => !call.settled);
      if (name === 'waiting') this.#waiting = rest;
      else this.#bulk = rest;
    }
    // What is on a lane may yet be sent, for the sake of calls that travel with it: "not sent" could become a lie.
    for (const { calls, lastError } of this.#flights) {
      for (const call of calls) if (expired(call)) this.#fail(call, this.#unavailable(call, true, lastError));
    }
    if (this.#flights.size + this.#waiting.length + this.#bulk.length === 0) {
      clearInterval(this.#deadlines);
      this.#deadlines = undefined;
    }
  }

  #unavailable({ script }: Call, sent: boolean, cause?: unknown): Failure {
    const refused =
      cause !== undefined && isRefusal(cause) ? `refused all writes (${replyCode(cause)})` : 'did not answer';
    const { address, refusal } = this.store.connection;
    const silent = refusal?.message ?? `Redis at ${address} ${refused} for ${this.timeoutMs} ms`;
    const what = cause !== undefined && isMoving(cause) ? MOVING : silent;
    return (id) => {
      const consequence = sent
        ? `${script} of "${id}" may have taken effect; repeating it with this id is safe.`
        : `${script} of "${id}" was not sent.`;
      const message = `${what} (queue "${this.store.queue}"): ${consequence}`;
      return new UnavailableError(message, { cause, maybeAccepted: sent, ids: [id] });
    };
  }
}

/** Of the script `enqueue`. What is asked for again and again is said once. */
function argsOf(calls: readonly JobsCall[]): (string | number)[] {
  const args: (string | number)[] = [0];
  const items = calls.flatMap((call) => call.items);
  for (let at = 0, end = 0; at < items.length; at = end) {
    const { spec } = items[at]!;
    while (items[end]?.spec === spec) end++;
    args.push(end - at > 1 ? `${end - at}*${spec}` : spec);
    for (let n = at; n < end; n++) args.push(items[n]!.id, items[n]!.rest);
  }
  return args;
}

/** What a job adds to a script call, about. */
export function bytesOf({ id, rest }: Pick<EnqueueItem, 'id' | 'rest'>): number {
  return id.length + rest.length;
}
