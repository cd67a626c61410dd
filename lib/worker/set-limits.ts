import type { DelayQueueLogger } from '../delay-queue.logger.js';
import { limitsText } from '../job/queue-limits.js';
import type { ResolvedLimits } from '../job/queue-limits.js';
import { isTransient } from '../redis/redis.errors.js';
import type { ShardStore } from '../redis/shard-store.js';
import { sleep } from '../time-and-randomness.js';

const RETRY_MS = 500;

/** Makes the limits of this process those of the queue, unless an operator has set others. Tried until Redis answers. */
export async function setLimits(
  store: ShardStore,
  limits: ResolvedLimits,
  logger: DelayQueueLogger,
  isOver: () => boolean,
): Promise<void> {
  const text = limitsText(limits);
  while (!isOver()) {
    try {
      const [outcome, before] = (await store.call('limit', [text, 'c'])) as [string, string];
      if (outcome === 's' && before !== '') {
        logger.warn(`Queue "${store.queue}": its limits were "${before}", and are "${text}" from now on.`);
      } else if (outcome === 'k') {
        logger.warn(
          `Queue "${store.queue}": an operator has set its limits to "${before}", so "${text}" does not hold. ` +
            "`setLimits(queue, 'config')` of the inspector ends that.",
        );
      }
      return;
    } catch (error) {
      if (!isTransient(error)) {
        logger.error(`Queue "${store.queue}": its limits could not be set: ${(error as Error).message}`);
        return;
      }
      await sleep(RETRY_MS, undefined, { ref: false });
    }
  }
}
