import type { Command } from 'commander';
import { addDead } from './dead.js';
import { addDoctor } from './doctor.js';
import { addGet } from './get.js';
import { addGroups } from './groups.js';
import { addHealth } from './health.js';
import { addList } from './list.js';
import { addQueues } from './queues.js';
import { addStats } from './stats.js';
import { addTail } from './tail.js';
import { addTimeline } from './timeline.js';
import { addTop } from '../top/top.js';
import { addWatch } from './watch.js';

const COMMANDS = [
  addQueues,
  addStats,
  addList,
  addGet,
  addTimeline,
  addGroups,
  addDead,
  addWatch,
  addTail,
  addTop,
  addHealth,
  addDoctor,
];

/** Commands that change nothing. */
export function addLookCommands(program: Command): void {
  program.commandsGroup('Look:');
  for (const add of COMMANDS) add(program);
}
