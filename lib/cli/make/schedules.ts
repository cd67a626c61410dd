import type { Command } from 'commander';
import type { ScheduleSnapshot } from '../../recurring/schedule-list.js';
import { assertScheduleId } from '../../recurring/schedule-options.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import type { Session } from '../connection/session.js';
import { EXIT, notFound } from '../exit-codes.js';
import { addActFlags } from '../mend/chosen-jobs.js';
import type { ActFlags } from '../mend/chosen-jobs.js';
import { payloadText } from '../look/job-columns.js';
import { confirm } from '../terminal/confirmation.js';
import type { Column } from '../terminal/output.js';
import { counted } from '../terminal/numbers.js';
import { rangeIn } from '../terminal/range.js';
import { iso, span } from '../terminal/times.js';

type Row = Omit<ScheduleSnapshot, 'payload'> & { payload?: unknown };

export function addSchedules(program: Command): void {
  const schedules = program
    .command('schedules')
    .description('recurring jobs: list, pause, resume, trigger, backfill, remove');
  addList(schedules);
  addPause(schedules, 'pause', 'makes no more occurrences, and those that have not begun go');
  addPause(schedules, 'resume', 'goes on from now');
  addTrigger(schedules);
  addBackfill(schedules);
  addRemove(schedules);
}

function addList(schedules: Command): void {
  schedules
    .command('list')
    .argument('[queue]')
    .description('schedules of a queue, or of all')
    .option('--payload', 'with their payloads')
    .action(
      action(async (cli, { payload }: { payload?: boolean }, queue?: string) => {
        const session = await cli.connect(queue === undefined ? undefined : [queue]);
        const table = cli.out.rows(columnsOf(cli, await session.now(), payload === true));
        for (const name of queue === undefined ? session.names : [queue]) {
          let cursor: string | undefined;
          do {
            const page = await session.inspector.listSchedules(name, cursor === undefined ? {} : { cursor });
            for (const schedule of page.schedules) table.add(payload ? schedule : without(schedule));
            for (const id of page.unreadable)
              cli.out.note(`A newer library wrote schedule "${id}" of queue "${name}".`);
            cursor = page.cursor;
          } while (cursor !== undefined);
        }
        table.end();
      }),
    );
}

function without(schedule: ScheduleSnapshot): Row {
  const row: Row = { ...schedule };
  delete row.payload;
  return row;
}

function columnsOf({ times }: Cli, now: number, payload: boolean): Column<Row>[] {
  return [
    { title: 'queue', of: ({ queue }) => queue },
    { title: 'id', of: ({ id }) => id },
    { title: 'times', of: timesOf },
    {
      title: 'next',
      of: ({ next, paused }) => (paused ? 'paused' : times.relative(next, now)),
      exact: ({ next, paused }) => (paused ? 'paused' : iso(next)),
    },
    { title: 'made', of: ({ counts }) => String(counts.made), right: true },
    { title: 'missed', of: ({ counts }) => String(counts.missed), right: true },
    { title: 'overlapped', of: ({ counts }) => String(counts.overlapped), right: true },
    ...(payload ? [{ title: 'payload', of: (row: Row) => payloadText(row.payload) }] : []),
  ];
}

function timesOf({ cron, timeZone, everyMs }: Row): string {
  if (cron !== undefined) return timeZone === undefined ? cron : `${cron} (${timeZone})`;
  return everyMs === undefined ? '-' : `every ${span(everyMs)}`;
}

function addPause(schedules: Command, word: 'pause' | 'resume', description: string): void {
  schedules
    .command(word)
    .argument('<queue>')
    .argument('<id>')
    .description(description)
    .action(
      action(async (cli, _: object, queue: string, id: string) => {
        assertScheduleId(id, 'id');
        const { producer } = await cli.connect([queue]);
        const result = await (word === 'pause'
          ? producer.pauseSchedule(queue, id)
          : producer.resumeSchedule(queue, id));
        if (result.outcome === 'notFound') throw missing(queue, id);
        if (cli.out.isJson) cli.out.json(result);
        else cli.out.line(`${cli.out.safe(id)}\t${result.outcome}\t${iso(result.next)}`);
      }),
    );
}

function addTrigger(schedules: Command): void {
  schedules
    .command('trigger')
    .argument('<queue>')
    .argument('<id>')
    .description('one more occurrence now')
    .action(
      action(async (cli, _: object, queue: string, id: string) => {
        assertScheduleId(id, 'id');
        const { producer } = await cli.connect([queue]);
        const job = await producer.triggerSchedule(queue, id);
        if (job === undefined) throw missing(queue, id);
        if (cli.out.isJson) cli.out.json({ queue, id, job });
        else cli.out.line(cli.out.safe(job));
      }),
    );
}

function addBackfill(schedules: Command): void {
  schedules
    .command('backfill')
    .argument('<queue>')
    .argument('<id>')
    .description('an occurrence for each time of a stretch of the past, due now')
    .requiredOption('--from <time>', 'the first moment')
    .requiredOption('--to <time>', 'before then')
    .option('--dry-run', 'make nothing; say how many times the stretch has')
    .option('--yes', 'do not ask')
    .action(
      action(async (cli, flags: ActFlags & { from: string; to: string }, queue: string, id: string) => {
        assertScheduleId(id, 'id');
        const rangeAt = rangeIn(cli.times, flags);
        const session = await cli.connect([queue]);
        const { from = 0, to = 0 } = rangeAt(await session.now());
        const { backfillSize } = await import('../../recurring/backfill-times.js');
        // The library makes one for the last moment as well.
        const foreseen = await backfillSize(session.context, queue, id, from, to - 1);
        if (foreseen === undefined) throw missing(queue, id);
        const isAsked = foreseen > 0 && !flags.dryRun;
        if (isAsked) {
          const stretch = `from ${new Date(from).toISOString()} to ${new Date(to).toISOString()}`;
          const question = `Run schedule "${id}" of queue "${queue}" for ${counted(foreseen, 'time')} ${stretch}?`;
          await confirm({ question, yes: flags.yes });
        }
        const times = isAsked ? await session.producer.backfillSchedule(queue, id, { from, to: to - 1 }) : foreseen;
        if (times === undefined) throw missing(queue, id);
        if (cli.out.isJson) cli.out.json({ queue, id, times, dryRun: flags.dryRun === true });
        else cli.out.line(`times\t${times}`);
        return times === 0 ? EXIT.notFound : EXIT.done;
      }),
    );
}

function addRemove(schedules: Command): void {
  const command = schedules
    .command('remove')
    .argument('<queue>')
    .argument('<id>')
    .description('with its occurrences that have not begun')
    .option('--running', 'cancels one that runs, too');
  addActFlags(command).action(
    action(async (cli, flags: ActFlags & { running?: boolean }, queue: string, id: string) => {
      assertScheduleId(id, 'id');
      const session = await cli.connect([queue]);
      if (!(await hasSchedule(session, queue, id))) throw missing(queue, id);
      if (!flags.dryRun) {
        await confirm({ question: `Remove schedule "${id}" of queue "${queue}" and its occurrences?`, yes: flags.yes });
      }
      const removed = flags.dryRun
        ? { id, queue, outcome: 'removed' }
        : await session.producer.unschedule(queue, id, { running: flags.running === true });
      if (removed.outcome === 'notFound') throw missing(queue, id);
      if (cli.out.isJson) cli.out.json({ ...removed, dryRun: flags.dryRun === true });
      else cli.out.line(`${flags.dryRun ? 'would be ' : ''}removed\t${cli.out.safe(id)}`);
      return EXIT.done;
    }),
  );
}

async function hasSchedule({ inspector }: Session, queue: string, id: string): Promise<boolean> {
  let cursor: string | undefined;
  do {
    const page = await inspector.listSchedules(queue, { limit: 200, ...(cursor !== undefined && { cursor }) });
    if (page.schedules.some((schedule) => schedule.id === id) || page.unreadable.includes(id)) return true;
    cursor = page.cursor;
  } while (cursor !== undefined);
  return false;
}

function missing(queue: string, id: string) {
  return notFound(`Queue "${queue}" has no schedule "${id}".`);
}
