import type { ShardStore } from '../redis/shard-store.js';

/** What lib/lua/limits/limit.lua answers. */
export interface LimitsAnswer {
  /** `s` set, `k` kept: an operator set others, `u` as they were, `n` it is no queue with limits, `c` another call has come between. */
  readonly outcome: 's' | 'k' | 'u' | 'n' | 'c';
  /** The limits before, as the script takes them. */
  readonly before: string;
  /** `o` an operator, `c` the settings of an application. */
  readonly setBy: 'o' | 'c';
  /** What applications said last. */
  readonly ofSettings: string;
  readonly revision: number;
  /** The limits that hold. */
  readonly holding: string;
}

/**
 * Sets the limits of all shards of a queue, so that those of one call hold, however many come at a time.
 *
 * The first shard takes one call after the other and gives what it has a revision; the others take it from there, if it is newer than what
 * they have. So the call that the first shard took last holds in all of them. A call that finds a newer one in a shard takes that to all as
 * well: its process may have died on the way. What a dead process has left undone the next call completes, also one that changes nothing.
 * A copy of a call that comes late changes nothing where another one was answered since: it names the revision that it has read.
 *
 * Refused: to send each call to all shards at once, in which two calls come in another order each; and to have the last shard decide, or a
 * lock, which a dead process would keep.
 *
 * @param text as the script takes them, '' for none
 * @param by `c` from the settings of an application, `o` by an operator, `r` gives back those of applications
 * @returns what the first shard has answered
 * @throws errors of the connection: then repeat the call, for some shards may have the limits and others not
 */
export async function spreadLimits(
  stores: readonly ShardStore[],
  text: string,
  by: 'c' | 'o' | 'r',
): Promise<LimitsAnswer> {
  const [first, ...others] = stores as readonly [ShardStore, ...ShardStore[]];
  let answer = await askLimits(first);
  if (answer.outcome === 'n') {
    if (text === '') return answer;
    if (others.length > 0) await first.beginGroups();
  }
  // Each repeat follows a call that was done.
  do answer = await call(first, [text, by, answer.revision]);
  while (answer.outcome === 'c');
  let latest = answer;
  for (;;) {
    const { holding, setBy, ofSettings, revision } = latest;
    const takes = others.map((store) => call(store, [holding, 't', revision, setBy, ofSettings]));
    const known = Math.max(revision, ...(await Promise.all(takes)).map((taken) => taken.revision));
    if (known === revision) return answer;
    latest = await askLimits(first, known);
    // Removed meanwhile, with its limits.
    if (latest.outcome === 'n') return answer;
  }
}

/**
 * @param known a revision that another shard has: where the first one has lost what it was told last, it gives a newer one to what it has
 * @throws errors of the connection
 */
export function askLimits(first: ShardStore, known = 0): Promise<LimitsAnswer> {
  return call(first, ['?', 'c', known]);
}

async function call(store: ShardStore, args: (string | number)[]): Promise<LimitsAnswer> {
  const answer = (await store.call('limit', args)) as [
    LimitsAnswer['outcome'],
    string,
    LimitsAnswer['setBy'],
    string,
    string,
    string,
  ];
  const [outcome, before, setBy, ofSettings, revision, holding] = answer;
  return { outcome, before, setBy, ofSettings, revision: Number(revision), holding };
}
