import { Option } from 'commander';
import type { Command } from 'commander';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import type { Session } from '../connection/session.js';
import { listedJobs, STATES } from './listed-jobs.js';
import type { State } from './listed-jobs.js';
import { usage } from '../exit-codes.js';
import { counted, countOf } from '../terminal/numbers.js';
import { rangeIn } from '../terminal/range.js';
import type { Range } from '../terminal/range.js';
import { jobColumns, withoutPayload } from './job-columns.js';

export interface ListFlags {
  state: State;
  from?: string;
  to?: string;
  limit: string;
  all?: boolean;
  payload?: boolean;
}

export function addList(program: Command): void {
  program
    .command('list')
    .argument('<queue>')
    .description('jobs in one state, in the order of their due times')
    .addOption(new Option('--state <state>', 'which ones').choices(STATES).default('delayed'))
    .option('--from <time>', 'due from then on; dead and completed jobs by their end')
    .option('--to <time>', 'before then')
    .option('--limit <n>', 'most jobs', '50')
    .option('--all', 'all of them')
    .option('--payload', 'with their payloads')
    .action(
      action(async (cli, flags: ListFlags, queue: string) => {
        const listing = listingOf(cli, flags);
        await list(cli, await cli.connect([queue]), queue, flags, listing);
      }),
    );
}

/** What is asked for, before anybody is asked. */
export interface Listing {
  readonly most: number;
  readonly rangeAt: (now: number) => Range;
}

/** @throws CommandError for what cannot be listed */
export function listingOf(cli: Cli, flags: ListFlags): Listing {
  const { state, from, to, all, limit } = flags;
  if (state === 'running' && (from !== undefined || to !== undefined)) {
    throw usage('--from, --to: running jobs are listed by when they were claimed, and have no range.');
  }
  return { most: all ? Infinity : countOf(limit, '--limit'), rangeAt: rangeIn(cli.times, flags) };
}

export async function list(
  cli: Cli,
  session: Session,
  queue: string,
  flags: ListFlags,
  { most, rangeAt }: Listing,
): Promise<void> {
  const now = await session.now();
  const range = rangeAt(now);
  const table = cli.out.rows(jobColumns(flags.state, cli.times, now, flags.payload === true));
  let shown = 0;
  let hasMore = false;
  for await (const job of listedJobs(session, queue, flags.state, range)) {
    if (shown >= most) {
      hasMore = true;
      break;
    }
    table.add(flags.payload ? job : withoutPayload(job));
    shown++;
  }
  table.end();
  if (hasMore) cli.out.note(`The first ${counted(shown, 'job')}; --limit or --all shows more.`);
  else if (shown === 0 && cli.out.isTerminal) cli.out.note(`No ${flags.state} jobs.`);
}
