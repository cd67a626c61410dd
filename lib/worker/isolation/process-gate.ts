import { IsolationGate } from './isolation-gate.js';

/**
 * A death takes along whatever the OS process runs, so the gate is one for all: for every instance, application and copy of
 * this library. The first one makes it, and the others use it, whatever their version is: under `/1` methods are called as
 * `IsolationGate` and `IsolationMember` have them, nothing is `instanceof` anything, and a change that breaks this needs
 * a new number, whose gate then also joins this one. Worker threads have a `globalThis` each, and so a gate each.
 */
export const GATE_KEY = Symbol.for('nestjs-delay-queue/isolation-gate/1');

const shared = globalThis as { [GATE_KEY]?: IsolationGate };

export function processGate(): IsolationGate {
  return (shared[GATE_KEY] ??= new IsolationGate());
}
