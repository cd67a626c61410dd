import { describe, expect, it } from '@jest/globals';
import { LeaseRenewal } from '../../lib/worker/lease-renewal.js';
import type { Claim } from '../../lib/worker/lease-renewal.js';

const MOST = 200;
const LEASE_MS = 3_000;
const NOTHING_ENDS: ReadonlyMap<Claim, number> = new Map();

/** Claims that came one by one within the second before the virtual clock says 0. */
function bookOf(claims: number): LeaseRenewal {
  const book = new LeaseRenewal(LEASE_MS);
  for (let number = 1; number <= claims; number++) book.open(number, 1, (number - claims) / 5, false);
  return book;
}

/** Heartbeats of a time, each answered 2 ms later. @returns when they were sent */
function beat(book: LeaseRenewal, from: number, until: number): number[] {
  const sent: number[] = [];
  let now = from;
  for (;;) {
    now = Math.max(now, book.nextHeartbeat);
    if (now >= until) return sent;
    const renewals = book.ask(MOST, NOTHING_ENDS, now);
    sent.push(now);
    book.renewed(renewals, now);
    now += 2;
  }
}

describe('5,000 claims under one worker', () => {
  it('all keep their leases: the 201st and later ones were never renewed', () => {
    const book = bookOf(5_000);
    for (let now = 0; now < 60_000; now += 500) {
      beat(book, now, now + 500);
      const oldest = Math.min(...Array.from(book.all(), ({ renewedAt }) => renewedAt));
      expect(now + 500 - oldest).toBeLessThan(LEASE_MS / 2);
    }
  });

  it('cost a step per 200 of them and third of a lease, however they came', () => {
    for (const claims of [1, 200, 201, 1_000, 5_000]) {
      const sent = beat(bookOf(claims), 0, 60_000);
      const most = Math.ceil(claims / MOST);
      for (const from of sent) {
        const within = sent.filter((at) => at >= from && at < from + LEASE_MS / 3);
        expect(within.length).toBeLessThanOrEqual(most);
      }
    }
  });

  it('are not asked for again on the other session while an answer is on its way', () => {
    const book = bookOf(300);
    const first = book.ask(MOST, NOTHING_ENDS, 1_000);
    const second = book.ask(MOST, NOTHING_ENDS, 1_000);
    const numbers = new Set([...first, ...second].map(({ claim }) => claim.number));
    expect(numbers.size).toBe(300);
    expect(book.nextHeartbeat).toBe(2_000);
  });

  it('are due again when their step was refused', () => {
    const book = bookOf(300);
    book.notRenewed(book.ask(MOST, NOTHING_ENDS, 1_000));
    expect(book.nextHeartbeat).toBeLessThan(1_000);
    const [first] = book.ask(MOST, NOTHING_ENDS, 1_001);
    expect(first!.claim.number).toBe(1);
  });
});

describe('a claim whose answer came late', () => {
  it('is renewed first, although others were opened before it', () => {
    const book = bookOf(5_000);
    const late = book.open(9_999, 1, -2_000, false);
    expect(book.nextHeartbeat).toBe(-1_000);
    expect(book.ask(1, NOTHING_ENDS, 0)[0]!.claim.number).toBe(late.number);
  });
});

describe('a claim that was alone', () => {
  it('is spoken for among thousands until Redis has heard that it has company', () => {
    const book = bookOf(0);
    const first = book.open(1, 1, 0, true);
    for (let number = 2; number <= 1_000; number++) book.open(number, 1, number, false);
    expect(book.ask(0, NOTHING_ENDS, 1_001)).toEqual([]);
    const early = book.ask(1, NOTHING_ENDS, 1_002);
    expect(early).toMatchObject([{ claim: first, sole: true }]);
    book.markAccompanied(false);
    // What was sent before said "alone", so its answer proves nothing.
    book.renewed(early, 1_002);
    expect(book.ask(0, NOTHING_ENDS, 1_003)).toMatchObject([{ claim: first, sole: false }]);
    book.renewed(book.ask(0, NOTHING_ENDS, 1_004), 1_004);
    expect(book.ask(0, NOTHING_ENDS, 1_005)).toEqual([]);
  });
});

describe('overdue claims', () => {
  it('are told once, after the patience, and again after a renewal', () => {
    const book = bookOf(3);
    const ends = LEASE_MS;
    expect(book.overdue(ends, 100).size).toBe(0);
    expect(book.overdue(ends + 99, 100).size).toBe(0);
    expect(book.overdue(ends + 100, 100).size).toBe(3);
    expect(book.overdue(ends + 500, 100).size).toBe(0);
    const renewals = book.ask(MOST, NOTHING_ENDS, ends + 500);
    book.renewed(renewals, ends + 500);
    expect(book.overdue(ends + 600, 100).size).toBe(0);
    expect(book.overdue(ends + 500 + LEASE_MS, 0).size).toBe(3);
  });
});
