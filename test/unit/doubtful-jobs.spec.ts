import { describe, expect, it } from '@jest/globals';
import { performance } from 'node:perf_hooks';
import { DoubtfulJobs } from '../../lib/producer/doubtful-jobs.js';

const item = (id: string, body = '1', spec = 'kd0') => ({ id, spec, content: `\n${body}` });
const doubts = () => new DoubtfulJobs<object>();
const flight = {};
const until = performance.now() + 3_600_000;

describe('jobs in doubt', () => {
  it('are taken once each, the first one first', () => {
    const jobs = doubts();
    for (const place of [0, 1]) jobs.add({ item: item('a'), flight, place, until });
    expect([jobs.take(item('a')), jobs.take(item('a')), jobs.take(item('a'))].map((doubt) => doubt?.place)).toEqual([
      0,
      1,
      undefined,
    ]);
    expect([jobs.isEmpty, jobs.isIn(flight)]).toEqual([true, false]);
  });

  it('are forgotten when the time for a repeat is over, and when somebody says so', () => {
    const jobs = doubts();
    jobs.add({ item: item('a'), flight, place: 0, until: performance.now() - 1 });
    jobs.add({ item: item('b'), flight, place: 0, until });
    jobs.forget('b');
    jobs.forget('unknown');
    expect([jobs.isEmpty, jobs.take(item('a')), jobs.take(item('b'))]).toEqual([true, undefined, undefined]);
  });

  it('hold a bounded number of bytes: the oldest go first', () => {
    const jobs = doubts();
    const body = 'x'.repeat(1024 * 1024);
    for (let n = 0; n < 40; n++) jobs.add({ item: item(`j${n}`, body), flight, place: n, until });
    const left = Array.from({ length: 40 }, (_, n) => n).filter((n) => jobs.take(item(`j${n}`, body)));
    expect(left.length).toBeGreaterThan(10);
    expect(left.length).toBeLessThanOrEqual(16);
    expect(left.at(-1)).toBe(39);
  });

  it.each(['pd0', 'ud0', 'rd0', 'md0'])('are none of a call that is a wish of its own (%s)', (spec) => {
    const jobs = doubts();
    jobs.add({ item: item('a', '1', spec), flight, place: 0, until });
    expect(jobs.isEmpty).toBe(true);
    jobs.add({ item: item('a'), flight, place: 0, until });
    expect(jobs.take(item('a', '1', spec))).toBeUndefined();
    expect(jobs.take(item('a', '2'))).toBeUndefined();
    expect(jobs.take(item('a'))).toBeDefined();
    jobs.clear();
  });
});
