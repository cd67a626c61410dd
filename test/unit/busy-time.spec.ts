import { describe, expect, it } from '@jest/globals';
import { BusyTime } from '../../lib/history/busy-time.js';
import { inBuckets, QueueTally } from '../../lib/tally/tally.js';

const SECOND = 1_000;

/** One second in which so many jobs were claimed, so late. */
interface Second {
  readonly claimed: number;
  readonly lateness?: number;
  readonly full?: boolean;
}

function watched(seconds: readonly Second[]) {
  const tally = new QueueTally(inBuckets);
  const busy = new BusyTime(tally);
  for (const { claimed, lateness = 0, full = false } of seconds) {
    tally.claimed += claimed;
    for (let n = 0; n < claimed; n++) tally.lateness.observe(lateness);
    busy.look(tally, full, SECOND);
  }
  const { ms, claimed, edgeMs, edgeClaimed } = busy;
  return { ms, claimed, edgeMs, edgeClaimed };
}

const times = (count: number, ...seconds: Second[]) => Array.from({ length: count }, () => seconds).flat();

const NONE = { ms: 0, claimed: 0, edgeMs: 0, edgeClaimed: 0 };

describe('busy time', () => {
  it('is when jobs waited for a slot, and counts what was claimed then', () => {
    const seconds = times(5, { claimed: 100, lateness: 2, full: true });
    expect(watched(seconds)).toEqual({ ms: 4 * SECOND, claimed: 400, edgeMs: SECOND, edgeClaimed: 100 });
  });

  it('has its first and its last second apart: the backlog may have been there for a part of them only', () => {
    const first = { claimed: 160, lateness: 0.5 };
    const last = { claimed: 7, lateness: 3 };
    const seconds = [first, ...times(3, { claimed: 100, lateness: 2 }), last, { claimed: 0 }, { claimed: 5 }];
    const one = { ms: 3 * SECOND, claimed: 300, edgeMs: 2 * SECOND, edgeClaimed: 167 };
    expect(watched(seconds)).toEqual(one);
    const twice = Object.fromEntries(Object.entries(one).map(([name, value]) => [name, 2 * value]));
    expect(watched([...seconds, ...seconds])).toEqual(twice);
  });

  it('is none while jobs start on time, however many', () => {
    expect(watched(times(5, { claimed: 10_000, lateness: 0.005, full: true }))).toEqual(NONE);
  });

  it('is none while there is nothing to do', () => {
    expect(watched(times(5, { claimed: 0 }))).toEqual(NONE);
  });

  it('is also the time of long runs between claims, when a job waited for their end', () => {
    const runs = times(3, ...times(9, { claimed: 0, full: true }), { claimed: 1, lateness: 9, full: true });
    expect(watched(runs)).toEqual({ ms: 20 * SECOND, claimed: 2, edgeMs: 10 * SECOND, edgeClaimed: 1 });
  });

  it('is not the time of long runs after which a job starts on time', () => {
    const runs = times(3, ...times(9, { claimed: 0, full: true }), { claimed: 1, lateness: 0.002 });
    expect(watched(runs)).toEqual(NONE);
  });

  it('does not count a wait with a free slot: the process was not what jobs waited for', () => {
    const seconds = [...times(9, { claimed: 0 }), { claimed: 5, lateness: 9 }];
    expect(watched(seconds)).toEqual({ ...NONE, edgeMs: SECOND, edgeClaimed: 5 });
  });
});
