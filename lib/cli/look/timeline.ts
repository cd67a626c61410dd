import type { Command } from 'commander';
import type { Timeline } from '../../inspection/timeline.js';
import { parseDuration } from '../../job/duration.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import { usage } from '../exit-codes.js';
import type { Column } from '../terminal/output.js';
import { counted, countOf } from '../terminal/numbers.js';
import { rangeIn } from '../terminal/range.js';
import { span } from '../terminal/times.js';

const MOST_BUCKETS = 120;
const BAR = 40;

interface Flags {
  for?: string;
  from?: string;
  to?: string;
  buckets: string;
}

interface Bucket {
  readonly from: Date;
  readonly jobs: number;
}

export function addTimeline(program: Command): void {
  program
    .command('timeline')
    .argument('<queue>')
    .description('how many jobs fall due when')
    .option('--for <duration>', 'how far ahead (default 24h)')
    .option('--from <time>', 'default now')
    .option('--to <time>', 'instead of --for')
    .option('--buckets <n>', 'parts of the time', '24')
    .action(
      action(async (cli, flags: Flags, queue: string) => {
        if (flags.for !== undefined && flags.to !== undefined) throw usage('Give either --for or --to.');
        const buckets = countOf(flags.buckets, '--buckets', MOST_BUCKETS);
        const length = parseDuration(flags.for ?? '24h', '--for', { min: 1 });
        const rangeAt = rangeIn(cli.times, { from: 'now', ...flags });
        const session = await cli.connect([queue]);
        const { from = 0, to = from + length } = rangeAt(await session.now());
        show(cli, queue, await session.inspector.timeline(queue, { from, to, buckets }));
      }),
    );
}

function show({ out, times }: Cli, queue: string, timeline: Timeline): void {
  if (out.isJson) return out.json({ queue, ...timeline });
  const { from, widthMs, counts, overdue, after, firstDueAt, lastDueAt } = timeline;
  const most = Math.max(1, ...counts);
  const columns: Column<Bucket>[] = [
    { title: 'from', of: (bucket) => times.shown(bucket.from), exact: (bucket) => bucket.from.toISOString() },
    { title: 'jobs', of: ({ jobs }) => String(jobs), right: true },
    { title: '', of: ({ jobs }) => bar(jobs / most), forPeople: true },
  ];
  const buckets = counts.map((jobs, n) => ({ from: new Date(from.getTime() + n * widthMs), jobs }));
  out.table(columns, buckets);
  if (!out.isTerminal) return;
  out.note(
    `Each line is ${span(widthMs)}. Due already: ${counted(overdue, 'job')}. Due later: ${counted(after, 'job')}.`,
  );
  if (firstDueAt) out.note(`The first one is due ${times.shown(firstDueAt)}, the last one ${times.shown(lastDueAt)}.`);
}

function bar(part: number): string {
  const eighths = Math.round(part * BAR * 8);
  const rest = eighths % 8;
  return '█'.repeat(Math.floor(eighths / 8)) + (rest > 0 ? '▏▎▍▌▋▊▉'[rest - 1] : part > 0 && eighths === 0 ? '▏' : '');
}
