import type { Command } from 'commander';
import { action } from '../cli.js';
import type { Column } from '../terminal/output.js';
import { iso } from '../terminal/times.js';

const KINDS = ['enqueued', 'completed', 'failed', 'retried', 'dead', 'expired', 'skipped'] as const;

type Row = { queue: string; since: Date | undefined } & Record<(typeof KINDS)[number], number>;

export function addStats(program: Command): void {
  program
    .command('stats')
    .argument('[queue]')
    .description('what became of all jobs of a queue, or of each queue, since its first one')
    .action(
      action(async (cli, _: object, queue?: string) => {
        const session = await cli.connect(queue === undefined ? undefined : [queue]);
        const columns: Column<Row>[] = [
          { title: 'queue', of: (row) => row.queue },
          ...KINDS.map((kind) => ({ title: kind, of: (row: Row) => String(row[kind]), right: true })),
          { title: 'since', of: ({ since }) => cli.times.shown(since), exact: ({ since }) => iso(since) },
        ];
        const table = cli.out.rows(columns);
        for (const name of queue === undefined ? session.names : [queue]) {
          table.add({ queue: name, ...(await session.inspector.totals(name)) });
        }
        table.end();
      }),
    );
}
