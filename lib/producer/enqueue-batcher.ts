import { BackPressureError, ClosedError, UnavailableError } from '../delay-queue.errors.js';
import type { ScriptName } from '../lua/scripts.js';
import type { Link } from '../redis/replication-barrier.js';
import type { Session, SessionCall } from '../redis/session.js';
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
import type { ShardStore } from '../redis/shard-store.js';
import { DoubtfulJobs, REPEAT_MS } from './doubtful-jobs.js';
import type { Doubt } from './doubtful-jobs.js';
import { bytesOf, enqueueArgs, enqueueReplies, MAX_BYTES, MAX_JOBS, SEQUENCE_AT } from '../redis/enqueue.protocol.js';
import type { EnqueueItem, EnqueueReply } from '../redis/enqueue.protocol.js';
import { clearInterval, performance, setImmediate, setInterval, setTimeout } from '../time-and-randomness.js';

/** What must be known of a call before it counts as answered. */
export interface Confirmation {
  /** Where it is just being sent. */
  link(): Link;
  /** @throws what makes the call be sent again */
  wait(link: Link): Promise<number>;
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
  resolve(replies: EnqueueReply[]): void;
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
    private readonly tell: (reply: EnqueueReply) => void,
    private readonly fail: (error: Error) => void,
  ) {
    this.items = [item];
    this.bytes = bytesOf(item);
  }

  resolve(replies: EnqueueReply[]): void {
    this.tell(replies[0]!);
  }

  reject(failure: Failure): void {
    this.fail(failure(this.items[0].id));
  }
}

interface Flight {
  readonly session: Session;
  readonly script: ScriptName;
  readonly args: (string | number)[];
  calls: readonly Call[];
  /** Calls that want to know what became of a job of this one. */
  repeats: Repeat[];
  /** Of each of its jobs, once that is known: kept where a repeat may ask for it. Null: it never took effect, and never will. */
  replies: EnqueueReply[] | null | undefined;
  /** Monotonic ms: not asked for later, because its session may have been forgotten by then. */
  readonly closesAt: number;
  sent: boolean;
  /** A try of it ended without an answer: whatever comes later, it may have taken effect. */
  inDoubt: boolean;
  link?: Link;
  /** What the confirmation gave. */
  reached?: number;
  lastError?: unknown;
}

interface Repeat {
  readonly place: number;
  readonly call: JobCall;
}

/** Half of what Redis remembers a session for (LANE_PX). */
const OPEN_MS = 300_000;
const LANES = 4;
/** From so many calls on they go as two, when none is on its way: so Redis and this process do not wait for each other. */
const WORTH_HALVING = 16;
/** What a call that stores no job holds, about. */
const SCRIPT_BYTES = 64;
/** What one shard's unanswered calls may hold in memory. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
const DEADLINE_CHECKS = 20;
/** By then a repeat is too late, and Redis has forgotten the session. */
const RETIRED_MS = REPEAT_MS + 600_000;

/**
 * The calls of one process to one shard, in order: those of one turn of the event loop go in few script calls, of which
 * at most four are on their way. A deadline that passes before sending means "not accepted"; afterwards "maybe", and the session goes
 * on until it is answered, because its sequence number is open.
 */
export class EnqueueBatcher {
  readonly #sessions: Session[];
  /** Sessions that wait for repeats of calls in doubt, and since when (monotonic ms): others have taken their places. */
  readonly #retired = new Map<Session, number>();
  #waiting: Call[] = [];
  /** Bulk calls give way to single ones after each chunk. */
  #bulk: Call[] = [];
  readonly #flights = new Set<Flight>();
  readonly #doubts = new DoubtfulJobs<Flight>();
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
    this.#sessions = Array.from({ length: LANES }, () => store.session());
  }

  /** Nothing is to be sent or answered, and no call is in doubt whose repeat would need its session. */
  get isIdle(): boolean {
    const calls = this.#flights.size + this.#waiting.length + this.#bulk.length;
    return (
      calls === 0 &&
      this.#doubts.isEmpty &&
      !this.#offline &&
      !this.#scheduled &&
      this.#sessions.every((session) => session.isSettled)
    );
  }

  /**
   * A repeat of a job in doubt gets the answer of the call that it was in.
   *
   * @throws UnavailableError, BackPressureError, or what the server's refusal means
   */
  enqueue(item: EnqueueItem): Promise<EnqueueReply> {
    const doubt = this.#doubts.isEmpty ? undefined : this.#doubts.take(item);
    return doubt ? this.#repeat(doubt, item) : this.#enqueue(item);
  }

  #enqueue(item: EnqueueItem): Promise<EnqueueReply> {
    return new Promise((resolve, reject) => {
      this.#add(this.#waiting, new JobCall(item, this.#deadline, resolve, reject));
    });
  }

  /**
   * @param items so many and so large that one script call takes them
   * @returns for each of them what the script said, or why it said nothing
   */
  enqueueMany(items: readonly EnqueueItem[]): Promise<(EnqueueReply | Error)[]> {
    if (this.#doubts.isEmpty) return this.#enqueueMany(items);
    const doubts = items.map((item) => this.#doubts.take(item));
    return doubts.some((doubt) => doubt) ? this.#repeatMany(items, doubts) : this.#enqueueMany(items);
  }

  async #repeatMany(
    items: readonly EnqueueItem[],
    doubts: readonly (Doubt<Flight> | undefined)[],
  ): Promise<(EnqueueReply | Error)[]> {
    const fresh = items.filter((_, n) => !doubts[n]);
    const sent = fresh.length > 0 ? this.#enqueueMany(fresh) : Promise.resolve([]);
    const repeats = items.flatMap((item, n) => {
      const doubt = doubts[n];
      return doubt ? [this.#repeat(doubt, item).catch((error: Error) => error)] : [];
    });
    const repeated = (await Promise.all(repeats)).values();
    const others = (await sent).values();
    return doubts.map((doubt) => (doubt ? repeated : others).next().value!);
  }

  #enqueueMany(items: readonly EnqueueItem[]): Promise<(EnqueueReply | Error)[]> {
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

  /** What is enqueued under this id from now on is a new job, whatever became of one in doubt. */
  forget(id: string): void {
    this.#doubts.forget(id);
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
    this.#refuseWaiting();
    for (const flight of this.#flights) this.#failInDoubt(flight, () => true);
    this.#doubts.clear();
  }

  #refuseWaiting(): void {
    for (const call of [...this.#waiting, ...this.#bulk]) this.#fail(call, this.#unavailable(call, false));
    this.#waiting = [];
    this.#bulk = [];
    if (this.#flights.size > 0) return;
    clearInterval(this.#deadlines);
    this.#deadlines = undefined;
  }

  /** Sessions of this queue, for whoever cleans up. */
  get sessions(): readonly Session[] {
    return [...this.#sessions, ...this.#retired.keys()];
  }

  /** Nothing will ever be sent again. */
  get #isOver(): boolean {
    return this.#closed || this.store.connection.isClosed;
  }

  /** Of a call that is made now; monotonic ms. */
  get #deadline(): number {
    return performance.now() + this.timeoutMs;
  }

  /** Waits for the answer of the call that the job was in; that is asked for unless the call is still on its way. */
  #repeat({ flight, place }: Doubt<Flight>, item: EnqueueItem): Promise<EnqueueReply> {
    if (flight.replies) return Promise.resolve(flight.replies[place]!);
    if (flight.replies === null) return this.#enqueue(item);
    return new Promise((resolve, reject) => {
      const call = new JobCall(item, this.#deadline, resolve, reject);
      if (!this.#admit(call)) return;
      flight.repeats.push({ place, call });
      if (!this.#flights.has(flight)) void this.#ask(flight);
    });
  }

  #add(queue: Call[], call: Call): void {
    if (!this.#admit(call)) return;
    queue.push(call);
    this.#schedule();
  }

  /** @returns false when it was refused */
  #admit(call: Call): boolean {
    if (this.#isOver) {
      call.reject(this.#unavailable(call, false));
      return false;
    }
    if (this.#bytes + call.bytes > MAX_WAITING_BYTES) {
      const waiting = `${Math.round(this.#bytes / 1024)} KiB wait to be sent to queue "${this.store.queue}"`;
      call.reject(() => new BackPressureError(`${waiting}, which is the most one process may hold. Retry later.`));
      return false;
    }
    this.#bytes += call.bytes;
    this.#deadlines ??= setInterval(() => this.#checkDeadlines(), Math.max(10, this.timeoutMs / DEADLINE_CHECKS));
    return true;
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
    if (this.#isOver) return this.#refuseWaiting();
    if (!this.store.connection.isReady) {
      // Nothing is put on a session while offline, so that a deadline can still say "not accepted" for sure.
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
    for (const session of this.#sessions) {
      if (session.busy) continue;
      const half = halves && this.#flights.size === 0 ? Math.ceil(this.#waiting.length / 2) : MAX_JOBS;
      const calls = this.#next(this.#waiting, Math.min(half, MAX_JOBS)) ?? this.#next(this.#bulk, MAX_JOBS);
      if (!calls) return;
      void this.#send(session, calls);
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

  async #send(session: Session, calls: Call[]): Promise<void> {
    const first = calls[0]!;
    const flight: Flight = {
      session,
      script: first.script,
      args: first.items ? enqueueArgs((calls as JobsCall[]).flatMap(({ items }) => items)) : [0, ...first.args],
      calls,
      repeats: [],
      replies: undefined,
      closesAt: performance.now() + OPEN_MS,
      sent: false,
      inDoubt: false,
    };
    this.#flights.add(flight);
    try {
      // Resending for ever would outlive the memory of the session (10 minutes), and then make a second job.
      const isOver = () => calls.every((call) => call.settled);
      const answer = (await session.call(this.#attempt(flight, isOver))) as string;
      if (first.items) this.#share(flight, answer);
      else this.#settle(first)?.resolve(answer);
    } catch (error) {
      const failure = typedError(error, `${first.script} of queue "${this.store.queue}"`);
      flight.lastError ??= error;
      if (!(failure instanceof UnavailableError || flight.inDoubt))
        for (const call of calls) this.#fail(call, () => failure);
      else if (flight.sent) this.#failInDoubt(flight, isCallOf(flight));
      else for (const call of calls) this.#fail(call, this.#unavailable(call, false, flight.lastError));
      this.#leaveOpen(flight);
    }
    this.#landed(flight);
  }

  /** The call of a flight, tried until `isOver`. */
  #attempt(flight: Flight, isOver: () => boolean): SessionCall {
    const { confirmation } = this;
    return {
      script: flight.script,
      args: flight.args,
      sequenceAt: SEQUENCE_AT,
      giveUp: () => this.#closed || isOver(),
      isFinal: (error) => isFull(error) || !isTransient(error),
      onSent: () => {
        flight.sent = true;
        flight.link = confirmation?.link();
      },
      onDoubt: (error) => {
        flight.lastError = error;
        flight.inDoubt ||= error instanceof NoAnswerError;
        if (this.store.connection.isInterrupted) this.#checkDeadlines();
      },
      confirm: confirmation && (async () => void (flight.reached = await confirmation.wait(flight.link))),
    };
  }

  #landed(flight: Flight): void {
    this.#flights.delete(flight);
    if (flight.replies === undefined && flight.repeats.length > 0) void this.#ask(flight);
    if (this.#flights.size + this.#waiting.length + this.#bulk.length === 0) {
      clearInterval(this.#deadlines);
      this.#deadlines = undefined;
    } else if (this.#waiting.length + this.#bulk.length > 0) {
      this.#schedule();
    }
  }

  /** Whoever repeats one of its jobs may ask under its number, so other calls get a session of their own. */
  #leaveOpen(flight: Flight): void {
    const at = this.#sessions.indexOf(flight.session);
    if (at >= 0 && (this.#doubts.isIn(flight) || flight.repeats.length > 0)) {
      this.#sessions[at] = this.store.session();
      this.#retire(flight.session);
    }
    // Its number is all that is still needed.
    flight.calls = [];
    flight.args.length = 1;
  }

  #retire(session: Session): void {
    const now = performance.now();
    for (const [old, since] of this.#retired) if (since < now - RETIRED_MS) this.#retired.delete(old);
    this.#retired.set(session, now);
  }

  /**
   * Sends a call that was given up once more, under its number but without its jobs. Where it took effect, the script answers what
   * it answered then. Where it did not, it never will: the number is used up, and so its jobs are as good as never sent.
   */
  async #ask(flight: Flight): Promise<void> {
    this.#flights.add(flight);
    try {
      const isOver = () => flight.repeats.every(({ call }) => call.settled);
      this.#answer(flight, (await flight.session.again(this.#attempt(flight, isOver))) as string);
    } catch (error) {
      flight.lastError ??= error;
      const { isClosed, isInterrupted } = this.store.connection;
      const goesOn = isTransient(error) && !isFull(error) && !this.#closed && !isClosed && !isInterrupted;
      const now = performance.now();
      // Whoever came when the trying had just ended is asked for once more.
      this.#failInDoubt(flight, (call) => !goesOn || now >= call.deadline);
    }
    this.#landed(flight);
  }

  #answer(flight: Flight, answer: string): void {
    const { repeats } = flight;
    flight.repeats = [];
    this.store.heard(answer);
    const next = enqueueReplies(answer, flight.reached);
    const told: EnqueueReply[] = [];
    for (let one = next(); one; one = next()) told.push(one);
    flight.replies = repeats.every(({ place }) => place < told.length) ? told : null;
    for (const { place, call } of repeats) {
      if (flight.replies) this.#settle(call)?.resolve([flight.replies[place]!]);
      else if (!call.settled) this.#waiting.push(call);
    }
  }

  #share(flight: Flight, answer: string): void {
    this.store.heard(answer);
    const next = enqueueReplies(answer, flight.reached);
    const calls = flight.calls as readonly JobsCall[];
    // In doubt by now, so that somebody may repeat it.
    const all: EnqueueReply[] | undefined = calls.some(({ settled }) => settled) ? [] : undefined;
    for (const call of calls) {
      const own = call.items.map(() => next()!);
      all?.push(...own);
      this.#settle(call)?.resolve(own);
    }
    flight.replies = all;
    for (const { place, call } of flight.repeats) this.#settle(call)?.resolve([all![place]!]);
    flight.repeats = [];
    flight.calls = [];
    flight.args.length = 1;
  }

  /** Calls that were sent, or may be: their jobs are remembered for those who repeat them. */
  #failInDoubt(flight: Flight, which: (call: Call) => boolean): void {
    const fail = (call: Call, place: number) => {
      if (call.settled || !which(call)) return;
      this.#fail(call, this.#unavailable(call, true, flight.lastError));
      const until = Math.min(performance.now() + REPEAT_MS, flight.closesAt);
      if (this.#closed || !call.items) return;
      for (const [n, item] of call.items.entries()) this.#doubts.add({ item, flight, place: place + n, until });
    };
    let place = 0;
    for (const call of flight.calls) {
      fail(call, place);
      place += call.items?.length ?? 0;
    }
    for (const repeat of flight.repeats) fail(repeat.call, repeat.place);
    flight.repeats = flight.repeats.filter(({ call }) => !call.settled);
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
    // What is on a session may yet be sent, for the sake of calls that travel with it: "not sent" could become a lie.
    for (const flight of this.#flights) this.#failInDoubt(flight, expired);
    if (this.#flights.size + this.#waiting.length + this.#bulk.length === 0) {
      clearInterval(this.#deadlines);
      this.#deadlines = undefined;
    }
  }

  #unavailable({ script, items }: Call, sent: boolean, cause?: unknown): Failure {
    const over = this.#isOver;
    if (over && !sent)
      return (id) =>
        new ClosedError(`The application was closed: ${script} of "${id}" (queue "${this.store.queue}") was not sent.`);
    const refused =
      cause !== undefined && isRefusal(cause) ? `refused all writes (${replyCode(cause)})` : 'did not answer';
    const { address, refusal } = this.store.connection;
    const silent = over
      ? `The application was closed before Redis at ${address} answered`
      : (refusal?.message ?? `Redis at ${address} ${refused} for ${this.timeoutMs} ms`);
    const what = cause !== undefined && isMoving(cause) ? MOVING : silent;
    return (id) => {
      const consequence = sent
        ? `${script} of "${id}" may have taken effect. ${adviceFor(items?.find((item) => item.id === id)?.spec)}`
        : `${script} of "${id}" was not sent.`;
      const message = `${what} (queue "${this.store.queue}"): ${consequence}`;
      return new UnavailableError(message, { cause, maybeAccepted: sent, ids: [id] });
    };
  }
}

function isCallOf({ calls }: Flight): (call: Call) => boolean {
  return (call) => calls.includes(call);
}

/** What to do about a call in doubt; `spec` is that of an enqueue. */
function adviceFor(spec: string | undefined): string {
  if (spec === undefined) return 'Repeat it to know, unless another job may have got this id meanwhile.';
  if (/^[pur]/.test(spec)) return 'Repeated with this id it makes one more run if the job has started by then.';
  return (
    `Repeat it with this id: in this process that gets the answer of this call for ${REPEAT_MS / 1000} s; later, or elsewhere, it makes ` +
    'a second job if the first has ended by then, unless both say `uniqueFor`.'
  );
}
