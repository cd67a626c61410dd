import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CLEARING_MS, IsolationGate, ISOLATED_MS, WATCHED_MS } from '../../lib/worker/isolation/isolation-gate.js';
import type { Charge, IsolationMember } from '../../lib/worker/isolation/isolation-gate.js';
import { GATE_KEY, processGate } from '../../lib/worker/isolation/process-gate.js';
import { eventually } from '../helpers/eventually.js';
import { newProcess } from '../helpers/processes.js';

/** A worker as another copy of the library might make it: an object of its own, and no class of this one. */
function member() {
  const calls: string[] = [];
  const caughtUpAt = -Infinity;
  const it = {
    quarantined: 1,
    zombies: 0,
    caughtUpAt,
    calls,
    resume: () => void calls.push('resume'),
    reconsider: () => void calls.push('reconsider'),
    markAccompanied: (withQuarantined: boolean) =>
      void calls.push(withQuarantined ? 'accompanied by quarantined' : 'accompanied'),
    /** Its queue was looked at, and nothing due was left. */
    catchUp: () => void (it.caughtUpAt = performance.now()),
  };
  return it satisfies IsolationMember;
}
type Member = ReturnType<typeof member>;

let gate: IsolationGate<Member>;
let a: Member;
let b: Member;
beforeEach(() => {
  gate = new IsolationGate();
  [a, b] = [member(), member()];
  gate.join(a);
  gate.join(b);
});
afterEach(() => gate.fastForward(1e9)); // Its timer would keep the process alive.

/** One claim, from its request to its answer. */
function claim(by: Member, jobs: number, { quarantined = false, charge = 'no' as Charge } = {}): void {
  const isolated = quarantined && gate.isEmpty;
  const mark = gate.asking(by, 5, quarantined);
  if (isolated) gate.claims(by);
  gate.brought(by, mark, 5, { jobs, quarantined, charge });
  if (quarantined) gate.claimed(by, jobs);
}

describe('a pause in claiming', () => {
  it('to become empty ends by itself, and is not begun again for ten seconds', () => {
    claim(a, 1);
    gate.clear(b);
    expect(gate.isOpen).toBe(false);
    gate.fastForward(CLEARING_MS);
    expect(gate.isOpen).toBe(true);
    expect([a.calls, b.calls]).toEqual([['resume'], ['resume']]);
    a.catchUp();
    b.catchUp();
    gate.clear(b);
    expect(gate.isOpen).toBe(true);
    gate.fastForward(10_000);
    gate.clear(b);
    expect(gate.isOpen).toBe(false);
  });

  it('for a job in quarantine ends when that has ended', () => {
    claim(a, 1, { quarantined: true, charge: 'alone' });
    expect(gate.isOpen).toBe(false);
    gate.ended(true);
    expect(gate.isOpen).toBe(true);
  });

  it('and for one that does not end after a time, less than five seconds after claiming stopped', () => {
    claim(a, 1);
    gate.clear(b);
    gate.fastForward(CLEARING_MS - 100);
    gate.ended(false);
    claim(b, 1, { quarantined: true, charge: 'alone' });
    gate.fastForward(ISOLATED_MS);
    expect(gate.isOpen).toBe(true);
    expect(CLEARING_MS + ISOLATED_MS).toBeLessThan(5_000);
  });

  it('ends when the claim is not answered, brings nothing, or what it brought has ended at once', () => {
    gate.asking(a, 1, true);
    gate.claims(a);
    gate.fastForward(ISOLATED_MS);
    expect(gate.isOpen).toBe(true);
    a.catchUp();
    b.catchUp();
    claim(b, 0, { quarantined: true });
    expect(gate.isOpen).toBe(true);
  });

  it('ends when its worker leaves, or takes no jobs any more', () => {
    claim(a, 1);
    gate.clear(b);
    gate.release(b);
    expect(gate.isOpen).toBe(true);
    a.catchUp();
    b.catchUp();
    gate.fastForward(10_000);
    gate.clear(b);
    gate.leave(b);
    expect(gate.isOpen).toBe(true);
    gate.clear(b); // It is not there.
    expect(gate.isOpen).toBe(true);
  });

  it('goes on while a job from the quarantine runs whose worker has left', () => {
    claim(a, 1, { quarantined: true, charge: 'alone' });
    gate.leave(a, true);
    expect(gate.isOpen).toBe(false);
    gate.ended(true);
    expect(gate.isOpen).toBe(true);
    expect(b.calls).toContain('resume');
  });

  it('is not begun where it is of no use: with a zombie, or with a job in quarantine', () => {
    claim(a, 1);
    a.zombies = 1;
    expect(gate.canBeCleared).toBe(false);
    a.zombies = 0;
    expect(gate.canBeCleared).toBe(true);
    claim(b, 1, { quarantined: true });
    expect(gate.canBeCleared).toBe(false);
    gate.ended(true);
    expect(gate.canBeCleared).toBe(true);
  });

  it('and is of no use while a handler of a worker goes on that has left', () => {
    claim(a, 1);
    const gone = { ...member(), hasEnded: false };
    gate.join(gone);
    gate.leave(gone, true);
    expect(gate.canBeCleared).toBe(true);
    Object.assign(gone, { zombies: 1, hasEnded: true });
    gate.leave(b);
    expect(gate.canBeCleared).toBe(false);
    gone.zombies = 0;
    expect(gate.canBeCleared).toBe(true);
    gate.leave(a);
    gone.zombies = 1; // It was forgotten.
    gate.ended(false);
    expect(gate.isEmpty).toBe(true);
  });

  it('is not followed by another one before every queue has caught up: no due job waits through two pauses', () => {
    claim(a, 1, { quarantined: true, charge: 'alone' });
    gate.ended(true);
    expect(gate.mayIsolate(a)).toBe(false);
    a.catchUp();
    expect(gate.mayIsolate(a)).toBe(false);
    b.catchUp();
    expect(gate.mayIsolate(a)).toBe(true);
  });
});

describe('the job whose loss would be charged', () => {
  it('is the only one that runs, until somebody else asks for jobs', () => {
    claim(a, 1, { charge: 'alone' });
    gate.asking(b, 1, false);
    expect(a.calls).toEqual(['accompanied']);
    gate.asking(b, 1, false);
    expect(a.calls).toEqual(['accompanied']);
  });

  it('is not alone when the worker that is told so asks in the same moment', () => {
    let nested: number | undefined;
    a.markAccompanied = () => void (nested = gate.asking(a, 2, false));
    claim(a, 1, { charge: 'alone' });
    gate.ended(false);
    const mark = gate.asking(b, 1, false);
    gate.brought(a, nested!, 2, { jobs: 2, quarantined: false, charge: 'no' });
    gate.brought(b, mark, 1, { jobs: 1, quarantined: false, charge: 'alone' });
    expect(b.calls).toContain('accompanied');
  });

  it('is not alone any more when somebody asked while its claim was on its way', () => {
    const mark = gate.asking(a, 1, false);
    gate.asking(b, 1, false);
    gate.brought(a, mark, 1, { jobs: 1, quarantined: false, charge: 'alone' });
    expect(a.calls).toEqual(['accompanied']);
  });

  it('is one that lost many leases, whatever due jobs come, until something else starts from the quarantine', () => {
    claim(a, 1, { quarantined: true, charge: 'repeated' });
    gate.fastForward(ISOLATED_MS);
    a.calls.length = 0;
    claim(b, 3);
    expect(a.calls).toEqual([]);
    gate.asking(b, 1, true);
    expect(a.calls).toEqual(['accompanied by quarantined']);
  });

  it('is one that lost many leases, and for a while nothing from the quarantine joins it', () => {
    claim(a, 1);
    claim(a, 1, { quarantined: true, charge: 'repeated' });
    b.calls.length = 0;
    expect(gate.asksQuarantine(performance.now())).toBe(true);
    gate.fastForward(WATCHED_MS - 500);
    expect(gate.asksQuarantine(performance.now())).toBe(true);
    gate.fastForward(500);
    expect(gate.asksQuarantine(performance.now())).toBe(false);
  });

  it('is one that lost many leases, and what waits for its turn in the quarantine hears when that is over', async () => {
    claim(a, 1);
    claim(a, 1, { quarantined: true, charge: 'repeated' });
    b.calls.length = 0;
    gate.fastForward(WATCHED_MS);
    await eventually(() => expect(b.calls).toEqual(['reconsider']));
    claim(a, 1, { quarantined: true, charge: 'repeated' });
    gate.ended(true);
    gate.ended(true);
    expect(gate.asksQuarantine(performance.now())).toBe(false);
  });

  it('learns that it is not alone from a worker that drains, too', () => {
    claim(a, 1, { charge: 'alone' });
    gate.leave(a);
    gate.asking(b, 1, false);
    expect(a.calls).toEqual(['accompanied']);
  });
});

describe('the gate of the process', () => {
  beforeEach(newProcess);
  afterEach(newProcess);

  it('is whichever was made first, by another copy of the library perhaps', () => {
    const foreign = { join: () => undefined };
    Object.assign(globalThis, { [GATE_KEY]: foreign });
    expect(processGate()).toBe(foreign);
    expect(Symbol.keyFor(GATE_KEY)).toBe('nestjs-delay-queue/isolation-gate/1');
  });

  it('is one for all', () => {
    expect(processGate()).toBe(processGate());
  });
});
