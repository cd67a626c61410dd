import { expect, it } from '@jest/globals';
import { fitted } from '../../../lib/cli/terminal/fit.js';

const texts = (column: number) => column !== 1;

it('leaves columns as they are while they fit', () => {
  expect(fitted([10, 5, 20], 35, texts)).toEqual([10, 5, 20]);
});

it('takes from the widest texts first, from equal ones alike, and from numbers never', () => {
  expect(fitted([256, 30, 20], 100, texts)).toEqual([50, 30, 20]);
  expect(fitted([40, 5, 30], 65, texts)).toEqual([30, 5, 30]);
  expect(fitted([256, 5, 300], 65, texts).reduce((sum, width) => sum + width)).toBe(65);
});

it('leaves of each text enough to know it by, also where there is no room', () => {
  expect(fitted([256, 30, 3, 300], 20, texts)).toEqual([12, 30, 3, 12]);
});
