import { expect, it } from '@jest/globals';
import { Repeats } from '../../../lib/dashboard/repeats.js';

function clocked() {
  const clock = { ms: 0 };
  return { clock, repeats: new Repeats(() => clock.ms) };
}

it('a line is said once a minute, then with how often it was left out; numbers make no other line of it', () => {
  const { clock, repeats } = clocked();
  expect(repeats.asSaid('job 1 failed')).toBe('job 1 failed');
  for (let n = 2; n < 12; n++) expect(repeats.asSaid(`job ${n} failed`)).toBeUndefined();
  expect(repeats.asSaid('another thing')).toBe('another thing');
  clock.ms = 60_000;
  expect(repeats.asSaid('job 12 failed')).toBe('job 12 failed The same 10 times since it was said last.');
  expect(repeats.asSaid('job 13 failed')).toBeUndefined();
});

it('a hundred different lines are said within a minute, whoever makes them up', () => {
  const { clock, repeats } = clocked();
  const letters = (n: number) => String.fromCodePoint(0x4e00 + n);
  const said = () => Array.from({ length: 1_000 }, (_, n) => repeats.asSaid(letters(n))).filter((line) => line);
  expect(said()).toHaveLength(100);
  expect(said()).toEqual([]);
  clock.ms = 60_001;
  expect(said()).toHaveLength(100);
});
