import { InvalidOptionError } from '../delay-queue.errors.js';
import { shown } from '../job/duration.js';
import type { Durability } from '../job/durability.js';
import { isPlainObject, unreadable } from '../job/option-rules.js';
import { queueNameOf } from '../job/queue-definition.js';
import type { QueueRef } from '../job/queue-definition.js';

/** Options of the job override those of the queue. */
export function withDurability(given: Record<string, unknown> = {}, durability: Durability): Record<string, unknown> {
  const says = Object.hasOwn(given, 'durability') && given['durability'] !== undefined;
  return says ? given : { ...given, durability };
}

/** @returns the payload and, where there are any, the options of one job among many */
export function readItem(
  item: unknown,
  index: number,
  queue: QueueRef,
): readonly [unknown, Record<string, unknown> | undefined] {
  try {
    if (!isPlainObject(item) || !('payload' in item)) {
      const what = isPlainObject(item) ? 'has no `payload`' : `is ${shown(item)}`;
      const bulk =
        isPlainObject(item) && 'data' in item ? ' What BullMQ calls `data` is `payload`; `opts` stand beside it.' : '';
      throw new InvalidOptionError(
        `enqueueMany("${queueNameOf(queue)}"): item ${index} ${what}. Give { payload, ...options }.${bulk}`,
      );
    }
    // Most have no options, and taking the payload out of a copy costs more than checking it.
    const names = Object.keys(item);
    if (names.length === 1 && names[0] === 'payload') return [item['payload'], undefined];
    const { payload, ...options } = item;
    return [payload, options];
  } catch (cause) {
    throw unreadable(cause, `enqueueMany(): item ${index}`);
  }
}
