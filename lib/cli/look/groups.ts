import type { Command } from 'commander';
import type { QueueGroup } from '../../inspection/limit-calls.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import type { Session } from '../connection/session.js';
import { counted, countOf } from '../terminal/numbers.js';
import type { Column } from '../terminal/output.js';
import { iso } from '../terminal/times.js';

export function addGroups(program: Command): void {
  program
    .command('groups')
    .argument('<queue>')
    .description('groups that have jobs: what waits, is due and runs; those at a limit first')
    .option('--limit <n>', 'most groups', '50')
    .option('--all', 'all of them')
    .action(
      action(async (cli, flags: { limit: string; all?: boolean }, queue: string) => {
        const most = flags.all ? Infinity : countOf(flags.limit, '--limit');
        const session = await cli.connect([queue]);
        const table = cli.out.rows(columnsOf(cli, await session.now()));
        let shown = 0;
        let hasMore = false;
        for await (const group of groupsOf(session, queue)) {
          if (shown >= most) {
            hasMore = true;
            break;
          }
          table.add(group);
          shown++;
        }
        table.end();
        if (hasMore) cli.out.note(`The first ${counted(shown, 'group')}; --limit or --all shows more.`);
        else if (shown === 0 && cli.out.isTerminal) cli.out.note('No groups.');
      }),
    );
}

async function* groupsOf({ inspector }: Session, queue: string): AsyncGenerator<QueueGroup> {
  let cursor: string | undefined;
  do {
    const page = await inspector.groups(queue, { limit: 100, ...(cursor !== undefined && { cursor }) });
    yield* page.groups;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

function columnsOf({ times }: Cli, now: number): Column<QueueGroup>[] {
  return [
    { title: 'group', of: ({ group }) => group ?? '(none)', exact: ({ group }) => group ?? '' },
    { title: 'waiting', of: ({ waiting }) => String(waiting), right: true },
    { title: 'due', of: ({ due }) => String(due), right: true },
    { title: 'running', of: ({ running }) => String(running), right: true },
    {
      title: 'limited',
      of: ({ limitedUntil }) => times.relative(limitedUntil, now),
      exact: ({ limitedUntil }) => iso(limitedUntil),
    },
  ];
}
