// Writes the history of one process; what its lines mean stands in history.ts.
import { openSync, writeSync } from 'node:fs';

const STALL_CHECK_MS = 100;
const STALL_MS = 400;

/** @returns {{ write(event: object): void }} */
export function openHistory(file, p) {
  const to = openSync(file, 'a');
  return {
    write(event) {
      const mono = Number(process.hrtime.bigint() / 1_000n) / 1_000;
      writeSync(to, `${JSON.stringify({ p, at: Date.now(), mono, ...event })}\n`);
    },
  };
}

/** Tells when the event loop did not turn: for this process that is the same as being frozen. */
export function watchForStalls({ write }) {
  let last = Date.now();
  setInterval(() => {
    const now = Date.now();
    if (now - last > STALL_CHECK_MS + STALL_MS) write({ ev: 'stall', from: last, to: now });
    last = now;
  }, STALL_CHECK_MS).unref();
}
