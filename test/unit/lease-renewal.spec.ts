import { describe, expect, it } from '@jest/globals';
import { LeaseRenewal } from '../../lib/worker/lease-renewal.js';
import type { Claim } from '../../lib/worker/lease-renewal.js';

const MOST = 200;
const LEASE_MS = 3_000;
const NOTHING_ENDS: ReadonlyMap<Claim, number> = new Map();

/** Claims that came one by one within the second before the virtual clock says 0. */
function renewalOf(claims: number): LeaseRenewal {
  const renewal = new LeaseRenewal(LEASE_MS);
  for (let number = 1; number <= claims; number++) renewal.open(number, 1, (number - claims) / 5, false);
  return renewal;
}

/** Heartbeats of a time, each answered 2 ms later. @returns when they were sent */
function beat(renewal: LeaseRenewal, from: number, until: number): number[] {
  const sent: number[] = [];
  let now = from;
  for (;;) {
    now = Math.max(now, renewal.nextHeartbeat);
    if (now >= until) return sent;
    const renewals = renewal.ask(MOST, NOTHING_ENDS, now);
    sent.push(now);
    renewal.renewed(renewals, now);
    now += 2;
  }
}

describe('5,000 claims under one worker', () => {
  it('all keep their leases: the 201st and later ones were never renewed', () => {
    const renewal = renewalOf(5_000);
    for (let now = 0; now < 60_000; now += 500) {
      beat(renewal, now, now + 500);
      const oldest = Math.min(...Array.from(renewal.all(), ({ renewedAt }) => renewedAt));
      expect(now + 500 - oldest).toBeLessThan(LEASE_MS / 2);
    }
  });

  it('cost a step per 200 of them and third of a lease, however they came', () => {
    for (const claims of [1, 200, 201, 1_000, 5_000]) {
      const sent = beat(renewalOf(claims), 0, 60_000);
      const most = Math.ceil(claims / MOST);
      for (const from of sent) {
        const within = sent.filter((at) => at >= from && at < from + LEASE_MS / 3);
        expect(within.length).toBeLessThanOrEqual(most);
      }
    }
  });

  it('are not asked for again on the other session while an answer is on its way', () => {
    const renewal = renewalOf(300);
    const first = renewal.ask(MOST, NOTHING_ENDS, 1_000);
    const second = renewal.ask(MOST, NOTHING_ENDS, 1_000);
    const numbers = new Set([...first, ...second].map(({ claim }) => claim.number));
    expect(numbers.size).toBe(300);
    expect(renewal.nextHeartbeat).toBe(2_000);
  });

  it('are due again when their step was refused', () => {
    const renewal = renewalOf(300);
    renewal.notRenewed(renewal.ask(MOST, NOTHING_ENDS, 1_000));
    expect(renewal.nextHeartbeat).toBeLessThan(1_000);
    const [first] = renewal.ask(MOST, NOTHING_ENDS, 1_001);
    expect(first!.claim.number).toBe(1);
  });
});

describe('a claim whose answer came late', () => {
  it('is renewed first, although others were opened before it', () => {
    const renewal = renewalOf(5_000);
    const late = renewal.open(9_999, 1, -2_000, false);
    expect(renewal.nextHeartbeat).toBe(-1_000);
    expect(renewal.ask(1, NOTHING_ENDS, 0)[0]!.claim.number).toBe(late.number);
  });
});

describe('a claim that was alone', () => {
  it('is spoken for among thousands until Redis has heard that it is not alone', () => {
    const renewal = renewalOf(0);
    const first = renewal.open(1, 1, 0, true);
    for (let number = 2; number <= 1_000; number++) renewal.open(number, 1, number, false);
    expect(renewal.ask(0, NOTHING_ENDS, 1_001)).toEqual([]);
    const early = renewal.ask(1, NOTHING_ENDS, 1_002);
    expect(early).toMatchObject([{ claim: first, sole: true }]);
    renewal.markAccompanied(false);
    // What was sent before said "alone", so its answer proves nothing.
    renewal.renewed(early, 1_002);
    expect(renewal.ask(0, NOTHING_ENDS, 1_003)).toMatchObject([{ claim: first, sole: false }]);
    renewal.renewed(renewal.ask(0, NOTHING_ENDS, 1_004), 1_004);
    expect(renewal.ask(0, NOTHING_ENDS, 1_005)).toEqual([]);
  });
});

describe('overdue claims', () => {
  it('are reported once, after the grace, and again after a renewal', () => {
    const renewal = renewalOf(3);
    const ends = LEASE_MS;
    expect(renewal.overdue(ends, 100).size).toBe(0);
    expect(renewal.overdue(ends + 99, 100).size).toBe(0);
    expect(renewal.overdue(ends + 100, 100).size).toBe(3);
    expect(renewal.overdue(ends + 500, 100).size).toBe(0);
    const renewals = renewal.ask(MOST, NOTHING_ENDS, ends + 500);
    renewal.renewed(renewals, ends + 500);
    expect(renewal.overdue(ends + 600, 100).size).toBe(0);
    expect(renewal.overdue(ends + 500 + LEASE_MS, 0).size).toBe(3);
  });
});
