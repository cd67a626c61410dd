import { Option } from 'commander';
import type { Command } from 'commander';
import type { JobSnapshot } from '../../redis/job-snapshot.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import type { Session } from '../connection/session.js';
import { counted } from '../terminal/numbers.js';
import type { Column } from '../terminal/output.js';
import { iso } from '../terminal/times.js';
import { errorText } from './job-columns.js';
import { list, listingOf } from './list.js';
import type { Listing, ListFlags } from './list.js';
import { listedJobs } from './listed-jobs.js';

interface Group {
  reason: string;
  /** Numbers are folded: else each id in a message would make a group of its own. */
  error: string;
  count: number;
  first: Date | undefined;
  last: Date | undefined;
  /** The newest one. */
  example: string;
}

const MOST_GROUPS = 1_000;

export function addDead(program: Command): void {
  program
    .command('dead')
    .argument('<queue>')
    .description('dead letters, or what they died of')
    .option('--group', 'by reason and error, the largest group first')
    .option('--from <time>', 'died from then on')
    .option('--to <time>', 'died before then')
    .option('--limit <n>', 'most jobs', '50')
    .option('--all', 'all of them')
    .option('--payload', 'with their payloads')
    .addOption(new Option('--state <state>').default('dead').hideHelp())
    .action(
      action(async (cli, flags: ListFlags & { group?: boolean }, queue: string) => {
        const listing = listingOf(cli, { ...flags, state: 'dead' });
        const session = await cli.connect([queue]);
        if (flags.group) await groups(cli, session, queue, listing);
        else await list(cli, session, queue, { ...flags, state: 'dead' }, listing);
      }),
    );
}

async function groups(cli: Cli, session: Session, queue: string, { rangeAt }: Listing): Promise<void> {
  const found = new Map<string, Group>();
  let left = 0;
  const range = rangeAt(await session.now());
  for await (const job of listedJobs(session, queue, 'dead', range)) if (!grouped(found, job)) left++;
  const columns: Column<Group>[] = [
    { title: 'jobs', of: ({ count }) => String(count), right: true },
    { title: 'reason', of: ({ reason }) => reason },
    { title: 'first', of: ({ first }) => cli.times.shown(first), exact: ({ first }) => iso(first) },
    { title: 'last', of: ({ last }) => cli.times.shown(last), exact: ({ last }) => iso(last) },
    { title: 'example', of: ({ example }) => example },
    { title: 'error', of: ({ error }) => error },
  ];
  cli.out.table(
    columns,
    [...found.values()].toSorted((a, b) => b.count - a.count),
  );
  if (left > 0)
    cli.out.note(`Not counted: ${counted(left, 'job')} with other errors than the first ${MOST_GROUPS} kinds.`);
}

/** Dead letters come in the order of their death, so the last one is the newest. */
function grouped(found: Map<string, Group>, job: JobSnapshot): boolean {
  const reason = job.deadReason ?? 'unknown';
  const error = errorText(job).replaceAll(/[0-9]+/g, 'N');
  const key = `${reason} ${error}`;
  const at = job.lastError?.at;
  const known = found.get(key);
  if (!known && found.size >= MOST_GROUPS) return false;
  const group = known ?? { reason, error, count: 0, first: at, last: at, example: job.id };
  found.set(key, { ...group, count: group.count + 1, last: at ?? group.last, example: job.id });
  return true;
}
