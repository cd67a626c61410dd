import type { DelayQueueLogger } from '../delay-queue.logger.js';
import { limitsText, parseLimits } from '../job/queue-limits.js';
import type { ResolvedLimits } from '../job/queue-limits.js';
import { limitsSentence } from '../job/shown-limits.js';
import { isTransient } from '../redis/redis.errors.js';
import { spreadLimits } from '../shards/spread-limits.js';
import type { LimitsAnswer } from '../shards/spread-limits.js';
import type { ShardStore } from '../redis/shard-store.js';
import { sleep } from '../time-and-randomness.js';

const RETRY_MS = 500;

/**
 * Makes the limits of this process those of the queue, unless an operator has set others. Tried until Redis answers.
 *
 * @param stores its shards, which all have the same limits
 */
export async function setLimits(
  stores: readonly ShardStore[],
  limits: ResolvedLimits,
  logger: DelayQueueLogger,
  isOver: () => boolean,
): Promise<void> {
  const text = limitsText(limits);
  const { queue } = stores[0]!;
  while (!isOver()) {
    try {
      const line = changeOf(queue, text, await spreadLimits(stores, text, 'c'));
      if (line !== undefined) logger.warn(line);
      return;
    } catch (error) {
      if (!isTransient(error)) {
        logger.error(`Queue "${queue}": its limits could not be set: ${(error as Error).message}`);
        return;
      }
      await sleep(RETRY_MS, undefined, { ref: false });
    }
  }
}

/** @returns what is to be said of the answer */
function changeOf(queue: string, text: string, { outcome, before }: LimitsAnswer): string | undefined {
  if (outcome === 's' && before !== '')
    return `Queue "${queue}": its limits were ${shown(before)}, and are ${shown(text)} from now on.`;
  if (outcome !== 'k') return undefined;
  return (
    `Queue "${queue}": an operator has set its limits to ${shown(before)}, so ${shown(text)} does not hold. ` +
    "`setLimits(queue, 'config')` of the inspector ends that."
  );
}

const shown = (text: string) => limitsSentence(parseLimits(text));
