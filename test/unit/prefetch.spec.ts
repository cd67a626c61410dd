import { beforeEach, describe, expect, it } from '@jest/globals';
import { Prefetch } from '../../lib/worker/prefetch.js';
import type { Supply } from '../../lib/worker/prefetch.js';

const SLOTS = 10;
let prefetch: Prefetch;
let now: number;
let ended: number;
beforeEach(() => {
  prefetch = new Prefetch();
  now = 1_000_000;
  ended = 0;
});

/** Answers arrive every `everyMs`; between two of them so many jobs end. */
function answers(times: number, everyMs: number, jobs: number, seen: Partial<Supply> = {}): void {
  for (let n = 0; n < times; n++) {
    prefetch.supplied({ now, ended, slots: SLOTS, busy: 0, waiting: 0, ...seen });
    now += everyMs;
    ended += jobs;
  }
}

describe('what is fetched ahead', () => {
  it('is nothing before it is known how much runs here', () => {
    answers(1, 10, 100);
    expect(prefetch.allowed).toBe(0);
  });

  it('grows while slots stand empty with nothing left to start', () => {
    answers(3, 10, 100);
    expect(prefetch.allowed).toBeGreaterThanOrEqual(2 * SLOTS);
  });

  it('is never more than runs in 25 ms', () => {
    answers(50, 10, 20);
    expect(prefetch.allowed).toBe(50);
  });

  it('is never more than 800', () => {
    answers(50, 10, 5_000);
    expect(prefetch.allowed).toBe(800);
  });

  it('stays nothing where the slots are busy when an answer arrives', () => {
    answers(50, 10, 100, { busy: SLOTS });
    expect(prefetch.allowed).toBe(0);
  });

  it('becomes less when most of it still waits', () => {
    answers(50, 10, 200);
    const before = prefetch.allowed;
    answers(3, 10, 200, { busy: SLOTS, waiting: before });
    expect(prefetch.allowed).toBeLessThan(before / 2);
  });

  it('is nothing again after a pause, whatever ran before it', () => {
    answers(50, 10, 200);
    now += 1_000;
    answers(1, 10, 0);
    expect(prefetch.allowed).toBe(0);
  });

  it('rests for a second when jobs went back', () => {
    answers(50, 10, 200);
    prefetch.rest(now);
    answers(90, 10, 200);
    expect(prefetch.allowed).toBe(0);
    answers(20, 10, 200);
    expect(prefetch.allowed).toBeGreaterThan(0);
  });
});

describe('steps on their way', () => {
  it('are two, and up to four where all that may be fetched ahead does not keep the slots busy', () => {
    expect(prefetch.steps).toBe(2);
    answers(50, 10, 20);
    expect(prefetch.steps).toBe(4);
  });

  it('become two again', () => {
    answers(50, 10, 20);
    answers(5, 10, 20, { busy: SLOTS, waiting: prefetch.allowed });
    expect(prefetch.steps).toBe(2);
  });
});
