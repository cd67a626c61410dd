// A TCP proxy that delays both directions and limits neither: what a client sends is passed on in whole chunks, each so much later.
//
// A sleep of Node is a millisecond at least. So the last part of a delay is slept in pieces of 0.1 ms, in which nothing is read.
import { connect, createServer } from 'node:net';

const PIECE_MS = 0.1;
/** From here on timers are exact enough. */
const TIMER_MS = 2;

const nobody = new Int32Array(new SharedArrayBuffer(4));

/** @returns {Promise<{ port: number, close(): Promise<void> }>} */
export async function openDelayProxy({ host = '127.0.0.1', port, delayMs }) {
  /** The delay is the same for all, so what came first leaves first. */
  let line = [];
  let next = 0;
  let isRunning = false;
  const sockets = new Set();

  function pass(to, chunk) {
    line.push({ at: performance.now() + delayMs, to, chunk });
    if (isRunning) return;
    isRunning = true;
    wait();
  }

  function run() {
    const now = performance.now();
    while (next < line.length && line[next].at <= now) {
      const { to, chunk } = line[next++];
      if (to.destroyed) continue;
      if (chunk) to.write(chunk);
      else to.end();
    }
    if (next === line.length) {
      line = [];
      next = 0;
      isRunning = false;
      return;
    }
    if (next > 1_000) {
      line = line.slice(next);
      next = 0;
    }
    wait();
  }

  function wait() {
    const left = line[next].at - performance.now();
    if (left > TIMER_MS) return void setTimeout(run, left - 1.5);
    if (left > 0) Atomics.wait(nobody, 0, 0, Math.min(left, PIECE_MS));
    setImmediate(run);
  }

  const server = createServer({ noDelay: true }, (client) => {
    const target = connect({ host, port, noDelay: true });
    for (const [from, to] of [
      [client, target],
      [target, client],
    ]) {
      sockets.add(from);
      from.on('data', (chunk) => pass(to, chunk));
      from.on('end', () => pass(to, undefined));
      from.on('error', () => to.destroy());
      from.on('close', () => sockets.delete(from));
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: server.address().port,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
