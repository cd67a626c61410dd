import { Option } from 'commander';
import type { Command } from 'commander';
import { REQUEUE_RULES } from '../../inspection/inspector-options.js';
import type { RequeueDraft, RequeueOptions } from '../../inspection/inspector-options.js';
import type { DeadReason } from '../../job/error-record.js';
import { quoted } from '../../job/duration.js';
import { readOptions } from '../../job/option-rules.js';
import { assertGroup } from '../../job/queue-limits.js';
import type { JobSnapshot } from '../../redis/job-snapshot.js';
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
  group?: string;
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
    .option('--keep-attempts', 'one more run instead of all attempts')
    .option('--group <group>', 'of the dead letters whose ids are given');
  addActFlags(command).action(
    action(async (cli, flags: RequeueFlags, queue: string, given: string[]) => {
      const { delay, spread, reason, keepAttempts, group, dryRun, yes } = flags;
      const times: RequeueOptions = { ...(delay !== undefined && { delay }), ...(spread !== undefined && { spread }) };
      readOptions(times, REQUEUE_RULES, {} as RequeueDraft, asFlags);
      const moment = flags.before === undefined ? undefined : cli.times.moment(flags.before, '--before');
      const most = mostOf(flags);
      const { session, asked } = await begin(cli, queue, given, flags);
      const filter = {
        ...(moment && { before: moment.at(await session.now()) }),
        ...(reason !== undefined && { reason }),
      };
      const meant = await matching(session, queue, asked, { ...filter, most, group });
      const options: RequeueOptions = { ...filter, ...times, resetAttempts: !keepAttempts };
      if (dryRun || meant.count === 0) return tell(cli, queue, 'requeued', meant.count, meant.asked, dryRun);
      if (!asked)
        await confirm({ question: `Requeue ${counted(meant.count, 'dead letter')} of queue "${queue}"?`, yes });
      // A spread is of one call.
      const part = spread === undefined ? PART : meant.count;
      const done = await inParts(cli, meant, part, async (ids, more) => {
        return (await session.inspector.requeueDead(queue, ids, { ...options, ...more })).requeued;
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
    .option('--limit <n>', 'most jobs')
    .option('--group <group>', 'of the dead letters whose ids are given');
  addActFlags(command).action(
    action(async (cli, flags: Flags, queue: string, given: string[]) => {
      const most = mostOf(flags);
      const { session, asked } = await begin(cli, queue, given, flags);
      const { group, dryRun, yes } = flags;
      const meant = await matching(session, queue, asked, { most, group });
      if (dryRun || meant.count === 0) return tell(cli, queue, 'removed', meant.count, meant.asked, dryRun);
      await confirm({ question: `Remove ${counted(meant.count, 'dead letter')} of queue "${queue}" for good?`, yes });
      const done = await inParts(cli, meant, PART, async (ids, more) => {
        return (await session.inspector.removeDead(queue, ids, more)).removed;
      });
      return tell(cli, queue, 'removed', done, meant.asked);
    }),
  );
}

/** @returns nothing asked for with `--all` */
async function begin(cli: Cli, queue: string, given: string[], { all, group }: Flags) {
  if (given.length > 0 === (all === true))
    throw usage('Say which dead letters: their ids, - for ids from stdin, or --all.');
  if (group !== undefined && all) throw usage('--group is of dead letters whose ids are given.');
  if (group !== undefined) assertGroup(group, '--group');
  const asked = all ? undefined : await idsOf(given);
  return { session: await cli.connect([queue]), asked };
}

function mostOf({ limit }: Flags): number {
  return limit === undefined ? Infinity : countOf(limit, '--limit');
}

/** Dead letters that a command is about. */
interface Meant {
  readonly count: number;
  /** Those that were found one by one, in lists for one call each; undefined for all there are. */
  readonly lists?: readonly NamedDead[];
  /** How many were named; without names as many as there are. */
  readonly asked: number;
}

interface NamedDead {
  readonly ids: readonly string[];
  /** Given where ids alone do not say which jobs are meant. */
  readonly group?: string | undefined;
}

interface Matching {
  readonly reason?: DeadReason;
  readonly before?: number;
  readonly most: number;
  readonly group: string | undefined;
}

async function matching(
  session: Session,
  queue: string,
  asked: readonly string[] | undefined,
  { reason, before, most, group }: Matching,
): Promise<Meant> {
  if (!asked && reason === undefined && before === undefined) {
    const count = Math.min(most, (await session.inspector.counts(queue)).dead);
    return { count, asked: count };
  }
  const wanted = asked && new Set(asked);
  const found = new Map<string, JobSnapshot[]>();
  let count = 0;
  for await (const job of listedJobs(session, queue, 'dead', before === undefined ? {} : { to: before })) {
    if (count >= most) break;
    const isMeant = wanted?.has(job.id) !== false && (reason === undefined || job.deadReason === reason);
    if (!isMeant || (group !== undefined && job.group !== group)) continue;
    const ofOneId = found.get(job.id);
    if (ofOneId) ofOneId.push(job);
    else found.set(job.id, [job]);
    count++;
  }
  const lists = listsOf(found, group, asked !== undefined);
  count = lists.reduce((sum, { ids }) => sum + ids.length, 0);
  return { count, lists, asked: asked?.length ?? count };
}

/** Groups in several shards may have dead letters of one id. Of those that are named the one without a group comes first, as everywhere. */
function listsOf(
  found: ReadonlyMap<string, readonly JobSnapshot[]>,
  group: string | undefined,
  areNamed: boolean,
): NamedDead[] {
  const ids: string[] = [];
  const others: NamedDead[] = [];
  for (const [id, jobs] of found) {
    const inGroups = jobs.filter((job) => job.group !== undefined);
    if (areNamed && inGroups.length > 1 && inGroups.length === jobs.length) {
      throw usage(`Several groups have a dead letter with the id ${quoted(id)}. Say which one is meant: --group.`);
    }
    if (jobs.length === 1 || inGroups.length < jobs.length) ids.push(id);
    if (!areNamed && jobs.length > 1) others.push(...inGroups.map((job) => ({ ids: [id], group: job.group })));
  }
  return [{ ids, group }, ...others];
}

/** Some at a time: Ctrl C ends it between two calls. @returns how many it was done to */
async function inParts(
  { interruption, out }: Cli,
  { count, lists }: Meant,
  part: number,
  call: (ids: readonly string[] | 'all', options: { limit: number; group?: string }) => Promise<number>,
): Promise<number> {
  interruption.act();
  let done = 0;
  const tellProgress = () => out.progress(`${done} of ${counted(count, 'job')}`);
  for (const { ids, group } of lists ?? []) {
    for (let at = 0; at < ids.length && !interruption.happened; at += part) {
      const chunk = ids.slice(at, at + part);
      done += await call(chunk, { limit: chunk.length, ...(group !== undefined && { group }) });
      tellProgress();
    }
  }
  for (let changed = -1; !lists && done < count && changed !== 0 && !interruption.happened;) {
    changed = await call('all', { limit: Math.min(part, count - done) });
    done += changed;
    tellProgress();
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
