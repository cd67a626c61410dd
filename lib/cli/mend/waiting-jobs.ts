import type { Command } from 'commander';
import { readTimes } from '../../inspection/bulk-options.js';
import type { NewTimes } from '../../inspection/bulk-options.js';
import { assertQueueName } from '../../job/queue-name.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import { usage } from '../exit-codes.js';
import { asFlags } from '../terminal/flag-names.js';
import { runBulkAct } from './bulk-act.js';
import { addChoiceFlags } from './chosen-jobs.js';
import type { ChoiceFlags } from './chosen-jobs.js';
import { wallClock } from '../../time-and-randomness.js';

interface TimeFlags extends ChoiceFlags {
  delay?: string;
  at?: string;
  by?: string;
  spread?: string;
}

export function addRunNow(program: Command): void {
  const command = program.command('run-now').argument('<queue>').argument('[ids...]');
  addChoiceFlags(command.description('makes waiting jobs due now')).action(
    action(async (cli, flags: ChoiceFlags, queue: string, ids: string[]) =>
      runBulkAct(cli, queue, ids, flags, {
        verb: 'Run now',
        done: 'rescheduled',
        call: ({ inspector }, choice, options) => inspector.bulk.runNow(queue, choice, options),
      }),
    ),
  );
}

export function addReschedule(program: Command): void {
  const command = program
    .command('reschedule')
    .argument('<queue>')
    .argument('[ids...]')
    .description('gives waiting jobs another due time')
    .option('--delay <duration>', 'so long from now')
    .option('--at <time>', 'at this moment')
    .option('--by <duration>', 'so much later than they are due')
    .option('--spread <duration>', 'spread evenly over this time, from --delay or --at on');
  addChoiceFlags(command).action(
    action(async (cli, flags: TimeFlags, queue: string, ids: string[]) => {
      const timesAt = timesOf(cli, flags);
      return runBulkAct(cli, queue, ids, flags, {
        verb: 'Reschedule',
        done: 'rescheduled',
        call: ({ inspector }, choice, options, now) => inspector.bulk.reschedule(queue, choice, timesAt(now), options),
      });
    }),
  );
}

/** @throws CommandError unless one of the three is given, InvalidDelayError for what is no time */
function timesOf(cli: Cli, { delay, at, by, spread }: TimeFlags): (now: number) => NewTimes {
  if ([delay, at, by].filter((text) => text !== undefined).length !== 1) {
    throw usage('Give one of --delay, --at and --by.');
  }
  if (by !== undefined && spread !== undefined)
    throw usage('--spread: begins at a due time; give it with --delay or --at.');
  const moment = at === undefined ? undefined : cli.times.moment(at, '--at');
  const others = Object.fromEntries(Object.entries({ delay, by, spread }).filter(([, text]) => text !== undefined));
  const timesAt = (now: number) => ({ ...others, ...(moment && { at: moment.at(now) }) }) as NewTimes;
  readTimes(timesAt(wallClock()), asFlags);
  return timesAt;
}

export function addCancel(program: Command): void {
  const command = program
    .command('cancel')
    .argument('<queue>')
    .argument('[ids...]')
    .description('removes waiting jobs')
    .option('--running', 'aborts named jobs that run, too');
  addChoiceFlags(command).action(
    action(async (cli, flags: ChoiceFlags & { running?: boolean }, queue: string, ids: string[]) =>
      runBulkAct(cli, queue, ids, flags, {
        verb: 'Cancel',
        ...(flags.running && { also: () => ', also if running' }),
        done: 'cancelled',
        destroys: true,
        call: ({ inspector }, choice, options) =>
          inspector.bulk.cancel(queue, choice, { ...options, running: flags.running === true }),
      }),
    ),
  );
}

export function addMove(program: Command): void {
  const command = program.command('move').argument('<queue>').argument('<target>').argument('[ids...]');
  addChoiceFlags(command.description('moves waiting jobs to another queue, with id, due time and options')).action(
    action(async (cli, flags: ChoiceFlags, queue: string, target: string, ids: string[]) => {
      assertQueueName(target, 'target');
      if (target === queue) throw usage('target: is the queue that has the jobs. Give another one.');
      return runBulkAct(cli, queue, ids, flags, {
        verb: 'Move',
        also: ({ names }) => ` to queue "${target}"${names.includes(target) ? '' : ', which is new'}`,
        done: 'moved',
        target,
        call: ({ inspector }, choice, options) => inspector.bulk.move(queue, choice, target, options),
      });
    }),
  );
}
