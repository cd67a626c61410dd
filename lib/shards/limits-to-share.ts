import { InvalidOptionError } from '../delay-queue.errors.js';
import { parseLimits, shareProblem } from '../job/queue-limits.js';
import type { ShardMarks } from './shard-marks.js';
import { hasGroupsWord } from './shard-state.js';

/**
 * The limits of a queue, which its new shards are to share.
 *
 * @param olds the shards that have them
 * @param conditions of the change (lib/lua/reshard/mark-shard.lua)
 * @returns undefined when the queue has no groups, priorities and limits
 * @throws InvalidOptionError when they are too low for so many shards
 */
export async function limitsFor(
  queue: string,
  to: number,
  olds: readonly ShardMarks[],
  conditions: string,
): Promise<readonly [text: string, setBy: string, ofSettings: string, revision: string] | undefined> {
  const metas = await Promise.all(
    olds.map((tag) => tag.meta(['needs', 'limits', 'limitsBy', 'limitsOfSettings', 'limitsRevision'])),
  );
  const limited = metas.filter(([needs]) => hasGroupsWord(needs));
  if (limited.length === 0) return undefined;
  // A call that broke off has not reached all shards. One that its library set without a revision is older than any.
  const revisions = limited.map(([, , , , revision]) => revisionIn(revision));
  const newest = Math.max(...revisions);
  const latest = limited.filter((_, n) => revisions[n] === newest);
  // What an operator has said holds, also that there are none.
  const said = latest.find(([, , by]) => by === 'o') ?? latest.find(([, found]) => found);
  const [, text, setBy, ofSettings] = said ?? [];
  const revision = String(newest);
  const problem = shareProblem(parseLimits(text ?? '') ?? {}, to);
  if (problem === undefined) return [text ?? '', setBy ?? 'c', ofSettings ?? '', revision];
  // An empty queue is changed by the boot of an application, and whoever works on it sets limits that fit.
  if (conditions === 'e' && setBy !== 'o') return ['', 'c', '', revision];
  const call =
    conditions === 'e' ? `forRoot({ queues: { "${queue}": { shards } } })` : `reshard("${queue}", { to: ${to} })`;
  throw new InvalidOptionError(`${call}: ${problem} \`setLimits()\` of the inspector sets higher limits.`);
}

/** Junk is none. */
function revisionIn(text: string | null | undefined): number {
  return /^\d{1,16}$/.test(text ?? '') ? Number(text) : 0;
}
