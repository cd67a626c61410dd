import { IsolationGate } from '../../lib/worker/isolation/isolation-gate.js';
import { GATE_KEY } from '../../lib/worker/isolation/process-gate.js';

// Which jobs share a process is a matter of the whole OS process. Tests have many applications in one, most of which stand
// for processes of their own.

/** Applications made from now on share no process with those before. */
export function newProcess(): void {
  Reflect.deleteProperty(globalThis, GATE_KEY);
}

/** Each instance of the applications that `boot` makes is a process of its own. */
export async function eachItsOwnProcess<T>(boot: () => Promise<T>): Promise<T> {
  Object.defineProperty(globalThis, GATE_KEY, { get: () => new IsolationGate(), configurable: true });
  try {
    return await boot();
  } finally {
    newProcess();
  }
}
