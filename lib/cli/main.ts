import { CommanderError } from 'commander';
import type { Command } from 'commander';
import { createProgram, exitCodeOfUsage } from './program.js';
import { Interruption } from './terminal/interruption.js';

// Whoever reads the output may stop reading: `| head`. What only reads has nothing to do then; an act goes on to its end, whose exit
// code is read all the same.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (!Interruption.isActing) process.exit(0);
  });
}

function exitByUs(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) exitByUs(child);
}

async function main(): Promise<void> {
  const program = createProgram();
  exitByUs(program);
  try {
    await program.parseAsync();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = exitCodeOfUsage(error.exitCode);
  }
}

void main();
