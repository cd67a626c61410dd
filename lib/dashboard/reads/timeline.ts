import { sum } from '../../inspection/queue-counts.js';
import type { Timeline } from '../../inspection/timeline.js';
import type { TimelineResponse } from '../api.js';
import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';

/** Of a sum: 120 counts of each. */
const MOST_QUEUES = 200;
/** A sum of all queues asks Redis for thousands of counts, so many tabs share one. */
const SUM_VALID_MS = 2_000;

export async function readTimeline(view: InstanceView, query: Fields): Promise<TimelineResponse> {
  const queue = query.optionalText('queue');
  const options = { from: query.number('from'), to: query.number('to'), buckets: query.number('buckets') };
  query.end();
  if (queue !== undefined) return { ...shown([await view.inspector.timeline(queue, options)]), left: 0 };
  return view.shared.value(`timeline ${JSON.stringify(options)}`, SUM_VALID_MS, () => sumOfAll(view, options));
}

async function sumOfAll(
  view: InstanceView,
  options: { from: number | undefined; to: number | undefined; buckets: number | undefined },
): Promise<TimelineResponse> {
  const names = await view.queueNames();
  const chosen = names.slice(0, MOST_QUEUES);
  // The first one that can be read says what is now, so that the buckets of all are the same.
  let first: Timeline | undefined;
  let failure: unknown;
  let at = 0;
  for (; !first && at < chosen.length; at++) {
    try {
      first = await view.inspector.timeline(chosen[at]!, options);
    } catch (error) {
      failure = error;
      // What is wrong with the question is wrong for all; a name that is a shard of another queue is wrong for itself.
      if (/INVALID_(?!QUEUE)/.test((error as { code?: string }).code ?? '') || at >= MOST_FAILURES) throw error;
    }
  }
  if (!first) {
    if (failure) throw failure;
    // Without any queue the question is answered for one that nobody has used.
    first = await view.inspector.timeline('none', options);
    return { ...shown([first]), queues: 0, left: 0 };
  }
  const same = { from: first.from, to: first.to, buckets: options.buckets };
  const others = await Promise.allSettled(chosen.slice(at).map((queue) => view.inspector.timeline(queue, same)));
  const all = [first, ...others.filter((look) => look.status === 'fulfilled').map(({ value }) => value)];
  return { ...shown(all), left: names.length - all.length };
}

/** Queues that cannot be read, one after the other, before that is the answer. */
const MOST_FAILURES = 5;

function shown(all: readonly Timeline[]): Omit<TimelineResponse, 'left'> {
  const { now, from, to, widthMs, counts } = all[0]!;
  const firsts = all.flatMap(({ firstDueAt }) => (firstDueAt ? [firstDueAt.getTime()] : []));
  const lasts = all.flatMap(({ lastDueAt }) => (lastDueAt ? [lastDueAt.getTime()] : []));
  return {
    now: now.getTime(),
    from: from.getTime(),
    to: to.getTime(),
    widthMs,
    counts: counts.map((_, n) => sum(all.map((one) => one.counts[n] ?? 0))),
    overdue: sum(all.map(({ overdue }) => overdue)),
    before: sum(all.map(({ before }) => before)),
    after: sum(all.map(({ after }) => after)),
    ...(firsts.length > 0 && { firstDueAt: Math.min(...firsts) }),
    ...(lasts.length > 0 && { lastDueAt: Math.max(...lasts) }),
    queues: all.length,
  };
}
