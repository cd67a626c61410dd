import type { SessionHistory } from './history.js';
import { queueOf } from './queues.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';
import type { StepArguments } from './step-arguments.js';
import type { Concerns, ScriptCall } from './witness.js';

/** For how long Redis remembers the last call of a session; see lib/lua/shared/session.lua. */
export const SESSION_MS = 600_000;

/** A clock that goes back by less has not jumped; see lib/lua/step/grace.lua. */
const CORRECTED_MS = 1_000;

const SESSION = ':session:';
/** Worker and call of a step, as they are written behind its session, and behind further keys where the queue has limits. */
const CALL = /^(?:\r\n\$\d+\r\n[^\r]*\}:[^\r]*)*\r\n\$\d+\r\n[^\r]*wake:[^\r]*#\d+\r\n\$\d+\r\n(\d+)/;
/** They are shorter. */
const LONGEST_CALL = 1_000;

/** Sessions number their calls, so that one that comes again is known, and one that comes late. */
export class Sessions {
  readonly #sessions = new Map<string, SessionHistory>();
  /** Redis has lost, with the tail, what it knew of them. */
  readonly #lost = new Set<string>();
  /** Of each session that sends steps: its last call, and when the first copy of it left, whether it arrived or not. */
  readonly #sent = new Map<string, { readonly call: number; readonly at: number }>();
  /** Of each call that came again, by session and number: when it came last, simulated ms. */
  readonly #again = new Map<string, number>();
  /** Calls that a master ran which had been deposed, by session and number. */
  readonly #ofDeposed = new Set<string>();

  constructor(
    private readonly simulation: Simulation,
    private readonly counts: { late: number; resent: number },
  ) {}

  of(session: string): SessionHistory | undefined {
    return this.#sessions.get(session);
  }

  /** A process writes this to one of its connections. */
  sent(data: Buffer): void {
    for (let at = data.indexOf(SESSION); at >= 0; at = data.indexOf(SESSION, at + 1)) {
      const end = data.indexOf('\r', at);
      if (end < 0) return;
      const number = CALL.exec(data.toString('latin1', end, end + LONGEST_CALL))?.[1];
      if (number === undefined) continue;
      const session = data.toString('latin1', data.lastIndexOf('\n', at) + 1, end);
      const call = Number(number);
      if (this.#sent.get(session)?.call !== call) this.#sent.set(session, { call, at: this.simulation.engine.now });
    }
  }

  /** When the first copy of the last call of this session left, simulated ms. */
  sentAt(session: string): number {
    return this.#sent.get(session)?.at ?? this.simulation.engine.now;
  }

  /** Whether the process of this session has sent a step to its shard since then that never came, by whichever of its sessions there. */
  isOnItsWay(session: string, since: number): boolean {
    const ofProcess = session.slice(0, session.lastIndexOf('.') + 1);
    for (const [name, { call, at }] of this.#sent) {
      if (name.startsWith(ofProcess) && at >= since && (this.#sessions.get(name)?.call ?? -1) < call) return true;
    }
    return false;
  }

  /** When this call came for the last time, if it came again, simulated ms. */
  cameAgainAt(session: string, call: number): number | undefined {
    return this.#again.get(`${session} ${call}`);
  }

  cameToDeposed(session: string, call: number): void {
    this.#ofDeposed.add(`${session} ${call}`);
  }

  /** A master that had been deposed ran it, so that its answer may be what the process goes by. */
  hasComeToDeposed(session: string, call: number): boolean {
    return this.#ofDeposed.has(`${session} ${call}`);
  }

  /** The numbers of the last calls of all sessions; where Redis has lost what it knew of one, of the last call that left. */
  callsSoFar(): ReadonlyMap<string, number> {
    return new Map([...this.#sent, ...this.#sessions].map(([session, { call }]) => [session, call]));
  }

  /**
   * Excused: a call that was sent before its process knew the time of the server cannot be refused as late, nor one that comes to a clock that
   * was set back behind the time when it left. So it runs where the server knows no later one of its session, because it has accepted none,
   * or has lost it with the tail. What it has accepted since then it need not remember: the call before was answered.
   *
   * @returns why the process will not hear of the answer, if that is certain
   */
  note({ connection, keys }: ScriptCall, { call, leftAt }: StepArguments): string | undefined {
    const name = keys[SHARD_KEYS.session]!;
    const last = this.#sessions.get(name);
    if (last && call < last.call) {
      this.counts.late++;
      const mayBeRefused =
        leftAt !== undefined && leftAt <= this.simulation.clockMs(keys[SHARD_KEYS.due]!) + CORRECTED_MS;
      const isRemembered = last.accepted > 0 && !(this.#lost.has(name) && this.#isForgotten(name));
      return mayBeRefused || isRemembered ? 'an older call of its session' : undefined;
    }
    if (last?.call === call) {
      this.counts.resent++;
      this.#again.set(`${name} ${call}`, this.simulation.engine.now);
    } else {
      const { call: before = 0, accepted = 0 } = last ?? {};
      this.#sessions.set(name, { call, before, accepted, connection, length: this.simulation.server.disk.length });
    }
    return undefined;
  }

  /** What Redis knew of the last calls was lost with the tail, so that a late copy of an older one runs again. */
  rolledBack(length: number, concerns: Concerns): void {
    for (const [name, session] of this.#sessions) {
      const due = `${name.slice(0, name.indexOf(SESSION))}:due`;
      if (session.length < length || !concerns(queueOf(due), due)) continue;
      this.#sessions.delete(name);
      this.#lost.add(name);
    }
  }

  #isForgotten(session: string): boolean {
    return this.simulation.oracle.peek('GET', session) === null;
  }

  /** It was not refused. */
  accepted({ keys }: ScriptCall, { call }: StepArguments): void {
    const session = this.#sessions.get(keys[SHARD_KEYS.session]!);
    if (session) session.accepted = Math.max(session.accepted, call);
  }
}
