import type { ChildProcess } from 'node:child_process';
import { expect } from '@jest/globals';
import { commandLine } from './command-line.js';
import type { Ran } from './command-line.js';
import { eventually } from './eventually.js';
import type { World } from './world.js';

/** `npx nestjs-delay-queue dashboard`, which listens. */
export interface DashboardCommand {
  /** What it has printed. */
  readonly url: URL;
  /** What it has written beside that, so far. */
  readonly said: () => string;
  /** By Ctrl C. */
  readonly close: () => Promise<Ran>;
}

/** On the keys of a world and a free port. `started` is told of it at once, so that it ends also when it never listens. */
export async function dashboardCommand(
  world: World,
  started: (command: Pick<DashboardCommand, 'close'>) => unknown,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<DashboardCommand> {
  const written = { stdout: '', stderr: '' };
  let child: ChildProcess | undefined;
  const ran = commandLine(world, ['dashboard', '--port', '0', ...args], {
    env,
    with: (process) => {
      child = process;
      for (const name of ['stdout', 'stderr'] as const) {
        process[name]!.on('data', (text: string) => (written[name] += text));
      }
    },
  });
  const close = () => {
    child!.kill('SIGINT');
    return ran;
  };
  started({ close });
  await eventually(() => expect(written.stderr).toContain('Ctrl C ends it.'));
  return { url: new URL(written.stdout.trim()), said: () => written.stderr, close };
}
