import type { Command } from 'commander';
import { addDead } from './dead.js';
import { addDoctor } from './doctor.js';
import { addGet } from './get.js';
import { addHealth } from './health.js';
import { addList } from './list.js';
import { addQueues } from './queues.js';
import { addStats } from './stats.js';
import { addTimeline } from './timeline.js';

/** Commands that change nothing. */
export function addLookCommands(program: Command): void {
  program.commandsGroup('Look:');
  for (const add of [addQueues, addStats, addList, addGet, addTimeline, addDead, addHealth, addDoctor]) add(program);
}
