import type { AnyScriptName } from '../lua/scripts.js';
import { bytesOf, MAX_JOBS } from '../redis/enqueue.protocol.js';
import type { EnqueueItem, EnqueueReply } from '../redis/enqueue.protocol.js';
import type { Session } from '../redis/session.js';
import type { ShardStore } from '../redis/shard-store.js';
import { OncePerTurn } from '../once-per-turn.js';
import { clearInterval, performance, setInterval, setTimeout } from '../time-and-randomness.js';
import { JobCall } from './call.js';
import type { Call, Failure, ScriptArgs, ScriptCallWords } from './call.js';
import { CallsInFlight } from './calls-in-flight.js';
import type { Confirmation, Flight } from './calls-in-flight.js';
import type { Doubt, PayloadReader } from './doubtful-jobs.js';
import { PendingCalls } from './pending-calls.js';

/** About how many bytes a call holds that stores no job. */
const SCRIPT_BYTES = 64;
const DEADLINE_CHECKS = 20;

/**
 * The calls of one process to one shard, in order: those of one turn of the event loop go in few script calls, of which
 * at most four are on their way. A deadline that passes before sending means "not accepted"; afterwards "maybe".
 */
export class EnqueueBatcher {
  readonly #pending: PendingCalls;
  readonly #inFlight: CallsInFlight;
  readonly #dispatchSoon = new OncePerTurn(() => this.#dispatch());
  /** The connection is waited for: once, however many calls wait. */
  #offline = false;
  #deadlines: NodeJS.Timeout | undefined;

  constructor(
    private readonly store: ShardStore,
    private readonly timeoutMs: number,
    payloads: PayloadReader,
    private readonly confirmation?: Confirmation,
  ) {
    this.#pending = new PendingCalls(store, timeoutMs);
    const listener = { landed: () => this.#landed(), interrupted: () => this.#checkDeadlines() };
    this.#inFlight = new CallsInFlight(store, this.#pending, listener, payloads, confirmation);
  }

  /** Nothing is to be sent or answered, and no call is in doubt whose repeat would need its session. */
  get isIdle(): boolean {
    return this.#pending.waiting === 0 && this.#inFlight.isIdle && !this.#offline && !this.#dispatchSoon.isScheduled;
  }

  /** Sessions of this queue, for the cleaning up. */
  get sessions(): readonly Session[] {
    return this.#inFlight.sessions;
  }

  /**
   * A repeat of a job in doubt gets the answer of the call that it was in.
   *
   * @throws UnavailableError, BackPressureError, or the error that the server's refusal stands for
   */
  enqueue(item: EnqueueItem): Promise<EnqueueReply> {
    const doubt = this.#inFlight.takeDoubt(item);
    return doubt ? this.#repeat(doubt, item) : this.#enqueue(item);
  }

  #enqueue(item: EnqueueItem): Promise<EnqueueReply> {
    return new Promise((resolve, reject) => {
      this.#add(new JobCall(item, this.#pending.deadline, resolve, reject));
    });
  }

  /**
   * @param items so many and so large that one script call takes them
   * @returns for each item the reply of the script, or the error
   */
  enqueueMany(items: readonly EnqueueItem[]): Promise<(EnqueueReply | Error)[]> {
    if (!this.#inFlight.hasDoubts) return this.#enqueueMany(items);
    const doubts = items.map((item) => this.#inFlight.takeDoubt(item));
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
      const { deadline } = this.#pending;
      this.#add({ script: 'enqueue', items, bytes, deadline, settled: false, resolve, reject }, true);
    });
  }

  /** Waits for the answer of the call that the job was in; that is asked for unless the call is still on its way. */
  #repeat(doubt: Doubt<Flight>, item: EnqueueItem): Promise<EnqueueReply> {
    const { flight, place } = doubt;
    if (flight.replies) {
      const reply = flight.replies[place];
      return reply ? Promise.resolve(reply) : this.#enqueue(item);
    }
    return new Promise((resolve, reject) => {
      const call = new JobCall(item, this.#pending.deadline, resolve, reject);
      if (this.#admit(call)) this.#inFlight.repeat(flight, place, call);
      else this.#inFlight.leaveDoubt(doubt);
    });
  }

  /** The next enqueue under this id, or under any, is a new job, even if one in doubt has the id. */
  forget(id?: string): void {
    this.#inFlight.forget(id);
  }

  /** @returns the whole answer of the script */
  async run(script: AnyScriptName, id: string, args: ScriptArgs, words?: ScriptCallWords): Promise<string> {
    const answer = await this.ask(script, args, words);
    if (typeof answer === 'function') throw answer(id);
    return answer;
  }

  /** @returns the whole answer of the script, or why there is none */
  ask(script: AnyScriptName, args: ScriptArgs, words?: ScriptCallWords): Promise<string | Failure> {
    return new Promise((resolve) => {
      const { deadline } = this.#pending;
      this.#add({ script, args, bytes: SCRIPT_BYTES, ...words, deadline, settled: false, resolve, reject: resolve });
    });
  }

  /** Waits for the calls on their way, then refuses those that were not sent. */
  async close(ms: number): Promise<void> {
    const until = performance.now() + ms;
    while (!this.#isEmpty && performance.now() < until) {
      if (!this.store.connection.isReady) break;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    this.#pending.close();
    clearInterval(this.#deadlines);
    this.#refuseWaiting();
    this.#inFlight.close();
  }

  get #isEmpty(): boolean {
    return this.#inFlight.size + this.#pending.waiting === 0;
  }

  #refuseWaiting(): void {
    this.#pending.refuseWaiting();
    this.#restWhenEmpty();
  }

  #add(call: Call, isBulk = false): void {
    if (!this.#admit(call)) return;
    this.#pending.push(call, isBulk);
    this.#dispatchSoon.schedule();
  }

  /** @returns false when it was refused */
  #admit(call: Call): boolean {
    if (!this.#pending.admit(call)) return false;
    this.#deadlines ??= setInterval(() => this.#checkDeadlines(), Math.max(10, this.timeoutMs / DEADLINE_CHECKS));
    return true;
  }

  #dispatch(): void {
    if (this.#pending.isOver) return this.#refuseWaiting();
    // Nothing is put on a session while offline, so that a deadline can still say "not accepted" for sure.
    if (!this.store.connection.isReady) return this.#waitForConnection();
    const { freeSessions: free, size, shares } = this.#inFlight;
    // Calls that wait for replicas or the disk go together, because each wait holds up the connection.
    const most = this.confirmation ? MAX_JOBS : shares.most(this.#pending.waitingSingles, free.length, size === 0);
    for (const session of free) {
      const calls = this.#pending.next(most);
      if (!calls) return;
      void this.#inFlight.send(session, calls);
    }
  }

  #waitForConnection(): void {
    if (this.#pending.waiting === 0 || this.#offline) return;
    this.#offline = true;
    const again = () => {
      this.#offline = false;
      this.#dispatchSoon.schedule();
    };
    this.store.connection.whenReady(this.timeoutMs).then(again, () => {
      this.#checkDeadlines();
      setTimeout(again, 100).unref();
    });
  }

  #landed(): void {
    if (this.#pending.waiting > 0) this.#dispatchSoon.schedule();
    else this.#restWhenEmpty();
  }

  #checkDeadlines(): void {
    const now = performance.now();
    const { isInterrupted } = this.store.connection;
    const expired = (call: Call) => call.settled || isInterrupted || now >= call.deadline;
    this.#pending.refuseExpired(expired);
    this.#inFlight.failExpired(expired);
    this.#restWhenEmpty();
  }

  #restWhenEmpty(): void {
    if (!this.#isEmpty) return;
    clearInterval(this.#deadlines);
    this.#deadlines = undefined;
  }
}
