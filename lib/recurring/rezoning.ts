import { decodeEnvelope, encodeContent } from '../job/envelope.js';
import type { Envelope } from '../job/envelope.js';
import { instantOf } from '../job/wall-clock.js';
import type { Session } from '../redis/session.js';
import type { ShardStore } from '../redis/shard-store.js';
import { ZONE_DATA } from './zone-data.js';

const PAGE = 200;
/** Of one job in the answer of lib/lua/recurring/zoned.lua. */
const FIELDS = 4;

/**
 * Gives the jobs at a local time the moments that the zone data of this process say. Only what waits at the moment that older data
 * gave it is moved: what was put off, retries or runs stays as it is. It is noted that all have been looked at, unless a process with
 * older data has made some meanwhile, which may be behind: then the next process to boot looks at all of them once more.
 *
 * @param giveUp asked before each resend
 */
export async function adoptZoneData(store: ShardStore, session: Session, giveUp: () => boolean): Promise<void> {
  let [from, after] = ['-inf', ''];
  let ofWalk: string | undefined;
  for (;;) {
    const [, known, walk, ...flat] = (await store.call('zoned', [ZONE_DATA, from, after, PAGE])) as string[];
    if (known! >= ZONE_DATA) return;
    ofWalk ??= walk;
    let changed: string | undefined;
    for (let at = 0; at < flat.length; at += FIELDS) {
      const [id, score, due, text] = flat.slice(at, at + FIELDS) as [string, string, string, string];
      if (giveUp()) return;
      const args = due !== '' && text !== '' ? changeOf(id, Number(due), text) : undefined;
      const answer = args && (await session.call({ script: 'rezone', args, sequenceAt: 0, giveUp }));
      // Somebody else has changed it since it was read, perhaps to what older data say.
      if (answer === 'c') changed ??= score;
      [from, after] = [score, id];
    }
    if (changed !== undefined) [from, after] = [changed, ''];
    else if (flat.length < PAGE * FIELDS) break;
  }
  await store.call('zoned', [ZONE_DATA, '-inf', '', 0, ofWalk ?? '']);
}

/** @returns the arguments of the script that moves the job; undefined when it stays */
function changeOf(id: string, due: number, text: string): (string | number)[] | undefined {
  const envelope = readable(text);
  const zoned = envelope?.header.zoned;
  if (!envelope || !zoned || zoned.at !== due) return undefined;
  const at = momentOf(zoned);
  if (at === undefined || at === due) return undefined;
  const { header, body, mark } = envelope;
  return [0, id, text, due, at, encodeContent({ ...header, zoned: { ...zoned, at } }, body, mark), ZONE_DATA];
}

function readable(text: string): Envelope | undefined {
  try {
    return decodeEnvelope(text);
  } catch {
    return undefined;
  }
}

/** Undefined also for a zone that this process does not know. */
function momentOf(zoned: Parameters<typeof instantOf>[0]): number | undefined {
  try {
    return instantOf(zoned);
  } catch {
    return undefined;
  }
}
