import { LayoutError, StoredDataError, UnavailableError } from '../delay-queue.errors.js';
import { decodeEnvelope, encodeContent } from '../job/envelope.js';
import type { JobHeader } from '../job/envelope.js';
import type { EncodedPayload } from '../job/payloads.js';
import { headerToMerge } from '../redis/change.protocol.js';
import { bytesOf } from '../redis/enqueue.protocol.js';
import type { EnqueueBatcher } from './enqueue-batcher.js';

/** A try fails only if another caller replaces the job with other options between reading and writing it. */
const MOST_TRIES = 20;

/** Gives a waiting job of one shard another payload; its options stay. @returns the answer of the script */
export async function changePayload(
  calls: EnqueueBatcher,
  call: 'update' | 'signal',
  queue: string,
  id: string,
  { body, mark }: EncodedPayload,
): Promise<string> {
  let head = '';
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const content = encodeContent(head === '' ? {} : headerOf(call, queue, id, head), body, mark);
    const answer = await calls.run(call, id, [id, head, content], { bytes: bytesOf({ id, content }) });
    const shown = headerToMerge(answer);
    if (shown === undefined) return answer;
    head = shown;
  }
  throw new UnavailableError(
    `${call}("${queue}", "${id}"): the job was replaced by others each time it was read. Nothing was changed; try again.`,
    { ids: [id] },
  );
}

/** @param head the stored text of a job up to its payload */
function headerOf(call: string, queue: string, id: string, head: string): JobHeader {
  try {
    return decodeEnvelope(`${head}\n`).header;
  } catch (cause) {
    const message = `${call}("${queue}", "${id}"): ${(cause as Error).message}`;
    throw cause instanceof LayoutError ? new LayoutError(message) : new StoredDataError(message, { cause });
  }
}
