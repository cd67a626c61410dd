import { spawn } from 'node:child_process';

/**
 * Runs a command in the foreground, its output being ours, and rejects when it fails.
 * @param {string} command
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'], ...options });
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`"${[command, ...args].join(' ')}" ended with ${signal ?? `exit code ${code}`}`));
    });
  });
}

/** Runs npm, which is a script of its own kind on Windows. */
export function npm(args, options = {}) {
  return run('npm', args, { shell: process.platform === 'win32', ...options });
}
