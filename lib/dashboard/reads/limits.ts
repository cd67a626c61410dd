import type { DelayQueueInspector } from '../../inspection/delay-queue.inspector.js';
import type { QueueGroup } from '../../inspection/limit-calls.js';
import type { RateLimit } from '../../job/queue-limits.js';
import { queueNameOf } from '../../job/queue-definition.js';
import type { LimitsResponse, RateRow } from '../api.js';
import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';

/** It looks at pages of groups. */
const VALID_MS = 2_000;
const LOOKED = 100;
const MOST_SHOWN = 10;
const MOST_PAGES = 8;

export async function readLimits(view: InstanceView, query: Fields): Promise<LimitsResponse> {
  const queue = queueNameOf(query.text('queue'));
  query.end();
  return view.shared.value(`limits ${queue}`, VALID_MS, () => limits(view, queue));
}

async function limits({ inspector }: InstanceView, queue: string): Promise<LimitsResponse> {
  const [stored, counts, groups] = await Promise.all([
    inspector.limits(queue),
    inspector.counts(queue),
    firstGroups(inspector, queue),
  ]);
  const { globalConcurrency, rateLimit, groups: ofGroups } = stored.limits ?? {};
  const waiting = groups.filter(({ due }) => due > 0).toSorted((a, b) => b.due - a.due);
  return {
    setBy: stored.setBy,
    running: counts.running,
    ...(globalConcurrency !== undefined && { concurrency: globalConcurrency }),
    ...(rateLimit && { rate: rateOf(rateLimit) }),
    ...(ofGroups?.concurrency !== undefined && { groupConcurrency: ofGroups.concurrency }),
    ...(ofGroups?.rateLimit && { groupRate: rateOf(ofGroups.rateLimit) }),
    limited: counts.limited ?? false,
    groups: counts.groups ?? { inLine: 0, limited: 0, total: 0 },
    backlog: waiting.slice(0, MOST_SHOWN).map(({ limitedUntil, group, ...others }) => ({
      ...(group !== undefined && { group }),
      ...others,
      ...(limitedUntil && { limitedUntil: limitedUntil.getTime() }),
    })),
    looked: groups.length,
  };
}

/** Of a queue with shards those of its first ones. */
async function firstGroups(inspector: DelayQueueInspector, queue: string): Promise<QueueGroup[]> {
  const found: QueueGroup[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MOST_PAGES && found.length < LOOKED; pages++) {
    const page = await inspector.groups(queue, {
      limit: LOOKED - found.length,
      ...(cursor !== undefined && { cursor }),
    });
    found.push(...page.groups);
    ({ cursor } = page);
    if (cursor === undefined) break;
  }
  return found;
}

/** Stored limits have their durations in ms. */
function rateOf({ max, per }: RateLimit): RateRow {
  return { max, perMs: Number(per) };
}
