import type { Command } from 'commander';
import { addRemoveDead, addRequeue } from './dead-letters.js';
import { addLimits } from './limits.js';
import { addPurge } from './purge.js';
import { addCancel, addMove, addReschedule, addRunNow } from './waiting-jobs.js';
import { addReshard, addSwitches } from './whole-queues.js';

const COMMANDS = [
  addRunNow,
  addReschedule,
  addCancel,
  addMove,
  addRequeue,
  addRemoveDead,
  addPurge,
  addSwitches,
  addReshard,
  addLimits,
];

/** Commands that change jobs or queues that are there. */
export function addMendCommands(program: Command): void {
  program.commandsGroup('Mend:');
  for (const add of COMMANDS) add(program);
}
