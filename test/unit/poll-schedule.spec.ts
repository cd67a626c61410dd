import { describe, expect, it } from '@jest/globals';
import type { StepReply } from '../../lib/redis/step.protocol.js';
import { PollSchedule } from '../../lib/worker/poll-schedule.js';

const NOW = 1_800_000_000_000;

function reply(more: Partial<StepReply>): StepReply {
  return {
    now: NOW,
    claim: 0,
    head: undefined,
    firstLease: undefined,
    isLeader: true,
    mayIsolate: false,
    paused: false,
    isNew: false,
    isLimited: false,
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
  const afterAnEmptyClaim = () => {
    const look = new PollSchedule(30_000);
    look.takeSweep(0);
    look.answered(reply({}), 1_000, true, false);
    expect(look.at).toBe(6_000);
    return look;
  };

  it.each([
    ['comes later', 20, 1_030],
    ['is due', -5, 1_010],
  ])(
    'is when the head that a step has left %s, also if that step only settled during the claim of the other session',
    (_, inMs, at) => {
      const look = afterAnEmptyClaim();
      look.answered(reply({ head: NOW + inMs }), 1_010, false, false, true);
      expect(look.at).toBe(at);
    },
  );

  it('is not put off by a step during the claim of the other session, whose answer comes when that moment has passed', () => {
    const look = afterAnEmptyClaim();
    look.answered(reply({}), 6_010, false, false, true);
    expect(look.isDue(6_010)).toBe(true);
  });

  it('is put off by a step of a worker that may not ask, so that it does not spin', () => {
    const look = afterAnEmptyClaim();
    look.answered(reply({}), 6_010, false, false, false);
    expect(look.at).toBe(11_010);
  });

  it('is as soon as a slot is free after a claim without one, by which Redis took the worker from those that wait', () => {
    const look = afterAnEmptyClaim();
    look.answered(reply({ head: NOW + 20, isLeader: false }), 1_010, true, false, true, false);
    expect(look.isDue(1_010)).toBe(true);
  });

  it('is not changed by a step of a worker that is full, or whose queue is paused', () => {
    const look = afterAnEmptyClaim();
    look.answered(reply({ head: NOW + 20 }), 1_010, false, false, false);
    look.answered(reply({ head: NOW + 20, paused: true }), 1_010, false, false, true);
    expect(look.at).toBe(6_000);
  });
});
