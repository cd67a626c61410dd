import { axisTime } from '../format.js';
import type { Zone } from '../format.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Distances that people read well, ms. */
const STEPS = [
  1,
  5,
  10,
  50,
  100,
  500,
  1_000,
  5_000,
  10_000,
  30_000,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
  7 * DAY,
  14 * DAY,
  30 * DAY,
  90 * DAY,
  365 * DAY,
  3_650 * DAY,
];

export interface Marks {
  readonly at: number[];
  readonly step: number;
}

/** Times below an axis: at most so many, at full minutes, hours or days of the zone. */
export function marksOf(from: number, to: number, most: number, zone: Zone): Marks {
  const step = STEPS.find((width) => (to - from) / width <= most) ?? STEPS.at(-1)!;
  const shift = zone === 'utc' ? 0 : new Date(from).getTimezoneOffset() * MINUTE;
  const at: number[] = [];
  for (let mark = Math.ceil((from - shift) / step) * step + shift; mark <= to; mark += step) at.push(mark);
  return { at, step };
}

export function labelsOf({ at, step }: Marks, zone: Zone): string[] {
  return at.map((time) => axisTime(time, step, zone));
}
