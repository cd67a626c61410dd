import type { Command } from 'commander';
import type { JobChoice } from '../../inspection/bulk-options.js';
import { assertStoredId } from '../../job/job-id.js';
import type { Cli } from '../cli.js';
import type { Session } from '../connection/session.js';
import { usage } from '../exit-codes.js';
import { rangeIn } from '../terminal/range.js';
import type { RangeFlags } from '../terminal/range.js';

/** Of every command that changes jobs. */
export interface ActFlags {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

export interface ChoiceFlags extends ActFlags, RangeFlags {
  readonly all?: boolean;
  readonly group?: string;
}

export function addActFlags(command: Command): Command {
  return command.option('--dry-run', 'change nothing; say what would become of each job').option('--yes', 'do not ask');
}

export function addChoiceFlags(command: Command): Command {
  command
    .option('--from <time>', 'instead of ids: due from then on')
    .option('--to <time>', 'instead of ids: due before then')
    .option('--all', 'instead of ids: all that wait for their time')
    .option('--group <group>', 'of the jobs whose ids are given');
  return addActFlags(command);
}

/**
 * Ids as they were given; `-` stands for the lines of stdin. Each id once.
 *
 * @throws InvalidIdError for what can be the id of no job
 */
export async function idsOf(given: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const id of given) {
    if (id !== '-') ids.push(id);
    else for (const line of await linesOfStdin()) ids.push(line);
  }
  return [...new Set(ids.map((id) => assertStoredId(id)))];
}

async function linesOfStdin(): Promise<string[]> {
  const text = (await process.stdin.setEncoding('utf8').toArray()).join('');
  return text.split(/\r?\n/).filter((line) => line !== '');
}

/**
 * @returns the choice by the clock of Redis
 * @throws CommandError unless it is either ids or a range, of which `--all` is the widest
 */
export async function choiceOf(
  cli: Cli,
  given: readonly string[],
  flags: ChoiceFlags,
): Promise<(now: number) => JobChoice> {
  const { from, to, all, group } = flags;
  const isRange = from !== undefined || to !== undefined;
  if ([given.length > 0, isRange, all === true].filter(Boolean).length !== 1) {
    throw usage('Say which jobs: their ids, - for ids from stdin, --from and --to, or --all.');
  }
  if (group !== undefined && given.length === 0) throw usage('--group is of jobs whose ids are given.');
  if (all) return () => ({ from: 0 });
  if (isRange) return rangeIn(cli.times, flags);
  const ids = await idsOf(given);
  return () => ({ ids, ...(group !== undefined && { group }) });
}

const FAR_AHEAD_MS = 99 * 365 * 86_400_000;

/** How many jobs a choice has: of ids as many as they are, of a range those that wait in it now. */
export async function countChosen(
  { inspector }: Session,
  queue: string,
  choice: JobChoice,
  now: number,
): Promise<number> {
  if ('ids' in choice) return choice.ids.length;
  const { from = 0, to = Math.max(now + FAR_AHEAD_MS, Number(from) + 1) } = choice;
  const { counts } = await inspector.timeline(queue, { from, to, buckets: 1 });
  return counts[0]!;
}
