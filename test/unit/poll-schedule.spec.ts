import { describe, expect, it } from '@jest/globals';
import type { StepReply } from '../../lib/redis/step.protocol.js';
import { PollSchedule } from '../../lib/worker/poll-schedule.js';

const NOW = 1_800_000_000_000;

function reply(more: Partial<StepReply>): StepReply {
  return {
    now: NOW,
    exactNow: more.now ?? NOW,
    claim: 0,
    head: undefined,
    firstLease: undefined,
    isLeader: true,
    mayIsolate: false,
    paused: false,
    isNew: false,
    isCut: false,
    isLimited: false,
    hasNoPlace: false,
    idle: 0,
    quarantined: 0,
    quarantinedSince: undefined,
    lost: [],
    aborted: [],
    left: new Map(),
    jobs: [],
    superseded: [],
    quiet: undefined,
    ...more,
  };
}

describe('when a worker looks next', () => {
  const swept = () => {
    const look = new PollSchedule(30_000);
    look.takeSweep(0);
    return look;
  };

  const afterAnEmptyClaim = () => {
    const look = swept();
    look.answered(reply({}), 1_000, 1_000, true, false);
    expect(look.at).toBe(6_000);
    return look;
  };

  it.each([
    ['comes later', 20, 1_030.05],
    ['is due', -5, 1_010],
  ])(
    'is when the head that a step has left %s, also if that step only settled during the claim of the other session',
    (_, inMs, at) => {
      const look = afterAnEmptyClaim();
      look.answered(reply({ head: NOW + inMs }), 1_010, 1_010, false, false, true);
      expect(look.at).toBeCloseTo(at);
    },
  );

  it('is when somebody says so, or after seconds, where time goes on only when it is moved', () => {
    const look = swept();
    look.timePasses = false;
    look.answered(reply({ head: NOW + 20 }), 1_000, 1_000, true, false);
    expect(look.at).toBe(6_000);
    look.force();
    expect(look.isDue(1_001)).toBe(true);
  });

  it('is so early that a step is there when the head is due, by the quickest way there that was seen', () => {
    const look = swept();
    look.answered(reply({ exactNow: NOW + 0.4 }), 999, 1_000.2, true, false);
    look.answered(reply({ now: NOW + 50, exactNow: NOW + 50.3, head: NOW + 70 }), 1_049.3, 1_050.6, true, false);
    // On that way a step of 999 would have been there at NOW.
    expect(look.at).toBeCloseTo(1_069.05);
  });

  it('is when the head is certainly due, after a step that left too early', () => {
    const look = swept();
    look.answered(reply({ exactNow: NOW + 0.4, head: NOW + 50 }), 999.6, 1_000.2, true, false);
    expect(look.at).toBeCloseTo(1_049.25);
    // The clocks drift apart.
    look.answered(reply({ now: NOW + 49, exactNow: NOW + 49.9, head: NOW + 50 }), 1_049.6, 1_049.7, true, false);
    expect(look.at).toBeCloseTo(1_049.75);
  });

  it('is at once for a head that has become due while the answer was on its way', () => {
    const look = swept();
    look.answered(reply({ head: NOW + 50 }), 999.6, 1_000.2, true, false);
    look.answered(reply({ now: NOW + 49, exactNow: NOW + 49.5, head: NOW + 50 }), 1_049, 1_050.6, true, false);
    expect(look.at).toBe(1_050.6);
  });

  it('is not put off by a step during the claim of the other session, whose answer comes when that moment has passed', () => {
    const look = afterAnEmptyClaim();
    look.answered(reply({}), 6_010, 6_010, false, false, true);
    expect(look.isDue(6_010)).toBe(true);
  });

  it('is put off by a step of a worker that may not ask, so that it does not spin', () => {
    const look = afterAnEmptyClaim();
    look.answered(reply({}), 6_010, 6_010, false, false, false);
    expect(look.at).toBe(11_010);
  });

  it('is as soon as a slot is free after a claim without one, by which Redis took the worker from those that wait', () => {
    const look = afterAnEmptyClaim();
    look.answered(reply({ head: NOW + 20, isLeader: false }), 1_010, 1_010, true, false, true, false);
    expect(look.isDue(1_010)).toBe(true);
  });

  it('is not changed by a step of a worker that is full, or whose queue is paused', () => {
    const look = afterAnEmptyClaim();
    look.answered(reply({ head: NOW + 20 }), 1_010, 1_010, false, false, false);
    look.answered(reply({ head: NOW + 20, paused: true }), 1_010, 1_010, false, false, true);
    expect(look.at).toBe(6_000);
  });
});
