import { sum } from '../../inspection/queue-counts.js';
import { decodeError } from '../../job/error-record.js';
import { queueNameOf } from '../../job/queue-definition.js';
import { typedError } from '../../redis/redis.errors.js';
import type { ShardStore } from '../../redis/shard-store.js';
import type { ApiDeadReason, DeadGroup, DeadGroupsResponse, Ms } from '../api.js';
import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';

const MOST = 1_000;
/** Errors in one answer of Redis: 200 of them have at most about 4 MB. */
const AT_ONCE = 200;
const VALID_MS = 2_000;

interface DeadLetter {
  readonly id: string;
  readonly at: Ms;
  readonly store: ShardStore;
}

/** By what they died of: of the newest 1,000 of a queue. */
export async function readDeadGroups(view: InstanceView, query: Fields): Promise<DeadGroupsResponse> {
  const queue = queueNameOf(query.text('queue'));
  query.end();
  return view.shared.value(`dead ${queue}`, VALID_MS, () => groupsOf(view, queue));
}

async function groupsOf(view: InstanceView, queue: string): Promise<DeadGroupsResponse> {
  try {
    const total = sum((await view.calls.counts(queue)).map(({ dead }) => dead));
    const found = await Promise.all(view.context.stores(queue).map((store) => newest(view, store)));
    const letters = found
      .flat()
      .sort((a, b) => b.at - a.at)
      .slice(0, MOST);
    const groups = new Map<string, DeadGroup>();
    let looked = 0;
    for (let from = 0; from < letters.length; from += AT_ONCE) {
      const part = letters.slice(from, from + AT_ONCE);
      const texts = await errorsOf(view, part);
      for (const letter of part) {
        // Requeued or removed meanwhile.
        const text = texts.get(letter);
        if (text === undefined) continue;
        looked++;
        add(groups, letter, text, view);
      }
    }
    return { total, looked, groups: [...groups.values()].sort((a, b) => b.count - a.count || b.lastAt - a.lastAt) };
  } catch (error) {
    throw typedError(error, `the dead letters of queue "${queue}"`);
  }
}

async function newest(view: InstanceView, store: ShardStore): Promise<DeadLetter[]> {
  const { connection } = view.context;
  const key = store.keys.key('dead');
  const flat = await connection.send(() => connection.commands.zrevrange(key, 0, MOST - 1, 'WITHSCORES'), key);
  return Array.from({ length: flat.length / 2 }, (_, n) => ({ id: flat[2 * n]!, at: Number(flat[2 * n + 1]), store }));
}

async function errorsOf(view: InstanceView, letters: readonly DeadLetter[]): Promise<Map<DeadLetter, string>> {
  const { connection } = view.context;
  const texts = new Map<DeadLetter, string>();
  const byStore = new Map<ShardStore, DeadLetter[]>();
  for (const letter of letters) byStore.set(letter.store, [...(byStore.get(letter.store) ?? []), letter]);
  for (const [store, ofStore] of byStore) {
    const key = store.keys.key('errors');
    const found = await connection.send(() => connection.commands.hmget(key, ...ofStore.map(({ id }) => id)), key);
    for (const [n, text] of found.entries()) if (text !== null) texts.set(ofStore[n]!, text);
  }
  return texts;
}

/** They come newest first. */
function add(groups: Map<string, DeadGroup>, { id, at }: DeadLetter, text: string, view: InstanceView): void {
  const { reason, error: record } = decodeError(text);
  const error = view.privateParts.error(record, false);
  const message = error && folded(error.message);
  const key = JSON.stringify([reason, error?.name, message]);
  const known = groups.get(key);
  if (known) {
    known.count++;
    known.firstAt = at;
    known.ids.push(id);
    return;
  }
  groups.set(key, {
    reason: reason as ApiDeadReason,
    ...(error && { error: error.name }),
    ...(message && { message, example: error.message }),
    count: 1,
    firstAt: at,
    lastAt: at,
    ids: [id],
  });
}

/** Characters of a message by which it is told from others. */
const FOLDED_MAX = 500;
/** A word with a digit in it: a number, an id, a hash, an address. */
const VARIES = /[\w-]*\d[\w-]*(?:[.,:][\w-]*\d[\w-]*)*/g;

/** A message without what differs from job to job. */
export function folded(message: string): string {
  return message.slice(0, FOLDED_MAX).replaceAll(VARIES, '#');
}
