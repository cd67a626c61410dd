import { describe, expect, it } from '@jest/globals';
import { Departures } from '../../lib/worker/departures.js';

/** The clock there, ahead of ours. */
const AHEAD = 1_800_000_000_000;
/** Somewhat more than the quickest way is reckoned with. */
const SPARE = 0.05;

/** A step that left at a moment here, with the ms that it took there and back. */
type Trip = readonly [leftAt: number, there: number, back: number];

function after(...trips: readonly Trip[]): Departures {
  const departures = new Departures();
  for (const [leftAt, there, back] of trips) departures.learn(AHEAD + leftAt + there, leftAt, leftAt + there + back);
  return departures;
}

/** How long after that moment there a step that leaves by it, on a way of so many ms, is there. */
const lateBy = (departures: Departures, wayMs: number, now = 10_000): number =>
  departures.for(AHEAD + now) + wayMs - now;

describe('a step that leaves to be there at a moment', () => {
  it('is there at that moment, however long the way there and the way back are', () => {
    for (const [there, back] of [
      [0.1, 0.1],
      [1.4, 1.4],
      [0.2, 40],
      [40, 0.2],
    ] as const)
      // prettier-ignore
      expect(lateBy(after([0, there, back]), there)).toBeCloseTo(SPARE, 3);
  });

  it('goes by the quickest way, so that it is never too early', () => {
    const departures = after([0, 3, 1], [10, 1, 1], [20, 9, 1], [30, 1.2, 1]);
    expect(lateBy(departures, 1)).toBeCloseTo(SPARE, 3);
    expect(lateBy(departures, 9)).toBeCloseTo(8 + SPARE, 3);
  });

  it('goes by the ways of the last seconds, and by the last one after a long rest', () => {
    const slower = [0, 1, 2, 3, 4, 5].map((n): Trip => [n * 1_000, 3, 1]);
    expect(lateBy(after([-10, 1, 1], ...slower.slice(0, 2)), 3)).toBeCloseTo(2 + SPARE, 3);
    expect(lateBy(after([-10, 1, 1], ...slower), 3)).toBeCloseTo(SPARE, 3);
    expect(lateBy(after([0, 1, 1], [400_000, 3, 1]), 3, 400_010)).toBeCloseTo(SPARE, 3);
  });

  it.each([
    ['set ahead', 60_000],
    ['set back', -60_000],
  ])('goes by the next answer when the clock there is %s', (_, ms) => {
    const departures = after([0, 1, 1]);
    departures.learn(AHEAD + 101 + ms, 100, 102);
    expect(departures.for(AHEAD + ms + 200) + 1).toBeCloseTo(200 + SPARE, 3);
  });

  it('leaves later after one that was there too early', () => {
    const departures = after([0, 1, 1]);
    const leftAt = departures.for(AHEAD + 100);
    departures.learn(AHEAD + leftAt + 0.8, leftAt, leftAt + 1.8);
    expect(departures.for(AHEAD + 100)).toBeCloseTo(leftAt + 0.2, 3);
  });
});
