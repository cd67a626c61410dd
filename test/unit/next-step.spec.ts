import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { StepReply } from '../../lib/redis/step.protocol.js';
import type { ClaimedJobs } from '../../lib/worker/claimed-jobs.js';
import { IsolationGate } from '../../lib/worker/isolation/isolation-gate.js';
import { NextStep } from '../../lib/worker/next-step.js';
import { Occupancy } from '../../lib/worker/occupancy.js';
import { SlotPool } from '../../lib/worker/slot-pool.js';
import type { StepRequest } from '../../lib/worker/step-request.js';
import type { ShardWorkerDeps } from '../../lib/worker/worker-deps.js';

const NOW = 1_800_000_000_000;
const CONCURRENCY = 2;

const nothingDue = {
  now: NOW,
  exactNow: NOW,
  isLeader: true,
  head: undefined,
  jobs: [],
  quarantined: 0,
} as Partial<StepReply> as StepReply;

let gate = new IsolationGate();
afterEach(() => {
  gate.fastForward(1e9); // Its timer would keep the process alive.
  gate = new IsolationGate();
});

/** The steps of the worker of a shard that shares its slots, without Redis. */
function shard(markAccompanied = () => {}) {
  const pool = new SlotPool(CONCURRENCY);
  const other = { wake: () => {}, wantsJobs: () => false };
  pool.join(other);
  const worker = {
    concurrency: CONCURRENCY,
    quarantined: 0,
    zombies: 0,
    caughtUpAt: Infinity,
    resume: jest.fn(),
    reconsider: () => {},
    markAccompanied,
    wake: () => {},
    wantsJobs: () => false,
  };
  gate.join(worker);
  const occupancy = new Occupancy(worker, pool, gate);
  let heartbeatAt = Infinity;
  const jobs = {
    executor: {},
    prefetched: { prefetch: { allowed: 0 } },
    untold: 0,
    takeEndings: () => ({ ended: [] }),
    runs: {
      nextMoment: Infinity,
      get nextHeartbeat() {
        return heartbeatAt;
      },
      renewals: (heartbeat: boolean) => {
        if (!heartbeat) return [];
        heartbeatAt = Infinity;
        return [{}];
      },
    },
  };
  const settings = { leaseMs: 30_000, concurrency: CONCURRENCY };
  const deps = { settings, gate, pool, deadLetters: { keep: 10 } } as unknown as ShardWorkerDeps;
  const next = new NextStep(deps, worker, jobs as unknown as ClaimedJobs, occupancy);

  /** A step leaves. @returns what it asks, and a function by which its answer comes */
  const leaves = (now: number) => {
    const request = next.plan(now, false)!;
    const ask = next.sent(request, now);
    const isAnswered = (at: number, brought = 0) => {
      occupancy.arrived(ask);
      next.answered(request, nothingDue, now, at, true);
      occupancy.brought(ask, brought, request.isSole ? 'alone' : 'no');
    };
    return { request, isAnswered };
  };
  return { pool, worker, next, occupancy, leaves, renewAt: (now: number) => (heartbeatAt = now) };
}

it('a worker that is woken while its claim is on its way asks for no slot twice', () => {
  const { next, leaves } = shard();
  const { request, isAnswered } = leaves(0);
  expect(request).toMatchObject({ limit: CONCURRENCY });
  next.look();
  expect(next.plan(1, false)?.limit ?? 0).toBe(0);
  isAnswered(2);
});

it('a slot that gets free while claiming pauses in this process leads to no step; the end of the pause does', () => {
  const { next, worker, leaves } = shard();
  leaves(0).isAnswered(1, 1);
  gate.clear(worker);
  expect(gate.isOpen).toBe(false);
  next.slotIsFree();
  expect(next.plan(2, false)).toBeUndefined();
  worker.resume.mockImplementation(() => next.look());
  gate.fastForward(1e9);
  expect(worker.resume).toHaveBeenCalledTimes(1);
  expect(next.plan(3, false)).toMatchObject({ limit: CONCURRENCY - 1 });
});

it('a slot that gets free where none was leads to a step, and one beside other free ones to none', () => {
  const { next, occupancy, leaves } = shard();
  leaves(0).isAnswered(1, CONCURRENCY);
  occupancy.ended(false);
  next.slotIsFree();
  const { request, isAnswered } = leaves(2);
  expect(request.limit).toBe(1);
  isAnswered(3);
  occupancy.ended(false);
  next.slotIsFree();
  expect(next.plan(4, false)).toBeUndefined();
});

describe('a step that says that its worker is full', () => {
  const full: Partial<StepRequest> = { limit: 0, hasFreeSlots: false, claimInFlight: false };

  /** It leaves while the other shard has all slots, and the next one asks for jobs, after which the worker may sleep. */
  const fullAndThenFree = () => {
    const { pool, next, leaves, renewAt } = shard();
    leaves(0).isAnswered(1);
    const user = { wake: () => {}, wantsJobs: () => false };
    const ofOther = { user, slots: CONCURRENCY, at: 2, held: true };
    pool.reserve(ofOther);
    renewAt(2);
    const first = leaves(2);
    expect(first.request).toMatchObject(full);
    pool.answered(ofOther, 0);
    next.look();
    const second = leaves(3);
    expect(second.request).toMatchObject({ limit: CONCURRENCY, refreshIdle: true });
    return { next, first, second };
  };

  it('makes it ask again when that step was overtaken by one that puts it on the list of idle workers', () => {
    const { next, first, second } = fullAndThenFree();
    second.isAnswered(4);
    first.isAnswered(5);
    expect(next.isWanted(5)).toBe(true);
    expect(next.plan(5, false)).toMatchObject({ limit: CONCURRENCY, refreshIdle: true });
  });

  it('makes it ask for nothing when it was answered first', () => {
    const { next, first, second } = fullAndThenFree();
    first.isAnswered(4);
    second.isAnswered(5);
    expect(next.isWanted(6)).toBe(false);
    expect(next.plan(6, false)).toBeUndefined();
  });
});

describe('a claim from the quarantine that leaves an empty process', () => {
  it('keeps the worker whose job was alone until now from asking for due jobs, which hears of that claim and plans at once', () => {
    let planned: StepRequest | undefined;
    const busy = shard(() => {
      busy.next.speak();
      busy.next.look();
      planned = busy.next.plan(3, false);
    });
    const first = busy.leaves(0);
    expect(first.request.isSole).toBe(true);
    first.isAnswered(1, 1);
    busy.occupancy.ended(false);
    busy.renewAt(3);

    const quarantined = shard();
    const told = { ...nothingDue, quarantined: 1, quarantinedSince: NOW };
    quarantined.next.turn.answered({ quarantineLimit: 0, asksIsolation: false } as StepRequest, told);
    expect(quarantined.leaves(2).request).toMatchObject({ quarantineLimit: 1, isSole: true });
    expect(planned).toMatchObject({ limit: 0, quarantineLimit: 0 });
  });
});
