import type { BulkActOptions, JobChoice } from '../../inspection/bulk-options.js';
import type { BulkActPage, BulkActResult } from '../../inspection/bulk-results.js';
import { DelayQueueError } from '../../delay-queue.errors.js';
import type { Cli } from '../cli.js';
import type { Session } from '../connection/session.js';
import { EXIT, exitCodeOf, exitCodeOfOutcomes } from '../exit-codes.js';
import { confirm } from '../terminal/confirmation.js';
import { counted } from '../terminal/numbers.js';
import type { Column, RowWriter } from '../terminal/output.js';
import { iso } from '../terminal/times.js';
import { choiceOf, countChosen } from './chosen-jobs.js';
import type { ChoiceFlags } from './chosen-jobs.js';

/** What a command does to each of the jobs that it was given. */
export interface BulkAct {
  /** For the question: `Cancel 5 jobs of queue "payment.check"`. */
  readonly verb: string;
  /** What the question adds behind that. */
  readonly also?: (session: Session) => string;
  /** The outcome of a job to which it was done. */
  readonly done: string;
  /** Something is lost by it, so it asks also for jobs that were named. */
  readonly destroys?: boolean;
  /** Another queue that it uses, and may make. */
  readonly target?: string;
  call(session: Session, choice: JobChoice, options: BulkActOptions, now: number): Promise<BulkActPage<string>>;
}

type Row = { queue: string } & BulkActResult<string>;

/** Most ids in a call. */
const CALL = 1_000;

export async function runBulkAct(
  cli: Cli,
  queue: string,
  ids: readonly string[],
  flags: ChoiceFlags,
  act: BulkAct,
): Promise<number> {
  const choiceAt = await choiceOf(cli, ids, flags);
  const session = await cli.connect([queue], act.target === undefined ? [] : [act.target]);
  const now = await session.now();
  const choice = choiceAt(now);
  const count = await countChosen(session, queue, choice, now);
  const { dryRun = false, yes } = flags;
  if (count > 0 && !dryRun && (act.destroys || !('ids' in choice))) {
    const question = `${act.verb} ${counted(count, 'job')} of queue "${queue}"${act.also?.(session) ?? ''}?`;
    await confirm({ question, yes });
  }
  return new BulkRun(cli, queue, act, count, 'ids' in choice, dryRun).through(session, choice, now);
}

/** One act on its way through many calls. */
class BulkRun {
  readonly #outcomes = new Map<string, number>();
  readonly #table: RowWriter<Row>;
  #met = 0;

  constructor(
    private readonly cli: Cli,
    private readonly queue: string,
    private readonly act: BulkAct,
    private readonly count: number,
    private readonly named: boolean,
    private readonly dryRun: boolean,
  ) {
    this.#table = cli.out.rows(columnsOf(cli));
  }

  /** @param now when it began, so that a moment is the same one for all calls */
  async through(session: Session, choice: JobChoice, now: number): Promise<number> {
    const { interruption, out } = this.cli;
    interruption.act();
    let failure: unknown;
    try {
      for (const part of partsOf(choice)) {
        let cursor: string | undefined;
        do {
          const options = { dryRun: this.dryRun, ...(cursor !== undefined && { cursor }) };
          const page = await this.act.call(session, part, options, now);
          this.#take(page.results);
          cursor = page.cursor;
        } while (cursor !== undefined && !interruption.happened);
        if (interruption.happened) break;
      }
    } catch (error) {
      failure = error;
    }
    this.#table.end();
    out.note(this.#summary());
    if (failure === undefined) return this.#exitCode();
    out.error((failure as Error).message, failure instanceof DelayQueueError ? failure.code : undefined);
    return this.#met > 0 ? EXIT.partly : exitCodeOf(failure);
  }

  #take(results: readonly BulkActResult<string>[]): void {
    const { out } = this.cli;
    // A person who gave a range wants to know what did not work, and how many did.
    const all = this.named || !out.isTerminal;
    for (const result of results) {
      this.#outcomes.set(result.outcome, (this.#outcomes.get(result.outcome) ?? 0) + 1);
      if (all || result.outcome !== this.act.done) this.#table.add({ queue: this.queue, ...result });
    }
    this.#met += results.length;
    out.progress(`${this.#met} of ${counted(this.count, 'job')}`);
  }

  #summary(): string {
    const done = this.#outcomes.get(this.act.done) ?? 0;
    const others = [...this.#outcomes].filter(([outcome]) => outcome !== this.act.done);
    const rest = others.length === 0 ? '' : `; ${others.map(([outcome, jobs]) => `${jobs} ${outcome}`).join(', ')}`;
    const stopped = this.cli.interruption.happened ? 'Interrupted. ' : '';
    return `${stopped}${this.dryRun ? 'Would be ' : ''}${this.act.done}: ${done} of ${counted(this.#met, 'job')}${rest}.`;
  }

  #exitCode(): number {
    const done = this.#outcomes.get(this.act.done) ?? 0;
    const missing = this.#outcomes.get('notFound') ?? 0;
    return exitCodeOfOutcomes(done, missing, this.#met - done - missing);
  }
}

function* partsOf(choice: JobChoice): Generator<JobChoice> {
  if (!('ids' in choice)) yield choice;
  else for (let at = 0; at < choice.ids.length; at += CALL) yield { ...choice, ids: choice.ids.slice(at, at + CALL) };
}

function columnsOf({ times }: Cli): Column<Row>[] {
  return [
    { title: 'id', of: ({ id }) => id },
    { title: 'outcome', of: ({ outcome }) => outcome },
    { title: 'was', of: ({ state }) => state ?? '-' },
    { title: 'due', of: ({ dueAt }) => (dueAt ? times.shown(dueAt) : ''), exact: ({ dueAt }) => iso(dueAt) },
  ];
}
