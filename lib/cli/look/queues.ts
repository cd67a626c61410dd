import type { Command } from 'commander';
import type { QueueCounts } from '../../inspection/queue-counts.js';
import { action } from '../cli.js';
import type { Session } from '../connection/session.js';
import { EXIT } from '../exit-codes.js';
import type { Column } from '../terminal/output.js';
import { iso, span } from '../terminal/times.js';
import type { Times } from '../terminal/times.js';

export type QueueState = 'ok' | 'lagging' | 'paused' | 'publishingPaused' | 'unreadable';

export type QueueRow = { queue: string; state: QueueState; error?: string } & Partial<QueueCounts>;

export const LAGGING_MS = 30_000;
const AT_ONCE = 20;
const WORDS: Partial<Record<QueueState, string>> = { publishingPaused: 'publishing paused' };

export function addQueues(program: Command): void {
  program
    .command('queues')
    .description('all queues: their state, and how many jobs they have')
    .action(
      action(async (cli) => {
        const session = await cli.connect();
        const now = await session.now();
        const rows = await readQueues(session, session.names);
        cli.out.table(queueColumns(cli.times, now), rows);
        if (rows.length === 0)
          cli.out.note(`No queue was ever used under the prefix "${session.context.options.prefix}".`);
        return rows.some(({ state }) => state === 'unreadable') ? EXIT.partly : EXIT.done;
      }),
    );
}

export async function readQueues(session: Session, names: readonly string[]): Promise<QueueRow[]> {
  const rows: QueueRow[] = [];
  for (let at = 0; at < names.length; at += AT_ONCE) {
    rows.push(...(await Promise.all(names.slice(at, at + AT_ONCE).map((name) => readQueue(session, name)))));
  }
  return rows;
}

async function readQueue({ inspector, context }: Session, queue: string): Promise<QueueRow> {
  try {
    const counts = await inspector.counts(queue);
    return { queue, state: stateOf(counts), ...counts };
  } catch (error) {
    // A damaged queue must not hide the others; a server that is gone is no fault of a queue.
    if (!context.connection.isReady) throw error;
    return { queue, state: 'unreadable', error: (error as Error).message };
  }
}

function stateOf({ paused, publishingPaused, lagMs }: QueueCounts): QueueState {
  if (paused) return 'paused';
  if (publishingPaused) return 'publishingPaused';
  return lagMs > LAGGING_MS ? 'lagging' : 'ok';
}

export function queueColumns(times: Times, now: number): Column<QueueRow>[] {
  const count = (key: 'delayed' | 'due' | 'running' | 'dead'): Column<QueueRow> => ({
    title: key,
    of: (row) => String(row[key] ?? '-'),
    right: true,
  });
  return [
    { title: 'queue', of: ({ queue }) => queue },
    { title: 'state', of: ({ state }) => WORDS[state] ?? state, exact: ({ state }) => state },
    count('delayed'),
    count('due'),
    count('running'),
    count('dead'),
    {
      title: 'lag',
      of: ({ lagMs }) => (lagMs === undefined ? '-' : lagMs === 0 ? '0' : span(lagMs)),
      exact: ({ lagMs }) => String(lagMs ?? ''),
      right: true,
    },
    {
      title: 'next due',
      of: ({ nextDueAt, error }) => error ?? times.relative(nextDueAt, now),
      exact: ({ nextDueAt, error }) => error ?? iso(nextDueAt),
    },
  ];
}
