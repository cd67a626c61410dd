import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { StepReply, StepRequest } from '../../lib/redis/step.protocol.js';
import { IsolationGate } from '../../lib/worker/isolation/isolation-gate.js';
import { QuarantineTurn } from '../../lib/worker/isolation/quarantine-turn.js';

const NOTHING = { jobs: 0, quarantinedForMs: 0 };
const FREE = 5;
const NONE_OUT = 0;

let gate: IsolationGate;
let turn: QuarantineTurn;
const worker = {
  concurrency: 50,
  quarantined: 1,
  zombies: 0,
  caughtUpAt: Infinity,
  resume: () => undefined,
  reconsider: () => undefined,
  markAccompanied: () => undefined,
};
beforeEach(() => {
  gate = new IsolationGate();
  gate.join(worker);
  turn = new QuarantineTurn(gate, worker, worker.concurrency);
});
afterEach(() => gate.fastForward(1e9)); // Its timer would keep the process alive.

/** The answer of a step, which was no claim from the quarantine. */
function answered(reply: Partial<StepReply>): void {
  const request = { quarantineLimit: 0, asksIsolation: false } as StepRequest;
  turn.answered(request, {
    now: 0,
    jobs: [],
    paused: false,
    quarantined: 3,
    quarantinedSince: 0,
    ...reply,
  } as StepReply);
}

/** Monotonic ms, when whatever was put off has passed. */
const later = () => performance.now() + 60_000;

describe('the quarantine of a queue', () => {
  it('is claimed from by an empty process', () => {
    answered({});
    expect(turn.want(later(), FREE, NONE_OUT)).toEqual({ jobs: FREE, quarantinedForMs: 0 });
    expect(turn.nextMoment(FREE)).toBeLessThan(later());
  });

  it('is left alone while the queue is paused, so that no vain claim stops the other queues of the process', () => {
    answered({ paused: true });
    expect(turn.want(later(), FREE, NONE_OUT)).toEqual(NOTHING);
    expect(turn.nextMoment(FREE)).toBe(Infinity);
    answered({});
    expect(turn.want(later(), FREE, NONE_OUT).jobs).toBe(FREE);
  });

  it('of a queue that is paused clears no process any more', () => {
    answered({});
    const mark = gate.asking(worker, 1, false);
    gate.brought(worker, mark, 1, { jobs: 1, quarantined: false, charge: 'no' });
    gate.clear(worker);
    expect(gate.isOpen).toBe(false);
    answered({ paused: true });
    expect(gate.isOpen).toBe(true);
  });
});
