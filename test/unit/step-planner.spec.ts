import { describe, expect, it } from '@jest/globals';
import { FULL_FOR_MS, planStep } from '../../lib/worker/step-planner.js';
import type { StepDraft, StepView } from '../../lib/worker/step-planner.js';

const NOW = 1_000_000;

/** A worker of one shard that has ten slots, runs nothing and sleeps until its head is due. */
const RESTING: StepView = {
  now: NOW,
  isStopping: false,
  stepsOut: 0,
  wanted: 0,
  free: 10,
  ahead: 0,
  claimSize: 10,
  slots: 10,
  isShared: false,
  looksOnce: false,
  fairShare: 10,
  ended: 0,
  backlog: false,
  isAtLimit: false,
  isForced: false,
  isPollDue: false,
  longestPollMs: 5_000,
  heartbeat: false,
  isOpen: true,
  isEmpty: true,
  quarantine: { jobs: 0, quarantinedForMs: 0 },
  isQuarantineAsked: false,
  asksIsolation: false,
  idleUntil: NOW + 5_000,
  fullSince: Infinity,
};
const BUSY: Partial<StepView> = { isEmpty: false, free: 0 };
const LARGE: Partial<StepView> = { slots: 64, fairShare: 64, claimSize: 32 };
const FEW = { jobs: 1, quarantinedForMs: 0 };

function plan(changes: Partial<StepView>) {
  return planStep({ ...RESTING, ...changes });
}

describe('no step leaves', () => {
  it.each<[string, Partial<StepView>]>([
    ['while nothing is due', {}],
    ['while all slots are taken', { ...BUSY, isPollDue: true, idleUntil: 0 }],
    ['to claim while the process stops', { isStopping: true, free: 0, isPollDue: true, idleUntil: 0 }],
    ['of a shard that hears when others free a slot', { ...BUSY, isShared: true, fullSince: NOW - FULL_FOR_MS }],
    ['to claim while a step may bring all there is', { stepsOut: 1, wanted: 5, free: 5, isPollDue: true }],
    ['to claim during a claim from the quarantine', { isQuarantineAsked: true, stepsOut: 1, isPollDue: true }],
    ['a second one for few endings', { ...LARGE, free: 0, stepsOut: 1, wanted: 32, ended: 15 }],
    ['a second one for a queue at its limit, when nothing ended here', { isAtLimit: true, stepsOut: 1, free: 5 }],
  ])('%s', (_, changes) => {
    expect(plan(changes)).toEqual({ waitsForSlot: false, fullSince: Infinity, request: undefined });
  });
});

describe('a step leaves', () => {
  it.each<[string, Partial<StepView>, Partial<StepDraft>]>([
    ['to claim what is due', { isPollDue: true }, { limit: 10, isSole: true, looks: true, saysSomething: true }],
    ['to claim no more than has room', { isPollDue: true, free: 3, isEmpty: false }, { limit: 3, isSole: false }],
    ['to claim no more than its share', { isPollDue: true, claimSize: 5 }, { limit: 5, hasFreeSlots: true }],
    ['to settle, and claims with it', { ended: 1, free: 4 }, { limit: 4, hasFreeSlots: false }],
    ['to settle while the process stops', { ended: 1, isStopping: true, free: 0 }, { limit: 0, saysSomething: false }],
    ['to renew leases', { ...BUSY, heartbeat: true }, { limit: 0, heartbeat: true, saysSomething: false }],
    [
      'a second one while there is a backlog',
      { stepsOut: 1, wanted: 5, free: 5, backlog: true, ended: 1 },
      { limit: 5 },
    ],
    [
      'a second one for a single ending that makes room in a queue at its limit, and claims with it',
      { ...LARGE, isAtLimit: true, stepsOut: 1, free: 40, ended: 1 },
      { limit: 32 },
    ],
    [
      'a second one after a wake-up',
      { stepsOut: 1, wanted: 5, free: 5, isForced: true, isPollDue: true },
      { limit: 5 },
    ],
    [
      'a second one for many endings',
      { ...LARGE, free: 0, stepsOut: 1, wanted: 32, ended: 16 },
      { claimInFlight: true },
    ],
    [
      'for the quarantine, and claims nothing else',
      { quarantine: FEW, isPollDue: true },
      { limit: 0, quarantineLimit: 1, isSole: true },
    ],
    [
      'to ask for an empty process',
      { asksIsolation: true, isEmpty: false },
      { limit: 0, asksIsolation: true, saysSomething: true },
    ],
    [
      'to let others be woken while claiming pauses',
      { isOpen: false, isPollDue: true },
      { limit: 0, hasFreeSlots: false, looks: true },
    ],
  ])('%s', (_, changes, request) => {
    expect(plan(changes).request).toMatchObject(request);
  });
});

describe('whether Redis counts this worker among those that wait', () => {
  it.each<[string, Partial<StepView>, number, boolean]>([
    ['a claim keeps it there', { isPollDue: true, idleUntil: NOW + 6_100 }, NOW + 6_100, false],
    [
      'a claim puts it there again when that would end before the next look, 5 s later, or soon after it',
      { isPollDue: true, idleUntil: NOW + 5_900 },
      NOW + 7_000,
      true,
    ],
    ['a step that leaves no slot free and brings nothing removes it', { ...BUSY, ended: 1 }, 0, false],
    ['a claim of a pull() that does not wait removes it', { isPollDue: true, looksOnce: true }, 0, false],
    [
      'a claim for half of its slots, too',
      { isPollDue: true, looksOnce: true, claimSize: 5, stepsOut: 1, wanted: 2, isForced: true },
      0,
      false,
    ],
    ['not while a claim on its way may need it', { ...BUSY, ended: 5, stepsOut: 1, wanted: 4 }, NOW + 5_000, false],
    [
      'a claim for jobs ahead of the slots does not put it there',
      {
        ...BUSY,
        ahead: 4,
        claimSize: 4,
        ended: 5,
        stepsOut: 1,
        wanted: 4,
        backlog: true,
        isPollDue: true,
        idleUntil: 0,
      },
      0,
      false,
    ],
  ])('%s', (_, changes, idleUntil, refreshIdle) => {
    expect(plan(changes).request).toMatchObject({ idleUntil, refreshIdle });
  });

  it.each<[string, Partial<StepView>]>([
    ['a worker that two claims have filled', { ...LARGE, ...BUSY }],
    ['a worker whose concurrency fell below what it runs', { ...BUSY, slots: 2 }],
    ['a pull() that is over', { free: 0, slots: 0 }],
    ['a pull() that is over, of a queue with shards', { free: 0, slots: 0, isShared: true }],
    ['a process that stops, while its jobs go on', { ...BUSY, isStopping: true }],
    ['a process that stops, of a queue with shards', { ...BUSY, isStopping: true, isShared: true }],
  ])('%s says so, but not at once', (_, changes) => {
    expect(plan(changes)).toEqual({ waitsForSlot: false, fullSince: NOW, request: undefined });
    const { fullSince, request } = plan({ ...changes, fullSince: NOW - FULL_FOR_MS });
    expect(fullSince).toBe(NOW - FULL_FOR_MS);
    expect(request).toMatchObject({ limit: 0, idleUntil: 0, saysSomething: true });
  });
});

describe('whether or not a step leaves', () => {
  it.each<[string, Partial<StepView>, boolean]>([
    ['it waits for a slot that other shards have', { isShared: true, free: 0, backlog: true }, true],
    [
      'it waits for a slot when it renews a lease while others have them all: Redis wakes it no more',
      { isShared: true, free: 0, heartbeat: true },
      true,
    ],
    ['it waits for one when it asks to isolate', { isShared: true, free: 0, asksIsolation: true }, true],
    ['it waits for one while claiming pauses', { isShared: true, free: 0, isPollDue: true, isOpen: false }, true],
    [
      'it waits for none while its own claim has them all, which made it claim again after each vain answer',
      { isShared: true, free: 0, wanted: 10, stepsOut: 1, asksIsolation: true },
      false,
    ],
    [
      'it waits for none while its own claim that looks for due jobs has them all, which made each look two',
      { isShared: true, free: 0, wanted: 10, stepsOut: 1, isPollDue: true },
      false,
    ],
    [
      'it waits for one if that claim leaves it off the list, as claiming pauses',
      { isShared: true, free: 0, wanted: 10, stepsOut: 1, heartbeat: true, isOpen: false },
      true,
    ],
    ['a queue whose concurrency is 0 waits for no slot', { isShared: true, free: 0, slots: 0, isPollDue: true }, false],
  ])('%s', (_, changes, waitsForSlot) => {
    expect(plan(changes).waitsForSlot).toBe(waitsForSlot);
  });
});
