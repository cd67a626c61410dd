import { UnavailableError } from '../delay-queue.errors.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { parseOccurrenceId } from '../job/job-id.js';
import { parseWords } from '../redis/change.protocol.js';
import { stateOf } from '../redis/letters.js';
import type { JobState } from '../redis/letters.js';
import { typedError } from '../redis/redis.errors.js';
import { shardsInGroup, shardsOf } from '../instance/job-shards.js';
import { BulkCursor } from './bulk-cursor.js';
import type { ActDraft, Choice, TimesDraft } from './bulk-options.js';
import type {
  BulkActPage,
  BulkActResult,
  BulkCancelOutcome,
  BulkMoveOutcome,
  BulkRescheduleOutcome,
} from './bulk-results.js';
import { CHUNK } from './inspector-options.js';
import type { MoveResult } from './job-mover.js';
import { BEGINNING } from './shard-pages.js';

/** What is asked for, checked. */
export interface BulkTask {
  readonly queue: string;
  readonly act: string;
  readonly choice: Choice;
  readonly options: ActDraft;
  /** Where the cursor stands, for messages. */
  readonly field: string;
}

/** A job to be changed. */
interface Target {
  readonly id: string;
  /** When it was due, as Redis told it; '' when nobody asked, or when it has none. */
  readonly score: string;
  readonly state: JobState | undefined;
  /** How many were chosen before it, of all that are. */
  readonly place: number;
  readonly total: number;
}

interface Act<Outcome extends string> {
  readonly latestFirst: boolean;
  /** Of an act that must not be repeated: the outcome of jobs that a call without an answer may have changed. */
  readonly inDoubt?: Outcome | undefined;
  /** What would become of it; undefined when nothing has to. */
  foresee(target: Target, now: number): BulkActResult<Outcome> | undefined;
  change(shard: number, targets: readonly Target[]): Promise<BulkActResult<Outcome>[]>;
  /** Before the first jobs of a range are looked at, and when the walk goes on. */
  begin?(now: number, cursor: BulkCursor): void;
  /** Of a range: jobs that are left out. */
  skips?(target: Target): boolean;
}

/** How far one call has come. */
interface Walk<Outcome extends string> {
  readonly cursor: BulkCursor;
  readonly act: Act<Outcome>;
  /** It has something to tell, so it does not throw. */
  readonly hasResults: boolean;
}

/** Takes one call of a bulk act through the shards of a queue, 200 jobs at a time. */
export class BulkWalk {
  constructor(
    private readonly shards: InstanceContext,
    private readonly task: BulkTask,
  ) {}

  cancel(running: boolean): Promise<BulkActPage<BulkCancelOutcome>> {
    return this.#run<BulkCancelOutcome>({
      latestFirst: false,
      foresee: (target) => foreseen(target, 'cancelled'),
      change: async (shard, targets) => {
        for (const { id } of targets) this.shards.forgetDoubts(this.task.queue, id);
        const args = [running ? 1 : 0, ...targets.flatMap(({ id, score }) => [id, score])];
        return parseWords(await this.#call('cancelMany', shard, targets, args), 2).map(([outcome, state], n) => ({
          id: targets[n]!.id,
          outcome: outcomeOf(outcome!, 'c', 'cancelled'),
          state: stateOf(state),
        }));
      },
    });
  }

  runNow(): Promise<BulkActPage<BulkRescheduleOutcome>> {
    return this.#run<BulkRescheduleOutcome>({
      latestFirst: false,
      foresee: (target, now) => rescheduled(target, Math.min(now, Number(target.score) || now)),
      change: (shard, targets) => this.#reschedule(shard, targets, 1, () => ['d', 0]),
    });
  }

  reschedule({ delay, at, by, spread }: TimesDraft): Promise<BulkActPage<BulkRescheduleOutcome>> {
    const { choice } = this.task;
    // Of a range all pages count from one moment. What is moved within the range must not be met again: so the walk goes against
    // the direction in which jobs move.
    let base = at;
    let how = delay === undefined ? 'a' : 'd';
    const timeOf = ({ place, total }: Target): [string, number] => {
      if (by !== undefined) return ['b', by];
      const offset = Math.floor((spread * place) / Math.max(1, total));
      return how === 'd' ? ['d', delay! + offset] : [how, base! + offset];
    };
    return this.#run<BulkRescheduleOutcome>({
      latestFirst: true,
      inDoubt: by === undefined ? undefined : 'unknown',
      foresee: (target, now) => {
        const [kind, ms] = timeOf(target);
        const due = Number(target.score);
        if (kind === 'b') return rescheduled(target, (due || now) + ms);
        if (kind === 'd') return rescheduled(target, now + ms);
        return rescheduled(target, kind === 'n' ? Math.max(due, ms) : ms);
      },
      change: (shard, targets) => this.#reschedule(shard, targets, 0, timeOf),
      begin: (now, cursor) => {
        if ('ids' in choice || by !== undefined) return;
        base = cursor.base ??= at ?? now + delay!;
        const { from = -Infinity, to = Infinity } = choice;
        how = spread > 0 && base < to && base + spread >= from ? 'n' : 'a';
      },
      skips: ({ score }) => by === undefined && spread === 0 && Number(score) === base,
    });
  }

  /** @param mover moves waiting jobs of one shard that no schedule made, and says of each what became of it */
  move(
    mover: (ids: readonly string[], shard: number) => Promise<{ results: MoveResult[] }>,
  ): Promise<BulkActPage<BulkMoveOutcome>> {
    return this.#run<BulkMoveOutcome>({
      latestFirst: false,
      foresee: (target) => (isOccurrence(target) ? leftToItsSchedule(target) : foreseen(target, 'moved')),
      change: async (shard, targets) => {
        const ids = targets.filter((target) => !isOccurrence(target)).map(({ id }) => id);
        const moved = new Map((await mover(ids, shard)).results.map((result) => [result.id, result]));
        return targets.map((target) => moved.get(target.id) ?? leftToItsSchedule(target));
      },
    });
  }

  async #reschedule(
    shard: number,
    targets: readonly Target[],
    onlySooner: 0 | 1,
    timeOf: (target: Target) => [how: string, ms: number],
  ): Promise<BulkActResult<BulkRescheduleOutcome>[]> {
    const args = targets.flatMap((target) => [target.id, ...timeOf(target), target.score]);
    const answer = await this.#call('rescheduleMany', shard, targets, [onlySooner, ...args]);
    return parseWords(answer, 3).map(([word, state, due], n) => {
      const outcome = outcomeOf(word!, 's', 'rescheduled');
      const result = { id: targets[n]!.id, outcome, state: stateOf(state) };
      return outcome === 'rescheduled' ? { ...result, dueAt: new Date(Number(due)) } : result;
    });
  }

  #call(
    script: 'cancelMany' | 'rescheduleMany',
    shard: number,
    [first, ...others]: readonly Target[],
    args: (string | number)[],
  ): Promise<string> {
    const bytes = (others.length + 1) * BYTES_PER_JOB;
    return this.shards.ofShard(this.task.queue, shard).run(script, first!.id, args, { call: this.task.act, bytes });
  }

  async #run<Outcome extends string>(act: Act<Outcome>): Promise<BulkActPage<Outcome>> {
    const { queue, choice, options, field, act: name } = this.task;
    const cursor = BulkCursor.read(options.cursor, 'ids' in choice, this.shards.stores(queue).length, field);
    const results: BulkActResult<Outcome>[] = [];
    try {
      while (!cursor.isAtEnd && !cursor.isInterrupted && cursor.met < options.limit) {
        const walk = { cursor, act, hasResults: results.length > 0 };
        results.push(...(await ('ids' in choice ? this.#ids(choice, walk) : this.#range(choice, walk))));
      }
    } catch (error) {
      if (results.length === 0) throw typedError(error, `bulk.${name}("${queue}")`);
    }
    return cursor.isAtEnd ? { results } : { results, cursor: cursor.toString() };
  }

  /** The next 200 ids, or what is left of them where some shards failed. */
  async #ids<Outcome extends string>(
    { ids, group }: Extract<Choice, { ids: readonly string[] }>,
    { cursor, act, hasResults }: Walk<Outcome>,
  ): Promise<BulkActResult<Outcome>[]> {
    const next = ids.slice(cursor.place, cursor.place + CHUNK);
    const left = (cursor.left ?? [...next.keys()]).filter((n) => n < next.length);
    const chunk = left.map((n) => next[n]!);
    const { queue, act: name } = this.task;
    const byShard = this.shards.stores(queue).map((): Target[] => []);
    const shards =
      group === undefined
        ? await shardsOf(this.shards, `bulk.${name}`, queue, chunk)
        : shardsInGroup(this.shards, queue, chunk, group);
    for (const [n, id] of chunk.entries()) {
      const place = cursor.place + left[n]!;
      byShard[shards.get(id)!]!.push({ id, score: '', state: undefined, place, total: ids.length });
    }
    const calls = byShard.map(async (targets, shard) => (targets.length === 0 ? [] : this.#of(shard, targets, act)));
    const settled = await Promise.allSettled(calls);
    const results = new Map(
      settled.flatMap((call) => (call.status === 'fulfilled' ? call.value : [])).map((result) => [result.id, result]),
    );
    const failures = settled.flatMap((call, shard) =>
      call.status === 'rejected' ? [{ error: call.reason as unknown, targets: byShard[shard]! }] : [],
    );
    // What other shards did is told, and is not done again.
    if (results.size > 0 || hasResults) {
      for (const { error, targets } of failures) {
        for (const result of inDoubt(error, targets, act)) results.set(result.id, result);
      }
    }
    if (failures.length > 0 && results.size === 0)
      throw (failures.find(({ error }) => isInDoubt(error)) ?? failures[0]!).error;
    cursor.isInterrupted = failures.length > 0;
    const rest = left.filter((n) => !results.has(next[n]!));
    if (rest.length > 0) {
      cursor.left = rest;
    } else {
      cursor.left = undefined;
      cursor.place += next.length;
      cursor.met += next.length;
      cursor.isAtEnd = cursor.place >= ids.length;
    }
    return chunk.flatMap((id) => results.get(id) ?? []);
  }

  async #of<Outcome extends string>(
    shard: number,
    targets: readonly Target[],
    act: Act<Outcome>,
  ): Promise<BulkActResult<Outcome>[]> {
    if (!this.task.options.dryRun) return act.change(shard, targets);
    const args = ['i', '-', '-', '-', '', CHUNK, ...targets.map(({ id }) => id)];
    const { now, found } = await this.#select(shard, args);
    return found.map((job, n) => act.foresee({ ...targets[n]!, ...job }, now)!);
  }

  /** The next jobs of one shard that are due in the range: 200 at most. */
  async #range<Outcome extends string>(
    { from, to }: { from: number | undefined; to: number | undefined },
    { cursor, act, hasResults }: Walk<Outcome>,
  ): Promise<BulkActResult<Outcome>[]> {
    const { shard, score, id } = cursor;
    const { limit, dryRun } = this.task.options;
    const mode = act.latestFirst ? 'z' : 'a';
    const room = Math.min(CHUNK, limit - cursor.met);
    const page = await this.#select(shard, [mode, from ?? '-', to ?? '-', score, id, room]);
    const { now, more, found } = page;
    act.begin?.(now, cursor);
    if (score === BEGINNING.score) cursor.total = page.total;
    const targets = found.map((job, n): Target => {
      const done = cursor.place + n;
      const place = act.latestFirst ? Math.max(0, cursor.total - 1 - done) : done;
      return { ...job, place, total: cursor.total };
    });
    const chosen = targets.filter((target) => !act.skips?.(target));
    let results: BulkActResult<Outcome>[] = [];
    if (dryRun) results = chosen.flatMap((target) => act.foresee(target, now) ?? []);
    else if (chosen.length > 0) {
      try {
        results = await act.change(shard, chosen);
      } catch (error) {
        results = hasResults ? inDoubt(error, chosen, act) : [];
        if (results.length === 0) throw error;
        cursor.isInterrupted = true;
      }
    }
    cursor.passed(found, more);
    return results;
  }

  async #select(shard: number, args: (string | number)[]) {
    const store = this.shards.stores(this.task.queue)[shard]!;
    const [now, more, total, ...values] = (await store.call('select', args)) as [number, number, number, ...string[]];
    const found = [];
    for (let i = 0; i < values.length; i += 3) {
      found.push({ id: values[i]!, state: stateOf(values[i + 1]), score: values[i + 2]! });
    }
    return { now, more: more === 1, total, found };
  }
}

/** About what a call holds of one job while it waits to be sent. */
const BYTES_PER_JOB = 64;

function isInDoubt(error: unknown): boolean {
  return error instanceof UnavailableError && error.maybeAccepted;
}

/** Nothing where a repeat is harmless, or where nothing was changed. */
function inDoubt<Outcome extends string>(
  error: unknown,
  targets: readonly Target[],
  { inDoubt: outcome }: Act<Outcome>,
): BulkActResult<Outcome>[] {
  return outcome !== undefined && isInDoubt(error) ? targets.map(({ id }) => ({ id, outcome })) : [];
}

const REFUSED = { r: 'running', x: 'dead', n: 'notFound', m: 'changed' } as const;

function outcomeOf<Changed extends string>(word: string, letter: string, changed: Changed) {
  return word === letter ? changed : REFUSED[word as keyof typeof REFUSED];
}

function isOccurrence({ id }: Target): boolean {
  return parseOccurrenceId(id) !== undefined;
}

function leftToItsSchedule({ id }: Target) {
  return { id, outcome: 'occurrence' as const };
}

function foreseen<Changed extends string>({ id, state }: Target, changed: Changed) {
  if (state === 'delayed' || state === 'due') return { id, outcome: changed, state };
  return { id, outcome: state === 'running' || state === 'dead' ? state : ('notFound' as const), state };
}

function rescheduled(target: Target, dueAt: number): BulkActResult<BulkRescheduleOutcome> {
  const result = foreseen(target, 'rescheduled');
  return result.outcome === 'rescheduled' ? { ...result, dueAt: new Date(dueAt) } : result;
}
