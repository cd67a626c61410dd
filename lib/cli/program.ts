import { Command } from 'commander';
import { LIBRARY_VERSION } from '../version.js';
import { addCompletion } from './completion/completion.js';
import { addConnectionFlags } from './connection/connection-flags.js';
import { addDashboard } from './dashboard/dashboard-command.js';
import { EXIT } from './exit-codes.js';
import { addLookCommands } from './look/look-commands.js';
import { addMakeCommands } from './make/make-commands.js';
import { addMendCommands } from './mend/mend-commands.js';

const AFTER_HELP = `
Times are given as now, +2h, -30m, 2026-11-23T09:00, with a zone (Z, +01:00) or as epoch ms.
All of it: docs/command-line.md of the package.`;

export function createProgram(): Command {
  const program = new Command('nestjs-delay-queue')
    .description('Looks at delay queues and mends them.')
    .version(LIBRARY_VERSION)
    .option('--json', 'one JSON object; of lists one a line')
    .option('--utc', 'read and show times in UTC')
    .option('--no-color', 'as NO_COLOR does')
    .helpCommand(false)
    .showHelpAfterError('(--help says more)')
    .addHelpText('after', AFTER_HELP);
  addConnectionFlags(program);
  addLookCommands(program);
  addMendCommands(program);
  addMakeCommands(program);
  program.commandsGroup('Other:');
  addDashboard(program);
  addCompletion(program);
  return program;
}

/** @returns the code for what commander itself has ended: help, the version, a wrong use */
export function exitCodeOfUsage(exitCode: number): number {
  return exitCode === 0 ? EXIT.done : EXIT.usage;
}
