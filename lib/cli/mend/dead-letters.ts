import { Option } from 'commander';
import type { Command } from 'commander';
import { REQUEUE_RULES } from '../../inspection/inspector-options.js';
import type { RequeueDraft, RequeueOptions } from '../../inspection/inspector-options.js';
import type { DeadReason } from '../../job/error-record.js';
import { readOptions } from '../../job/option-rules.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import type { Session } from '../connection/session.js';
import { exitCodeOfOutcomes, usage } from '../exit-codes.js';
import { listedJobs } from '../look/listed-jobs.js';
import { confirm } from '../terminal/confirmation.js';
import { asFlags } from '../terminal/flag-names.js';
import { counted, countOf } from '../terminal/numbers.js';
import { addActFlags, idsOf } from './chosen-jobs.js';
import type { ActFlags } from './chosen-jobs.js';

interface Flags extends ActFlags {
  all?: boolean;
  limit?: string;
}

interface RequeueFlags extends Flags {
  delay?: string;
  spread?: string;
  reason?: DeadReason;
  before?: string;
  keepAttempts?: boolean;
}

const REASONS: readonly DeadReason[] = ['exhausted', 'discarded', 'leaseLost', 'undecodable', 'invalid', 'expired'];
const PART = 2_000;

export function addRequeue(program: Command): void {
  const command = program
    .command('requeue')
    .argument('<queue>')
    .argument('[ids...]')
    .description('makes dead letters due again')
    .option('--all', 'all of them, the oldest first')
    .option('--delay <duration>', 'so long from now')
    .option('--spread <duration>', 'spread evenly over this time')
    .addOption(new Option('--reason <reason>', 'only those that died of it').choices(REASONS))
    .option('--before <time>', 'only those that died before then')
    .option('--limit <n>', 'most jobs')
    .option('--keep-attempts', 'one more run instead of all attempts');
  addActFlags(command).action(
    action(async (cli, flags: RequeueFlags, queue: string, given: string[]) => {
      const { delay, spread, reason, keepAttempts, dryRun, yes } = flags;
      const times: RequeueOptions = { ...(delay !== undefined && { delay }), ...(spread !== undefined && { spread }) };
      readOptions(times, REQUEUE_RULES, {} as RequeueDraft, asFlags);
      const moment = flags.before === undefined ? undefined : cli.times.moment(flags.before, '--before');
      const most = mostOf(flags);
      const { session, asked } = await begin(cli, queue, given, flags);
      const filter = {
        ...(moment && { before: moment.at(await session.now()) }),
        ...(reason !== undefined && { reason }),
      };
      const meant = await matching(session, queue, asked, { ...filter, most });
      const options: RequeueOptions = { ...filter, ...times, resetAttempts: !keepAttempts };
      if (dryRun || meant.count === 0) return tell(cli, queue, 'requeued', meant.count, meant.asked, dryRun);
      if (!asked)
        await confirm({ question: `Requeue ${counted(meant.count, 'dead letter')} of queue "${queue}"?`, yes });
      // A spread is of one call.
      const part = spread === undefined ? PART : meant.count;
      const done = await inParts(cli, meant, part, async (ids, limit) => {
        return (await session.inspector.requeueDead(queue, ids, { ...options, limit })).requeued;
      });
      return tell(cli, queue, 'requeued', done, meant.asked);
    }),
  );
}

export function addRemoveDead(program: Command): void {
  const command = program
    .command('remove-dead')
    .argument('<queue>')
    .argument('[ids...]')
    .description('removes dead letters for good')
    .option('--all', 'all of them, the oldest first')
    .option('--limit <n>', 'most jobs');
  addActFlags(command).action(
    action(async (cli, flags: Flags, queue: string, given: string[]) => {
      const most = mostOf(flags);
      const { session, asked } = await begin(cli, queue, given, flags);
      const meant = await matching(session, queue, asked, { most });
      const { dryRun, yes } = flags;
      if (dryRun || meant.count === 0) return tell(cli, queue, 'removed', meant.count, meant.asked, dryRun);
      await confirm({ question: `Remove ${counted(meant.count, 'dead letter')} of queue "${queue}" for good?`, yes });
      const done = await inParts(cli, meant, PART, async (ids, limit) => {
        return (await session.inspector.removeDead(queue, ids, { limit })).removed;
      });
      return tell(cli, queue, 'removed', done, meant.asked);
    }),
  );
}

/** @returns nothing asked for with `--all` */
async function begin(cli: Cli, queue: string, given: string[], { all }: Flags) {
  if (given.length > 0 === (all === true))
    throw usage('Say which dead letters: their ids, - for ids from stdin, or --all.');
  const asked = all ? undefined : await idsOf(given);
  return { session: await cli.connect([queue]), asked };
}

function mostOf({ limit }: Flags): number {
  return limit === undefined ? Infinity : countOf(limit, '--limit');
}

/** Dead letters that a command is about. */
interface Meant {
  readonly count: number;
  /** Of those that were named: the ones that are dead. */
  readonly ids?: readonly string[];
  /** How many were named; without names as many as there are. */
  readonly asked: number;
}

async function matching(
  session: Session,
  queue: string,
  asked: readonly string[] | undefined,
  { reason, before, most }: { reason?: DeadReason; before?: number; most: number },
): Promise<Meant> {
  if (!asked && reason === undefined && before === undefined) {
    const count = Math.min(most, (await session.inspector.counts(queue)).dead);
    return { count, asked: count };
  }
  const wanted = asked && new Set(asked);
  const ids: string[] = [];
  for await (const job of listedJobs(session, queue, 'dead', before === undefined ? {} : { to: before })) {
    if (ids.length >= most) break;
    if (wanted?.has(job.id) !== false && (reason === undefined || job.deadReason === reason)) ids.push(job.id);
  }
  return asked ? { count: ids.length, ids, asked: asked.length } : { count: ids.length, asked: ids.length };
}

/** Some at a time: Ctrl C ends it between two calls. @returns how many it was done to */
async function inParts(
  { interruption, out }: Cli,
  { count, ids }: Meant,
  part: number,
  call: (ids: readonly string[] | 'all', limit: number) => Promise<number>,
): Promise<number> {
  interruption.act();
  let done = 0;
  for (let at = 0; at < count && !interruption.happened;) {
    const limit = Math.min(part, count - at);
    const changed = await call(ids?.slice(at, at + limit) ?? 'all', limit);
    done += changed;
    at += ids ? limit : changed;
    out.progress(`${done} of ${counted(count, 'job')}`);
    if (!ids && changed === 0) break;
  }
  return done;
}

function tell(
  { out, interruption }: Cli,
  queue: string,
  word: string,
  done: number,
  asked: number,
  dryRun = false,
): number {
  if (out.isJson) out.json({ queue, [word]: done, dryRun });
  else out.line(out.isTerminal ? `${dryRun ? 'Would be ' : ''}${word}: ${done}` : `${word}\t${done}`);
  if (interruption.happened) out.note(`Interrupted after ${done} of ${counted(asked, 'job')}.`);
  return exitCodeOfOutcomes(done, asked - done, 0);
}
