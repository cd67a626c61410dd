// The process behind a Tether: it owns the children, so that they die with it and it dies with whoever opened it.
//
// A kill -9 of the opener cannot be caught by the opener. What survives it is this process, in a session of its own,
// for which the channel closes: `disconnect`. The children are stopped newest first, so that an application drains
// before the Redis that it was started after goes away. A pid file and a sweep at the next start was refused: between
// the two a Redis would run unseen.
import { spawn } from 'node:child_process';
import { mkdtempSync, openSync, closeSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Longer than the ten seconds that an application may drain for by default. */
const STOP_GRACE_MS = 20_000;

const directory = mkdtempSync(join(tmpdir(), 'delay-queue-'));
/** @type {Map<number, { child: import('node:child_process').ChildProcess, stopSignal: NodeJS.Signals }>} */
const running = new Map();
let closing = false;

const verbs = { start, signal, relay, close };

process.on('message', ({ verb, ...request }) => verbs[verb](request));
process.on('disconnect', () => void close());
for (const signalName of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signalName, () => void close());
}
report({ event: 'ready', directory });

function start({ id, command, args, env, cwd, log, channel, stopSignal }) {
  if (closing) return report({ id, event: 'failed', message: 'the tether is closing' });
  const output = log ? openSync(log, 'a') : 'inherit';
  const stdio = ['ignore', output, output, ...(channel ? ['ipc'] : [])];
  const child = spawn(command, args, { cwd: cwd ?? directory, env: env ?? process.env, stdio });
  if (log) closeSync(output);
  child.on('error', (error) => report({ id, event: 'failed', message: error.message }));
  if (!child.pid) return;
  running.set(id, { child, stopSignal });
  report({ id, event: 'started', pid: child.pid });
  child.on('message', (message) => report({ id, event: 'message', message }));
  child.on('exit', (code, signalName) => {
    running.delete(id);
    report({ id, event: 'exit', code, signal: signalName });
  });
}

function signal({ id, name }) {
  running.get(id)?.child.kill(name);
  report({ id, event: 'signalled' });
}

function relay({ id, message }) {
  running.get(id)?.child.send(message, () => {});
}

async function close() {
  if (closing) return;
  closing = true;
  for (const { child, stopSignal } of [...running.values()].reverse()) await stop(child, stopSignal);
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  process.exit(0);
}

function stop(child, stopSignal) {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_GRACE_MS);
    child.once('exit', () => {
      clearTimeout(impatience);
      resolve();
    });
    child.kill(stopSignal);
    child.kill('SIGCONT'); // a frozen child would not see the request
  });
}

function report(message) {
  if (process.connected) process.send(message, () => {});
}
