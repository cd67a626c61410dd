import { BulkEnqueueError, DelayQueueError } from '../../delay-queue.errors.js';
import { shardOf } from '../../shards/shard-hash.js';
import type { EnqueueResult } from '../../job/enqueue-result.js';
import type { Session } from '../connection/session.js';
import type { Cli } from '../cli.js';
import { planOf, plannedAgain, releaseOf } from './bullmq-plan.js';
import type { Plan, Reason, Release, Target } from './bullmq-plan.js';
import { counted } from '../terminal/numbers.js';
import { PLACES } from './bullmq-source.js';
import type { BullJob, BullmqSource, End, Place } from './bullmq-source.js';

/** A job that is on its way is due then in the queue here: it is there, and no worker runs it. */
export const PARKED_UNTIL = Date.UTC(2100, 0, 1);
const PAGE = 1_000;
/** Jobs that one call of a script here changes at most. */
const CALL = 200;

export interface ImportReport {
  imported: number;
  /** Of these, how many an import before this one had taken. */
  resumed: number;
  /** Jobs by the queue that has them now. */
  queues: Record<string, number>;
  stayed: Partial<Record<Reason, number>>;
}

/**
 * Brings waiting jobs of BullMQ here, while its workers and producers go on. Two servers have no common transaction, so a job goes
 * by steps, after each of which the import may die and the next one goes on:
 *
 * 1. held: no worker of BullMQ can take it any more
 * 2. enqueued here, due in the year 2100
 * 3. noted as parked: it will not be given back
 * 4. it gets its due time here, unless it has it already
 * 5. forgotten in BullMQ
 *
 * So it can run in at most one of the two at any time, and is in at least one of them.
 */
export class BullmqImport {
  readonly report: ImportReport = { imported: 0, resumed: 0, queues: {}, stayed: {} };
  /** Ids that stay, so that they are passed over. */
  readonly #staying = new Set<string>();

  constructor(
    private readonly cli: Cli,
    private readonly session: Session,
    private readonly source: BullmqSource,
    private readonly target: Target,
  ) {}

  /** What an import would do, without doing it. */
  async foresee(): Promise<ImportReport> {
    for (const place of PLACES) {
      for (let offset = 0; ; offset += PAGE) {
        const jobs = await this.source.page(place, 'front', offset, PAGE);
        for (const { queue } of this.#importable(jobs)) this.#count(queue, 1);
        if (jobs.length < PAGE) break;
      }
    }
    return this.report;
  }

  async run(): Promise<ImportReport> {
    const { interruption, out } = this.cli;
    await this.source.lock(() =>
      out.progress('Another import has not ended: waiting until it goes on, or is given up'),
    );
    try {
      await this.#resume();
      for (const place of PLACES) await this.#takeAll(place, 'front');
      // Workers and producers go on meanwhile, so it is done when nothing more is found. Now the other way round: what workers take at the
      // front moves no job past the offset, and a delayed job whose time has come waits in a place that is looked at later.
      for (let found = 1; found > 0 && !interruption.happened;) {
        found = 0;
        for (const place of PLACES.toReversed()) found += await this.#takeAll(place, 'back');
      }
    } finally {
      await this.source.unlock();
    }
    return this.report;
  }

  async #resume(): Promise<void> {
    for (let last = Infinity; !this.cli.interruption.happened;) {
      const held = await this.source.held();
      if (held.length === 0) return;
      const before = this.report.imported;
      await this.#release(held.filter(({ parked }) => parked).map(({ job, note }) => releaseOf(job, note)));
      const gone: BullJob[] = [];
      const changed: BullJob[] = [];
      const plans: Plan[] = [];
      for (const { job, note } of held.filter(({ parked }) => !parked)) {
        const plan = plannedAgain(job, note);
        if (typeof plan !== 'string') plans.push(plan);
        else {
          await this.#removeCopy(job, note);
          if (job.data !== '') this.#stay(job, plan);
          (job.data === '' ? gone : changed).push(job);
        }
      }
      await this.#park(plans);
      // Somebody has given them data that cannot come: they go back.
      await this.source.giveBack(changed);
      // Somebody has removed their data: there is nothing to bring anywhere.
      if (gone.length > 0) await this.source.forget(gone);
      this.report.resumed += this.report.imported - before;
      if (held.length >= last && this.report.imported === before) return;
      last = held.length;
    }
  }

  /** Of a job that was held, and perhaps parked here before that could be noted. */
  async #removeCopy(job: BullJob, note: string): Promise<void> {
    const { producer } = this.session;
    const { queue, id } = releaseOf(job, note);
    const copy = await producer.get(queue, id);
    if (copy?.dueAt.getTime() === PARKED_UNTIL) await producer.cancel(queue, id);
  }

  /** @returns how many it has brought here, and how many it has to look at again */
  async #takeAll(place: Place, from: End): Promise<number> {
    const before = this.report.imported;
    let again = 0;
    for (let offset = 0; !this.cli.interruption.happened;) {
      const jobs = await this.source.page(place, from, offset, PAGE);
      const plans = this.#importable(jobs);
      offset += jobs.length - plans.length;
      const taken = plans.length === 0 ? [] : await this.source.take(plans);
      again += plans.length - taken.length;
      await this.#park(taken);
      this.cli.out.progress(`${counted(this.report.imported, 'job')} imported`);
      if (jobs.length < PAGE && taken.length === 0) break;
    }
    return this.report.imported - before + again;
  }

  #importable(jobs: readonly BullJob[]): Plan[] {
    return jobs.flatMap((job) => {
      if (this.#staying.has(job.id)) return [];
      const plan = planOf(job, this.target);
      if (typeof plan !== 'string') return [plan];
      this.#stay(job, plan);
      return [];
    });
  }

  #stay(job: BullJob, reason: Reason): void {
    this.#staying.add(job.id);
    this.report.stayed[reason] = (this.report.stayed[reason] ?? 0) + 1;
  }

  #count(queue: string, jobs: number): void {
    this.report.imported += jobs;
    this.report.queues[queue] = (this.report.queues[queue] ?? 0) + jobs;
  }

  /** From step 2 on. */
  async #park(plans: readonly Plan[]): Promise<void> {
    for (const [queue, ofQueue] of grouped(plans, ({ queue }) => queue)) {
      const outcomes = await this.#enqueue(queue, ofQueue);
      const parked: Plan[] = [];
      const back: BullJob[] = [];
      let failure: Error | undefined;
      for (const [n, outcome] of outcomes.entries()) {
        const plan = ofQueue[n]!;
        if (outcome === 'parked') parked.push(plan);
        else if (outcome instanceof Error) {
          failure ??= outcome;
          // Perhaps it is here: the next import finds it held, and goes on with it.
          if (!maybeAccepted(outcome)) back.push(plan.job);
        } else {
          this.#stay(plan.job, outcome);
          back.push(plan.job);
        }
      }
      await this.source.giveBack(back);
      if (parked.length > 0) {
        await this.source.parked(parked.map(({ job }) => job));
        await this.#release(parked);
      }
      if (failure) throw failure;
    }
  }

  async #enqueue(queue: string, plans: readonly Plan[]): Promise<('parked' | Reason | Error)[]> {
    const items = plans.map(({ payload, id, options }) => ({
      payload,
      id,
      ...options,
      at: PARKED_UNTIL,
      onDuplicate: 'keep' as const,
      onDead: 'keep' as const,
    }));
    try {
      return (await this.session.producer.enqueueMany(queue, items)).map(outcomeOf);
    } catch (error) {
      if (error instanceof BulkEnqueueError) {
        const results = error.results as readonly (EnqueueResult | { error: Error })[];
        return results.map((result) => ('error' in result ? result.error : outcomeOf(result)));
      }
      // One that is refused keeps all from being sent: it is looked for by halves.
      if (plans.length === 1) return [isRefusal(error) ? 'refused' : (error as Error)];
      const half = Math.ceil(plans.length / 2);
      const first = await this.#enqueue(queue, plans.slice(0, half));
      return [...first, ...(await this.#enqueue(queue, plans.slice(half)))];
    }
  }

  /** Steps 4 and 5. A job that was released before, or that somebody has rescheduled or cancelled here, stays as it is. */
  async #release(plans: readonly Release[]): Promise<void> {
    const { context } = this.session;
    for (const [queue, ofQueue] of grouped(plans, ({ queue }) => queue)) {
      const shards = context.stores(queue).length;
      for (const [shard, ofShard] of grouped(ofQueue, ({ id }) => shardOf(id, shards))) {
        const store = context.ofShard(queue, shard);
        for (let at = 0; at < ofShard.length; at += CALL) {
          const args = ofShard.slice(at, at + CALL).flatMap(({ id, dueAt }) => [id, 'a', dueAt, PARKED_UNTIL]);
          await store.run('rescheduleMany', ofShard[at]!.id, [0, ...args]);
        }
        await this.source.forget(ofShard.map(({ job }) => job));
        this.#count(queue, ofShard.length);
      }
    }
  }
}

function outcomeOf({ outcome, dueAt }: EnqueueResult): 'parked' | Reason {
  return outcome === 'created' || dueAt.getTime() === PARKED_UNTIL ? 'parked' : 'conflict';
}

function maybeAccepted(error: Error): boolean {
  return (error as { maybeAccepted?: boolean }).maybeAccepted === true;
}

function isRefusal(error: unknown): boolean {
  return error instanceof DelayQueueError && /^ERR_DQ_(?:PAYLOAD|SCHEMA|INVALID)/.test(error.code);
}

function grouped<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
