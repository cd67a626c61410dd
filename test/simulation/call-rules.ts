import type { BulkEnqueueError, QueueFullError } from '../../lib/delay-queue.errors.js';
import type { EnqueueOptions } from '../../lib/job/enqueue-options.js';
import type { EnqueueResult } from '../../lib/job/enqueue-result.js';
import type { Reply } from '../../lib/memory/memory.replies.js';
import { startKillsAnew, supersede } from './history.js';
import type { Oracle } from './oracle.js';
import type { EnqueueOperation } from './plan.js';
import { EPOCH } from './process.js';
import { numberOf } from './schedule-rules.js';
import type { RunningScript, ScriptRules } from './script-rules.js';
import { SESSION_MS } from './sessions.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';

const KOLKATA_MS = 19_800_000;

/** When a job is to be due: at an instant, or after its call ran. */
interface AskedTime {
  readonly at: number | undefined;
  readonly delay: number;
  readonly spread: number;
}

interface StoredCall {
  readonly id: string;
  /** First letter of its spec; see lib/lua/enqueue.lua. */
  readonly mode: string;
  /** Header and payload. */
  readonly content: string;
  readonly outcome: string;
  readonly state: string;
}

interface EnqueueThatRan {
  readonly call: number;
  /** By the server's clock, in whole ms as scripts know them. */
  readonly clock: number;
  /** Simulated ms. */
  readonly at: number;
}

/** What a call of a producer says, and what it leaves behind: due times, ids from payloads, full queues, and errors that say what they are. */
export class CallRules implements ScriptRules {
  /** By the number of the operation. */
  readonly #asked = new Map<number, AskedTime>();
  /** Jobs that waited and ran before the script; undefined for a call that only repeats its answer. */
  #size: number | undefined;
  /** The script, as it is to be noted if it is not refused. */
  #running: EnqueueThatRan | undefined;
  /** Of each session its last one. */
  readonly #ran = new Map<string, EnqueueThatRan>();
  #runsAnew = false;

  constructor(
    private readonly simulation: Simulation,
    private readonly oracle: Oracle,
  ) {}

  asked({ at, delay, run, isInstant, onDuplicate }: EnqueueOperation, spread: number): void {
    if (!onDuplicate)
      this.#asked.set(run.n, { at: isInstant ? instantOf({ at, delay, run, isInstant }) : undefined, delay, spread });
  }

  acknowledged(operation: EnqueueOperation, result: EnqueueResult): void {
    const { id, isByContent } = operation;
    this.#replaced(operation);
    if (!isByContent || result.id === id) return;
    this.oracle.report('contentId', `a job has the id ${result.id}, and by its payload it should have ${id}`);
  }

  /** Nobody waits for it, and where it fails nobody makes it again. */
  unwaited(call: Promise<unknown>): void {
    call.catch((error: Error) => this.refused(error));
  }

  /** Whatever goes wrong, the caller can tell what it is. */
  refused(error: Error, jobs: readonly EnqueueOperation[] = []): void {
    for (const job of jobs) this.#replaced(job);
    const { code, results } = error as Error & { code?: string } & Partial<BulkEnqueueError<EnqueueResult>>;
    if (!code?.startsWith('ERR_DQ_'))
      this.oracle.report('untyped', `a call failed with ${error.name}: ${error.message}`);
    for (const result of results ?? []) if ('error' in result) this.refused(result.error);
    const { maxSize } = this.simulation.configuration;
    if (error.name !== 'QueueFullError' || (error as QueueFullError).maxSize === maxSize) return;
    this.oracle.report(
      'maxSize',
      `a call was refused by a bound of ${(error as QueueFullError).maxSize}, not ${maxSize}`,
    );
  }

  /** It may be called for again and again: what was asked for meanwhile may have come before it. */
  #replaced(operation: EnqueueOperation): void {
    if (this.replaces(operation)) supersede(this.oracle.job(operation.id), operation.run.n);
  }

  /** Says so itself, or is of a queue whose definition debounces. */
  replaces({ queue, onDuplicate }: EnqueueOperation): boolean {
    const isDebounced = queue === 'jobs' && this.simulation.configuration.traits.includes('debounced');
    return onDuplicate === 'replace' || (onDuplicate === undefined && isDebounced);
  }

  begins({ name, keys, args }: RunningScript): void {
    this.#size = this.#running = undefined;
    this.#runsAnew = false;
    if (name !== 'enqueue') return;
    const session = keys[SHARD_KEYS.session]!;
    const call = parseInt(args[0]!, 10);
    const remembered = this.oracle.peek('GET', session) as string | null;
    if (remembered?.startsWith(`${call} `)) return;
    this.#running = { call, clock: Math.floor(this.simulation.clockMs(session)), at: this.simulation.engine.now };
    this.#runsAnew = isForgotten(this.#ran.get(session), this.#running);
    // What schedules have stored ahead does not count.
    const ahead = Number(this.oracle.peek('HGET', keys[SHARD_KEYS.meta]!, 'ahead'));
    this.#size = ['due', 'running', 'quarantine'].reduce((sum, index) => {
      return sum + Number(this.oracle.peek('ZCARD', keys[SHARD_KEYS[index as 'due']]!));
    }, -ahead);
  }

  /**
   * A call that ran comes again, because its answer was lost, or the link was over which it waits for a disk or replicas. Meanwhile the clock of
   * the server has jumped ahead by so much that Redis has forgotten the session. So the call runs anew, and makes jobs again that have ended since
   * then or moved to another queue: as if the application had called again.
   */
  runs({ keys }: RunningScript, command: string, [key, ...pairs]: readonly string[]): void {
    if (!this.#runsAnew || command !== 'HSET' || key !== keys[SHARD_KEYS.jobs]) return;
    for (let i = 0; i < pairs.length; i += 2) {
      const version = this.oracle.job(pairs[i]!).versions.get(numberOf(pairs[i + 1]!));
      if (version && !this.#isStored(keys, pairs[i]!)) version.calls++;
    }
  }

  ends({ keys, args }: RunningScript, reply: Reply): void {
    if (this.#running && typeof reply === 'string') this.#ran.set(keys[SHARD_KEYS.session]!, this.#running);
    if (this.#size === undefined || this.simulation.configuration.older || typeof reply !== 'string') return;
    const { maxSize } = this.simulation.configuration;
    let size = this.#size;
    const calls = callsOf(args, reply);
    for (const [n, call] of calls.entries()) {
      // A dead letter that somebody calls back is no new job, and passes.
      const isMade = call.outcome === 'c' || (call.outcome === 'p' && call.state === 'x');
      const passes = maxSize === 0 || (call.state === 'x' && call.mode !== 'k');
      if (isMade && !passes && size >= maxSize) {
        this.oracle.report('maxSize', `${call.id} was stored, though ${size} of ${maxSize} jobs waited and ran`);
      }
      if (call.outcome === 'f' && size < maxSize) {
        this.oracle.report('maxSize', `${call.id} was refused, though only ${size} of ${maxSize} jobs waited and ran`);
      }
      if (call.outcome === 'f' && call.state === '-' && this.#isStored(keys, call.id)) {
        this.oracle.report('maxSize', `${call.id} was refused and stored all the same`);
      }
      if (isMade || (call.outcome === 'r' && call.state === 'x')) size++;
      // Whoever takes the place of what ended processes may do so as often again, once it runs.
      if (call.outcome === 'p') startKillsAnew(this.oracle.job(call.id), call.state === 'r' ? 1 : 0);
      // A later one of the same script may have moved it.
      const isLast = !calls.some(({ id }, other) => id === call.id && other > n);
      if (call.outcome === 'c' && call.mode !== 'm' && isLast) this.#judgeTime(keys, call);
    }
  }

  #judgeTime(keys: readonly string[], { id, content }: StoredCall): void {
    const asked = this.#asked.get(Number(/"n":(\d+)/.exec(content)?.[1]));
    const due = this.oracle.peek('ZSCORE', keys[SHARD_KEYS.due]!, id) as string | null;
    if (!asked || due === null) return;
    const from = asked.at ?? Math.floor(this.simulation.clockMs(keys[0]!)) + asked.delay;
    const late = Number(due) - from;
    if (late >= 0 && late <= asked.spread) return;
    this.oracle.report('dueTime', `${id} is due ${late} ms after the time that its call asked for`);
  }

  #isStored(keys: readonly string[], id: string): boolean {
    return this.oracle.peek('HEXISTS', keys[SHARD_KEYS.jobs]!, id) === 1;
  }
}

/** The same call again, in less than ten minutes that were more by the clock of the server. */
function isForgotten(ran: EnqueueThatRan | undefined, { call, clock, at }: EnqueueThatRan): boolean {
  return ran?.call === call && at - ran.at < SESSION_MS && clock - ran.clock >= SESSION_MS;
}

/** The instant that the application means, whatever the clocks of its processes say. */
export function instantOf(operation: Pick<EnqueueOperation, 'at' | 'delay' | 'run' | 'isInstant'>): number {
  const ms = Math.floor(EPOCH + operation.at) + operation.delay;
  return isLocal(operation) ? Math.floor(ms / 1_000) * 1_000 : ms;
}

/** As a call says it: each second one by the clock of a zone, which knows seconds and whose offset never changes. */
export function momentOf(operation: EnqueueOperation): EnqueueOptions['at'] {
  const ms = instantOf(operation);
  if (!isLocal(operation)) return ms;
  return { local: new Date(ms + KOLKATA_MS).toISOString().slice(0, 19), timeZone: 'Asia/Kolkata' };
}

function isLocal({ run, isInstant }: Pick<EnqueueOperation, 'run' | 'isInstant'>): boolean {
  return isInstant === true && run.n % 2 === 0;
}

/** The jobs of one call, with what became of each; nothing while publishing is paused. */
function callsOf(args: readonly string[], reply: string): StoredCall[] {
  const asked: Pick<StoredCall, 'id' | 'mode' | 'content'>[] = [];
  for (let at = 1; at < args.length;) {
    const [, count = '1', mode] = /^(?:(\d+)\*)?(.)/.exec(args[at]!)!;
    // The last of three is its place among groups.
    const width = args[at]!.endsWith(' @') ? 3 : 2;
    for (let i = 0; i < Number(count); i++) {
      asked.push({ mode: mode!, id: args[at + 1 + width * i]!, content: args[at + 2 + width * i]! });
    }
    at += 1 + width * Number(count);
  }
  const outcomes: Pick<StoredCall, 'outcome' | 'state'>[] = [];
  const words = reply.split(' ').slice(1);
  for (let at = 0; at < words.length;) {
    const more = /^=(\d+)$/.exec(words[at]!);
    if (more) {
      for (let i = 0; i < Number(more[1]); i++) outcomes.push(outcomes.at(-1)!);
      at++;
    } else {
      outcomes.push({ outcome: words[at]!, state: words[at + 1]! });
      at += 3;
    }
  }
  return outcomes[0]?.outcome === 'b' ? [] : asked.map((call, i) => ({ ...call, ...outcomes[i]! }));
}
