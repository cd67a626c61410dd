import { CommanderError } from 'commander';
import type { Command } from 'commander';
import { createProgram, exitCodeOfUsage } from './program.js';

// Whoever reads the output may stop reading: `| head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

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
