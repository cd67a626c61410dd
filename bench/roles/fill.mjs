// Puts jobs into a queue and ends. A process of its own, so that the heap it leaves behind slows nothing down.
import { load } from '../libraries/index.mjs';
import { payload } from '../payload.mjs';

/**
 * @param {object} args
 * @param {number} [args.dueAt] one moment for all, epoch ms
 * @param {{ leadMs: number, forMs: number }} [args.spread] random due times, counted from each job's own enqueue
 * @param {number} [args.first] number of the first payload
 * @param {number} [args.groups] so many groups, in turns
 * @param {number} [args.bytes] of each payload
 */
export default async function fill({
  library,
  url,
  space,
  queue,
  jobs,
  chunk = 1000,
  dueAt,
  spread,
  first = 0,
  groups,
  bytes,
  variant,
}) {
  const { openProducer } = await load(library);
  const producer = await openProducer({ url, space, queue, variant });
  const due = () => (spread ? Date.now() + spread.leadMs + Math.floor(Math.random() * spread.forMs) : dueAt);
  for (let done = 0; done < jobs; done += chunk) {
    const n = Math.min(chunk, jobs - done);
    await producer.enqueueMany(
      Array.from({ length: n }, (_, i) => ({
        body: payload(first + done + i, bytes),
        dueAt: due(),
        ...(groups && { group: `g${(done + i) % groups}` }),
      })),
    );
  }
  const finishedAt = Date.now();
  await producer.close();
  return { finishedAt };
}
