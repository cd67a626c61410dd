import { describe, expect, it } from '@jest/globals';
import { CallShares } from '../../lib/producer/call-shares.js';

/** Answers that took so long, one after the other. */
function after(...answers: readonly { readonly ms: number; readonly jobs?: number }[]): CallShares {
  const shares = new CallShares();
  for (const { ms, jobs = 1 } of answers) shares.answered(ms, jobs);
  return shares;
}

const times = <T>(n: number, one: T): T[] => Array.from({ length: n }, () => one);

describe('what one script call takes of the calls that wait', () => {
  it('is half where Redis is near and nothing is on its way, and else all', () => {
    for (const shares of [after(), after(...times(100, { ms: 0.4 }))]) {
      expect(shares.most(100, 4, true)).toBe(50);
      expect(shares.most(15, 4, true)).toBe(200);
      expect(shares.most(100, 3, false)).toBe(200);
    }
  });

  it('is an even share of the free sessions where Redis is far', () => {
    const shares = after(...times(100, { ms: 2.7 }));
    expect(shares.most(100, 4, true)).toBe(25);
    expect(shares.most(75, 3, false)).toBe(25);
    expect(shares.most(100, 1, false)).toBe(100);
  });

  it('is never so small that Redis has more scripts than it saves', () => {
    expect(after(...times(100, { ms: 2.7 })).most(10, 4, true)).toBe(8);
  });

  it('never exceeds what a script may take', () => {
    expect(after(...times(100, { ms: 2.7 })).most(10_000, 4, true)).toBe(200);
    expect(after().most(10_000, 4, true)).toBe(200);
  });

  it('goes by the quickest answer: one that waited for something says nothing about the way', () => {
    const slow = times(5, { ms: 40 });
    expect(after(...times(100, { ms: 0.4 }), ...slow, { ms: 0.4 }, ...slow).most(100, 4, true)).toBe(50);
    expect(after(...times(100, { ms: 40 }), { ms: 0.9 }).most(100, 4, true)).toBe(50);
  });

  it('does not take the work of a large call for a long way', () => {
    expect(after(...times(100, { ms: 2.7, jobs: 200 })).most(100, 4, true)).toBe(50);
  });

  it('follows a Redis that moves away, and back', () => {
    const away = [...times(100, { ms: 0.4 }), ...times(30, { ms: 3 })];
    expect(after(...away).most(100, 4, true)).toBe(25);
    expect(after(...away, { ms: 0.4 }).most(100, 4, true)).toBe(50);
  });
});
