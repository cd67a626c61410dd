import type { Command } from 'commander';
import type { NewTimes } from '../../inspection/bulk-options.js';
import { action } from '../cli.js';
import type { Cli } from '../cli.js';
import { usage } from '../exit-codes.js';
import { runBulkAct } from './bulk-act.js';
import { addChoiceFlags } from './chosen-jobs.js';
import type { ChoiceFlags } from './chosen-jobs.js';

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
      const times = timesOf(flags);
      return runBulkAct(cli, queue, ids, flags, {
        verb: 'Reschedule',
        done: 'rescheduled',
        call: async (session, choice, options) =>
          session.inspector.bulk.reschedule(queue, choice, await times(cli, () => session.now()), options),
      });
    }),
  );
}

/** @throws CommandError unless one of the three is given; a moment is read once, so that it is the same for all calls */
function timesOf({ delay, at, by, spread }: TimeFlags) {
  if ([delay, at, by].filter((text) => text !== undefined).length !== 1) {
    throw usage('Give one of --delay, --at and --by.');
  }
  const spreading = spread === undefined ? {} : { spread };
  let moment: number | undefined;
  return async (cli: Cli, now: () => Promise<number>): Promise<NewTimes> => {
    if (delay !== undefined) return { delay, ...spreading };
    if (by !== undefined) return { by, ...spreading };
    moment ??= cli.times.parse(at!, '--at', await now());
    return { at: moment, ...spreading };
  };
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
        verb: flags.running ? 'Cancel, also while they run,' : 'Cancel',
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
    action(async (cli, flags: ChoiceFlags, queue: string, target: string, ids: string[]) =>
      runBulkAct(cli, queue, ids, flags, {
        verb: `Move to queue "${target}"`,
        done: 'moved',
        target,
        call: ({ inspector }, choice, options) => inspector.bulk.move(queue, choice, target, options),
      }),
    ),
  );
}
