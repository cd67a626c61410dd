import { describe, expect, it } from '@jest/globals';
import { OncePerTurn } from '../../lib/once-per-turn.js';
import { setImmediate } from '../../lib/time-and-randomness.js';

const nextTurn = () => new Promise((resolve) => void setImmediate(resolve));

describe('what runs once per turn of the event loop', () => {
  it('runs once, in the next turn, however often it was asked for', async () => {
    let runs = 0;
    const act = new OncePerTurn(() => runs++);
    act.schedule();
    act.schedule();
    expect({ runs, isScheduled: act.isScheduled }).toEqual({ runs: 0, isScheduled: true });
    await nextTurn();
    expect({ runs, isScheduled: act.isScheduled }).toEqual({ runs: 1, isScheduled: false });
  });

  it('runs again in the turn after when it is asked for while it runs', async () => {
    let runs = 0;
    const act = new OncePerTurn(() => {
      if (++runs < 3) act.schedule();
    });
    act.schedule();
    for (const expected of [1, 2, 3, 3]) {
      await nextTurn();
      expect(runs).toBe(expected);
    }
  });
});
