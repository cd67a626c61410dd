import { describe, expect, it } from '@jest/globals';
import { performance } from 'node:perf_hooks';
import { DoubtfulJobs } from '../../lib/producer/doubtful-jobs.js';

const item = (id: string, body = '1', spec = 'kd0') => ({ id, spec, content: `\n${body}` });
const doubts = () => new DoubtfulJobs<object>({ decode: (body) => JSON.parse(body.slice(body.indexOf(' '))) });
/** As written by a codec of the application's that salts. */
const salted = (id: string, salt: number, body: string) => ({
  id,
  spec: 'kd0',
  content: `2{"e":"own"}\n${salt} ${body}`,
});
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

  it('are not those of another answer to a duplicate', () => {
    const jobs = doubts();
    jobs.add({ item: item('a'), flight, place: 0, until });
    expect(jobs.take(item('a', '1', 'xd0'))).toBeUndefined();
    expect(jobs.take(item('a', '1', 'kd500'))).toBeDefined();
    jobs.clear();
  });

  it('are known by the payload that the codec of the application gives back, and by the id if it gives none', () => {
    const jobs = doubts();
    jobs.add({ item: salted('a', 1, '{"n":1}'), flight, place: 0, until });
    expect(jobs.take(salted('a', 2, '{"n":2}'))).toBeUndefined();
    expect(jobs.take(salted('a', 3, '{"n":1}'))).toBeDefined();
    jobs.add({ item: salted('a', 4, '{'), flight, place: 0, until });
    expect(jobs.take(salted('a', 5, '{'))).toBeDefined();
    jobs.clear();
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
