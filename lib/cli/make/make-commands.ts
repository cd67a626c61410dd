import type { Command } from 'commander';
import { addImport } from '../import/import-commands.js';
import { addEnqueue } from './enqueue.js';
import { addSchedules } from './schedules.js';

/** Commands that make jobs, or manage what does. */
export function addMakeCommands(program: Command): void {
  program.commandsGroup('Make:');
  addEnqueue(program);
  addSchedules(program);
  addImport(program);
}
