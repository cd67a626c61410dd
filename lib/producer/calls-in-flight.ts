import { UnavailableError } from '../delay-queue.errors.js';
import type { AnyScriptName } from '../lua/scripts.js';
import { enqueueArgs, enqueueReplies, SEQUENCE_AT } from '../redis/enqueue.protocol.js';
import type { EnqueueItem, EnqueueReply } from '../redis/enqueue.protocol.js';
import { isFull, isTransient, NoAnswerError, typedError } from '../redis/redis.errors.js';
import type { Link } from '../redis/replication-barrier.js';
import type { Session, SessionCall } from '../redis/session.js';
import type { ShardStore } from '../redis/shard-store.js';
import { performance } from '../time-and-randomness.js';
import { CallShares } from './call-shares.js';
import type { Call, JobCall, JobsCall } from './call.js';
import { DoubtfulJobs, REPEAT_MS } from './doubtful-jobs.js';
import type { Doubt, PayloadReader } from './doubtful-jobs.js';
import type { PendingCalls } from './pending-calls.js';

/** What must be known of a call before it counts as answered. */
export interface Confirmation {
  /** Where it is just being sent. */
  link(): Link;
  /** @throws what makes the call be sent again */
  wait(link: Link): Promise<number>;
}

/** One script call, with the calls that travel in it. */
export interface Flight {
  readonly session: Session;
  script: AnyScriptName;
  readonly args: (string | number)[];
  calls: readonly Call[];
  /** Calls that want to know what became of a job of this one. */
  repeats: Repeat[];
  /**
   * Of its jobs, once that is known: kept where a repeat may ask for it. A job without a reply was not stored by this call, and
   * never will be.
   */
  replies: readonly EnqueueReply[] | undefined;
  /** Monotonic ms: not asked for later, because its session may have been forgotten by then. */
  readonly closesAt: number;
  sent: boolean;
  /** A try of it ended without an answer: whatever comes later, it may have taken effect. */
  inDoubt: boolean;
  link?: Link;
  /** The answer of the confirmation. */
  reached?: number;
  lastError?: unknown;
}

interface Repeat {
  readonly place: number;
  readonly call: JobCall;
}

/** How the calls in flight report to the batcher. */
export interface FlightListener {
  /** A script call has ended, and its session is free. */
  landed(): void;
  /** The test kit has cut the connection: no call waits for its deadline. */
  interrupted(): void;
}

/** Half of what Redis remembers a session for (SESSION_PX). */
const OPEN_MS = 300_000;
const SESSIONS = 4;
/** By then a repeat is too late, and Redis has forgotten the session. */
const RETIRED_MS = REPEAT_MS + 600_000;

/**
 * The script calls of one process to one shard that are on their way, at most one on each session. A call that got no
 * answer in time is in doubt: its session goes on until it is answered, because its sequence number is open. A repeat
 * of one of its jobs asks under that number what became of it.
 */
export class CallsInFlight {
  readonly shares = new CallShares();
  readonly #sessions: Session[];
  /** Sessions that wait for repeats of calls in doubt, since when (monotonic ms). Others have taken their places. */
  readonly #retired = new Map<Session, number>();
  readonly #flights = new Set<Flight>();
  readonly #doubts: DoubtfulJobs<Flight>;

  constructor(
    private readonly store: ShardStore,
    private readonly pending: PendingCalls,
    private readonly listener: FlightListener,
    payloads: PayloadReader,
    private readonly confirmation?: Confirmation,
  ) {
    this.#doubts = new DoubtfulJobs(payloads);
    this.#sessions = Array.from({ length: SESSIONS }, () => store.session());
  }

  get size(): number {
    return this.#flights.size;
  }

  /** Nothing is on its way, and no call is in doubt whose repeat would need its session. */
  get isIdle(): boolean {
    return this.#flights.size === 0 && this.#doubts.isEmpty && this.#sessions.every((session) => session.isSettled);
  }

  /** Sessions on which a call can be sent now. */
  get freeSessions(): readonly Session[] {
    return this.#sessions.filter(({ busy }) => !busy);
  }

  /** All, those that are used no more included. */
  get sessions(): readonly Session[] {
    return [...this.#sessions, ...this.#retired.keys()];
  }

  get hasDoubts(): boolean {
    return !this.#doubts.isEmpty;
  }

  /** @returns the job in doubt that a call of this item repeats */
  takeDoubt(item: EnqueueItem): Doubt<Flight> | undefined {
    return this.#doubts.isEmpty ? undefined : this.#doubts.take(item);
  }

  /** The call that took it was refused: the next one is its repeat. */
  leaveDoubt(doubt: Doubt<Flight>): void {
    this.#doubts.add(doubt);
  }

  /** The next enqueue under this id, or under any, is a new job, even if one in doubt has the id. */
  forget(id?: string): void {
    if (id === undefined) this.#doubts.forgetAll();
    else this.#doubts.forget(id);
  }

  /** Gives up all that is on its way. */
  close(): void {
    for (const flight of this.#flights) this.#failInDoubt(flight, () => true);
    this.#doubts.clear();
  }

  /** A call on a session may still be sent together with others, so "not sent" might not stay true. */
  failExpired(expired: (call: Call) => boolean): void {
    for (const flight of this.#flights) this.#failInDoubt(flight, expired);
  }

  /** Waits for the answer of the call that a job in doubt was in. It is asked for, unless the call is still on its way. */
  repeat(flight: Flight, place: number, call: JobCall): void {
    flight.repeats.push({ place, call });
    if (!this.#flights.has(flight)) void this.#ask(flight);
  }

  async send(session: Session, calls: Call[]): Promise<void> {
    const { pending } = this;
    const first = calls[0]!;
    const items = first.items && (calls as JobsCall[]).flatMap((call) => call.items);
    const flight: Flight = {
      session,
      script: items?.some(({ place }) => place !== undefined) ? 'place' : first.script,
      args: first.items ? enqueueArgs(items!) : [0, ...first.args],
      calls,
      repeats: [],
      replies: undefined,
      closesAt: performance.now() + OPEN_MS,
      sent: false,
      inDoubt: false,
    };
    this.#flights.add(flight);
    try {
      // Redis remembers a session for 10 minutes. A call that is resent after that would make a second job.
      const isOver = () => calls.every((call) => call.settled);
      const answer = (await session.call(this.#attempt(flight, isOver))) as string;
      pending.answered();
      this.shares.answered(performance.now() + OPEN_MS - flight.closesAt, calls.length);
      if (first.items) this.#share(flight, answer);
      else pending.settle(first)?.resolve(answer);
    } catch (error) {
      const failure = typedError(error, `${first.call ?? first.script} of queue "${this.store.queue}"`);
      flight.lastError ??= error;
      if (!(failure instanceof UnavailableError || flight.inDoubt))
        for (const call of calls) pending.fail(call, () => failure);
      else if (flight.sent) this.#failInDoubt(flight, isCallOf(flight));
      else for (const call of calls) pending.failUnsent(call, flight.lastError);
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
      before: flight.calls[0]?.before,
      giveUp: () => this.pending.isClosed || isOver(),
      isFinal: (error) => isFull(error) || !isTransient(error),
      onSent: () => {
        flight.sent = true;
        flight.link = confirmation?.link();
      },
      onDoubt: (error) => {
        flight.lastError = error;
        flight.inDoubt ||= error instanceof NoAnswerError;
        if (this.store.connection.isInterrupted) this.listener.interrupted();
      },
      confirm: confirmation && (async () => void (flight.reached = await confirmation.wait(flight.link))),
    };
  }

  #landed(flight: Flight): void {
    this.#flights.delete(flight);
    if (flight.replies === undefined && flight.repeats.length > 0) void this.#ask(flight);
    this.listener.landed();
  }

  /** A repeat of one of its jobs may ask under its number, so other calls get a session of their own. */
  #leaveOpen(flight: Flight): void {
    const at = this.#sessions.indexOf(flight.session);
    if (at >= 0 && (this.#doubts.isIn(flight) || flight.repeats.length > 0)) {
      this.#sessions[at] = this.store.session();
      this.#retire(flight.session);
    }
    keepOnlyNumber(flight);
  }

  #retire(session: Session): void {
    const now = performance.now();
    for (const [old, since] of this.#retired) if (since < now - RETIRED_MS) this.#retired.delete(old);
    this.#retired.set(session, now);
  }

  /**
   * Sends a call that was given up once more, under its number but without its jobs. If the call took effect, the
   * script answers as it did then. If it did not, it never will, because the number is used up: its jobs count as never
   * sent.
   */
  async #ask(flight: Flight): Promise<void> {
    this.#flights.add(flight);
    try {
      const isOver = () => flight.repeats.every(({ call }) => call.settled);
      this.#answer(flight, (await flight.session.again(this.#attempt(flight, isOver))) as string);
    } catch (error) {
      flight.lastError ??= error;
      const { isInterrupted } = this.store.connection;
      const goesOn = isTransient(error) && !isFull(error) && !this.pending.isOver && !isInterrupted;
      const now = performance.now();
      // Sent once more for repeats that came when the tries had just ended.
      this.#failInDoubt(flight, (call) => !goesOn || now >= call.deadline);
    }
    this.#landed(flight);
  }

  /**
   * Gives the repeats the result of a call that was given up. If that call never took effect, the repeats are new
   * calls.
   */
  #answer(flight: Flight, answer: string): void {
    const { repeats } = flight;
    flight.repeats = [];
    const next = this.#read(flight, answer);
    const replies: EnqueueReply[] = [];
    for (let one = next(); one; one = next()) replies.push(one);
    flight.replies = replies;
    for (const { place, call } of repeats) {
      const reply = replies[place];
      if (reply) this.pending.settle(call)?.resolve([reply]);
      else if (!call.settled) this.pending.push(call, false);
    }
  }

  /** Gives each call the results of its jobs. */
  #share(flight: Flight, answer: string): void {
    const next = this.#read(flight, answer);
    const calls = flight.calls as readonly JobsCall[];
    // A settled call has ended in doubt, so its jobs may be repeated.
    const all: EnqueueReply[] | undefined = calls.some(({ settled }) => settled) ? [] : undefined;
    for (const call of calls) {
      const own = call.items.map(() => next()!);
      all?.push(...own);
      this.pending.settle(call)?.resolve(own);
    }
    flight.replies = all;
    for (const { place, call } of flight.repeats) this.pending.settle(call)?.resolve([all![place]!]);
    flight.repeats = [];
    keepOnlyNumber(flight);
  }

  /** @returns a function that returns the replies, one job after the other */
  #read(flight: Flight, answer: string): () => EnqueueReply | undefined {
    this.store.heard(answer);
    return enqueueReplies(answer, flight.reached);
  }

  /** Fails calls that were sent, or may have been. Their jobs are remembered, because callers may repeat them. */
  #failInDoubt(flight: Flight, which: (call: Call) => boolean): void {
    const fail = (call: Call, place: number) => {
      if (call.settled || !which(call)) return;
      this.pending.failInDoubt(call, flight.lastError);
      const until = Math.min(performance.now() + REPEAT_MS, flight.closesAt);
      if (this.pending.isClosed || !call.items) return;
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
}

/**
 * Of a call that has ended: its number is all that a repeat needs. It is asked for by the script that every queue takes: `place` without
 * jobs is refused where the call never came and no other job has a group.
 */
function keepOnlyNumber(flight: Flight): void {
  flight.script = 'enqueue';
  flight.calls = [];
  flight.args.length = 1;
}

function isCallOf({ calls }: Flight): (call: Call) => boolean {
  return (call) => calls.includes(call);
}
