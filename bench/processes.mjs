// Child processes that end when asked, when they are done, or when this process is gone.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { deferred } from './measure/numbers.mjs';

const running = new Set();
const PROGRAM = fileURLToPath(new URL('./child.mjs', import.meta.url));

/**
 * Starts `export default async (args, channel) => result` of `module` in a process of its own.
 *
 * @param {string} module relative to this folder
 * @param {object} args passed as JSON
 * @param {{ timeoutMs?: number, execArgv?: string[] }} [options]
 */
export function start(module, args, { timeoutMs = 600_000, execArgv = [] } = {}) {
  const child = fork(PROGRAM, [module, JSON.stringify(args)], {
    execArgv,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  running.add(child);
  const ready = deferred();
  const listeners = [];
  const result = new Promise((resolve, reject) => {
    const late = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`${module} did not end within ${timeoutMs / 1000} s`));
    }, timeoutMs);
    child.on('message', (message) => {
      if ('result' in message) resolve(message.result);
      else if ('error' in message) reject(new Error(message.error));
      else if ('ready' in message) ready.resolve(message.ready);
      else for (const listener of listeners) listener(message.note);
    });
    child.on('exit', (code, signal) => {
      clearTimeout(late);
      running.delete(child);
      reject(new Error(`${module} ended with ${signal ?? `exit code ${code}`} before it had a result`));
    });
  });
  const gone = new Promise((resolve) => child.on('exit', resolve));
  void result.catch((error) => ready.reject(error));
  void ready.promise.catch(() => {}); // Not everyone waits for it.
  return {
    /** Resolves when the child called `channel.ready()`. */
    ready: ready.promise,
    result,
    /** Resolves when the process is gone, and its CPU time counts as that of an ended child. */
    gone,
    onNote: (listener) => listeners.push(listener),
    /** Lets the child's `channel.asked` resolve. */
    ask: () => child.connected && child.send('asked'),
  };
}

/** The same for one that is only waited for, until it is gone. */
export async function run(module, args, options) {
  const { result, gone } = start(module, args, options);
  const value = await result;
  await gone;
  return value;
}

/** Ends what still runs after a failure, and resolves when it is gone. */
export async function endAll() {
  await Promise.all(
    [...running].map((child) => {
      child.kill('SIGKILL');
      return once(child, 'exit');
    }),
  );
}
