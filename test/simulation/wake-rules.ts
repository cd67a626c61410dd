import { TOLD_AGAIN_MS } from './limited-store.js';
import type { Reply, Status } from '../../lib/memory/memory.replies.js';
import type { Oracle } from './oracle.js';
import { queueOf } from './queues.js';
import type { RunningScript, ScriptRules } from './script-rules.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';

const ROLE_MS = 6_000;
const LONGEST_SLEEP_MS = 600_000;
/** The leader and two of the idle ones... */
const MOST_TOLD = 3;
/** ... and as many of those that rest, where fewer than two have looked lately. */
const MOST_RESTING_TOLD = 10;
const FRESH_MS = 7_000;
const ENTRY_MS = 422_000;
/** When due jobs leave one place to a job in quarantine; see lib/lua/step/isolated.lua. */
const LAST_MS = 55_000;
/** Where the answer of a step has it. */
const ANSWERED_HEAD = 2;
/** Scripts that may make something the head of `due`, and tell whoever waits for it. */
const TELLING = new Set(['enqueue', 'reschedule', 'signal', 'update', 'requeueDead', 'unreserve', 'step']);
/** Those that may make room for a job in a queue with limits. */
const MAKING_ROOM = new Set([...TELLING, 'cancel', 'cancelMany', 'limit', 'remove', 'reserve']);

interface BeforeScript {
  readonly isLimited: boolean;
  readonly head: number | undefined;
  readonly names: string[];
  /** Idle ones that have looked lately, of those that are told before any that rest. */
  readonly fresh: number;
  changesDue: boolean;
  /** It notes that it has told whoever waits, also where nobody does. */
  notes: boolean;
  /** It makes others forget that: where groups begin, what has told of another head says nothing of theirs. */
  forgets: boolean;
}

interface Sleeper {
  readonly name: string;
  /** For how long its entry is good, by the clock of the server. */
  readonly until: number;
}

/**
 * Wake-ups only shorten the polling, and yet they are what makes a queue punctual: whatever becomes the head is told at once, a head
 * that stays overdue is told again, and neither costs more messages than that.
 */
export class WakeRules implements ScriptRules {
  readonly #toldAt = new Map<string, number>();
  /** When a script noted for the last time that it told of the head. One that hands a role on tells as well, and does not note it. */
  readonly #notedAt = new Map<string, number>();
  #before: BeforeScript | undefined;

  constructor(
    private readonly simulation: Simulation,
    private readonly oracle: Oracle,
  ) {}

  begins({ keys }: RunningScript): void {
    const isLimited = this.oracle.limits.isLimited(keys[SHARD_KEYS.due]!);
    const head = this.#head(keys, isLimited);
    this.#before = {
      isLimited,
      head,
      fresh: this.#fresh(keys),
      names: [],
      changesDue: false,
      notes: false,
      forgets: false,
    };
  }

  runs({ keys }: RunningScript, name: string, args: readonly string[]): void {
    const before = this.#before;
    if (!before) return;
    const due = keys[SHARD_KEYS.due]!;
    if (name === 'PUBLISH' && args[1] === due) before.names.push(args[0]!);
    else if (name === 'ZADD' && args[0] === due) before.changesDue = true;
    else if (name === 'HSET' && args[0] === keys[SHARD_KEYS.meta] && args.includes('wokenAt')) before.notes = true;
    else if (name === 'HDEL' && args[0] === keys[SHARD_KEYS.meta] && args.includes('wokenAt')) before.forgets = true;
  }

  ends(script: RunningScript, reply: Reply): void {
    const before = this.#before;
    this.#before = undefined;
    if (!before) return;
    const key = script.keys[SHARD_KEYS.due]!;
    const now = Math.floor(this.simulation.clockMs(key));
    // Not the very script that makes it a queue with limits, or the first one of a queue that was removed: its heads are of two kinds. That it
    // has told is known all the same, for those that come after it go by that.
    if (before.isLimited === this.oracle.limits.isLimited(key)) this.#judge(script, before, reply, now);
    if (before.names.length > 0 || before.notes) this.#toldAt.set(key, now);
    if (before.forgets) this.#notedAt.delete(key);
    if (before.notes) this.#notedAt.set(key, now);
  }

  #judge(script: RunningScript, before: BeforeScript, reply: Reply, now: number): void {
    const { isLimited } = before;
    const key = script.keys[SHARD_KEYS.due]!;
    const head = this.#head(script.keys, isLimited);
    const isNew = head !== undefined && (before.head === undefined || head < before.head);
    // Others, as what makes occurrences, may tell as well.
    const isJudged = (isLimited ? MAKING_ROOM : TELLING).has(script.name);
    if (!isJudged) return;
    this.#judgeMessages(script, before, isNew, now);
    const told = [this.#toldAt.get(key), this.#notedAt.get(key)];
    const isDue = head !== undefined && head <= now - TOLD_AGAIN_MS;
    // A clock that was set back makes the last time worthless, for the library and here. The time before it, which is noted, may count yet.
    const isForgotten = told.every((last) => last === undefined || last <= now - TOLD_AGAIN_MS || last > now);
    const owes =
      !this.#isReserved(script, reply, now) &&
      (isNew || (isDue && isForgotten && (script.step !== undefined || before.changesDue)));
    if (!owes || before.names.length > 0 || !this.#isSomebodyWaiting(script, now)) return;
    const what = isNew ? 'made a new head' : 'saw an overdue head';
    this.oracle.report('untold', `${script.name} ${what} of ${key} (due ${now - head!} ms ago) and told nobody`);
  }

  /** The only place is left to a job that has waited in quarantine for long; the step says that it is to be looked for again soon. */
  #isReserved({ keys, step }: RunningScript, reply: Reply, now: number): boolean {
    if (!step || !Array.isArray(reply) || Number(reply[ANSWERED_HEAD]) <= now) return false;
    const [, since] = this.oracle.peek('ZRANGE', keys[SHARD_KEYS.quarantine]!, '0', '0', 'WITHSCORES') as string[];
    return since !== undefined && Number(since) <= now - LAST_MS && this.oracle.limits.isLimited(keys[SHARD_KEYS.due]!);
  }

  /** Messages cost the server most of what a call costs: there are few, and each has a reason. */
  #judgeMessages(script: RunningScript, { names, head, fresh }: BeforeScript, isNew: boolean, now: number): void {
    if (names.length === 0) return;
    const key = script.keys[SHARD_KEYS.due]!;
    // Two, and the leader and the caller may be among them.
    if (names.length > (fresh >= 4 ? MOST_TOLD : MOST_TOLD + MOST_RESTING_TOLD))
      this.oracle.report('chatter', `${script.name} of ${key} woke ${names.length} processes`);
    const last = this.#notedAt.get(key);
    // A step also hands roles on, and tells of what it put into the quarantine.
    if (!script.step && !isNew && last !== undefined && last > now - TOLD_AGAIN_MS && last <= now) {
      const late = head === undefined ? 0 : now - head;
      this.oracle.report('chatter', `${script.name} told of an old head of ${key} (${late} ms overdue), ${now - last} ms after the last time`); // prettier-ignore
    }
    const own = script.step && /^(.*)#\d+$/.exec(script.step.worker)?.[1];
    // Calls of pull() with another lease are another worker of the same process. So is a handler that was registered anew, and what the former
    // one said when it left may be lost.
    const { member } = script;
    const isOnly = member?.role === 'worker' && member.servesSince(queueOf(key)) === member.bootedAt;
    if (own !== undefined && names.includes(own) && isOnly) {
      this.oracle.report('chatter', `a step of ${own} woke its own process for ${key}`);
    }
  }

  /** Somebody else than the caller, who sees the head in its answer. */
  #isSomebodyWaiting({ keys, step }: RunningScript, now: number): boolean {
    const [entry, paused, needs] = this.oracle.peek('HMGET', keys[SHARD_KEYS.meta]!, 'leader', 'paused', 'needs') as (
      string | null
    )[];
    // A shard that is being left starts nothing.
    if (paused === '1' || needs?.includes('~')) return false;
    const [, name, until] = /^(.+) (\d+)$/.exec(entry ?? '') ?? [];
    const leader = Number(until) > now && Number(until) <= now + ROLE_MS ? name : undefined;
    if (leader !== undefined) return leader !== step?.worker;
    return this.#sleepers(keys, now).some((sleeper) => sleeper.name !== step?.worker);
  }

  #fresh(keys: readonly string[]): number {
    const now = Math.floor(this.simulation.clockMs(keys[SHARD_KEYS.due]!));
    const sleepers = this.#sleepers(keys, now);
    // With half a ms it is of a worker that rests, of which nobody may have heard for long.
    const old = sleepers.findIndex(({ until }) => until % 1 > 0 && until < now + ENTRY_MS - FRESH_MS);
    return old < 0 ? sleepers.length : old;
  }

  /** Those that are told first. Where somebody else has put a key of a wrong type in place of `idle`, nobody is known to sleep. */
  #sleepers(keys: readonly string[], now: number): readonly Sleeper[] {
    const idle = keys[SHARD_KEYS.idle]!;
    if ((this.oracle.peek('TYPE', idle) as Status).text !== 'zset') return [];
    const between = [String(now + LONGEST_SLEEP_MS), `(${now}`, 'BYSCORE', 'REV', 'LIMIT', '0', String(MOST_TOLD + 1)];
    const entries = this.oracle.peek('ZRANGE', idle, ...between, 'WITHSCORES') as string[];
    return entries.flatMap((name, i) => (i % 2 === 0 ? [{ name, until: Number(entries[i + 1]) }] : []));
  }

  /** Where limits hold, what may start next is not the head of `due`. */
  #head(keys: readonly string[], isLimited: boolean): number | undefined {
    if (isLimited) return this.oracle.limits.momentOf(keys[SHARD_KEYS.due]!);
    const head = this.oracle.peek('ZRANGE', keys[SHARD_KEYS.due]!, '0', '0', 'WITHSCORES') as string[];
    return head.length === 0 ? undefined : Number(head[1]);
  }
}
