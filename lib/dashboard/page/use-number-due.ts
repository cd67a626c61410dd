import { total } from './sums.js';
import { useData } from './use-data.js';
import type { Data } from './use-data.js';

export interface Range {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** How many jobs are due in a range, as the server counts them now. Without a range it asks nothing. */
export function useNumberDue(queue: string | undefined, range: Range | undefined, everyMs = 0): Data<number> {
  const { from = 0, to } = range ?? {};
  const query = range && { queue, from, to: to ?? from + 1, buckets: 1 };
  const { value, ...others } = useData('timeline', query, { everyMs });
  // Where the range has no end, all that lies behind it belongs to it.
  return { ...others, value: value && total(value.counts, (many) => many) + (to === undefined ? value.after : 0) };
}
