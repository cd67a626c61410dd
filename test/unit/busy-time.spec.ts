import { describe, expect, it } from '@jest/globals';
import { BusyTime } from '../../lib/history/busy-time.js';
import { QueueTally } from '../../lib/tally/tally.js';

const SECOND = 1_000;

/** One second in which so many jobs were claimed, so late. */
interface Second {
  readonly claimed: number;
  readonly lateness?: number;
  readonly full?: boolean;
}

function watched(seconds: readonly Second[]): { ms: number; claimed: number } {
  const tally = new QueueTally();
  const busy = new BusyTime(tally);
  for (const { claimed, lateness = 0, full = false } of seconds) {
    tally.claimed += claimed;
    for (let n = 0; n < claimed; n++) tally.lateness.observe(lateness);
    busy.look(tally, full, SECOND);
  }
  return { ms: busy.ms, claimed: busy.claimed };
}

const times = (count: number, ...seconds: Second[]) => Array.from({ length: count }, () => seconds).flat();

describe('busy time', () => {
  it('is when jobs waited for a slot, and counts what was claimed then', () => {
    expect(watched(times(5, { claimed: 100, lateness: 2 }))).toEqual({ ms: 5 * SECOND, claimed: 500 });
  });

  it('is none while jobs start on time, however many', () => {
    expect(watched(times(5, { claimed: 10_000, lateness: 0.005, full: true }))).toEqual({ ms: 0, claimed: 0 });
  });

  it('is none while there is nothing to do', () => {
    expect(watched(times(5, { claimed: 0 }))).toEqual({ ms: 0, claimed: 0 });
  });

  it('is also the time of long runs between claims, when a job waited for their end', () => {
    const runs = times(3, ...times(9, { claimed: 0, full: true }), { claimed: 1, lateness: 9, full: true });
    expect(watched(runs)).toEqual({ ms: 30 * SECOND, claimed: 3 });
  });

  it('is not the time of long runs after which a job starts on time', () => {
    const runs = times(3, ...times(9, { claimed: 0, full: true }), { claimed: 1, lateness: 0.002 });
    expect(watched(runs)).toEqual({ ms: 0, claimed: 0 });
  });

  it('does not count a wait with a free slot: the process was not what jobs waited for', () => {
    expect(watched([...times(9, { claimed: 0 }), { claimed: 5, lateness: 9 }])).toEqual({ ms: SECOND, claimed: 5 });
  });
});
