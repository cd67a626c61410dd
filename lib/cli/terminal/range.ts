import { wallClock } from '../../time-and-randomness.js';
import { usage } from '../exit-codes.js';
import type { Times } from './times.js';

export interface RangeFlags {
  readonly from?: string;
  readonly to?: string;
}

export interface Range {
  readonly from?: number;
  readonly to?: number;
}

/**
 * What `--from` and `--to` say, for every command alike: from the first moment on, and before the second one. So a job that is listed
 * is one that the same range cancels.
 *
 * @returns the range by the clock of Redis
 * @throws CommandError for what is no time, and for a range in which nothing can lie: times in the wrong order look like no jobs
 */
export function rangeIn(times: Times, { from, to }: RangeFlags): (now: number) => Range {
  const begin = from === undefined ? undefined : times.moment(from, '--from');
  const end = to === undefined ? undefined : times.moment(to, '--to');
  const read = (now: number): Range => {
    const range = { ...(begin && { from: begin.at(now) }), ...(end && { to: end.at(now) }) };
    assertRange(range);
    return range;
  };
  // Only of a mixture the clock of this machine cannot say it.
  if (begin && end && begin.isRelative === end.isRelative) read(wallClock());
  return read;
}

/** @throws CommandError for a range in which nothing can lie */
export function assertRange({ from, to }: Range): void {
  if (from === undefined || to === undefined || to > from) return;
  throw usage(
    `--to: ${new Date(to).toISOString()} is not behind --from, ${new Date(from).toISOString()}. A range ends before --to.`,
  );
}
