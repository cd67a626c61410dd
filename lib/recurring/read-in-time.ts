import type { ScriptName } from '../lua/scripts.js';
import { unavailable } from '../producer/call-failures.js';
import { isTransient, typedError } from '../redis/redis.errors.js';
import type { ShardStore } from '../redis/shard-store.js';
import { performance, random, sleep } from '../time-and-randomness.js';

const FIRST_RETRY_MS = 20;

/**
 * A read that a call begins with. It is as patient as the call, which would otherwise fail at once when the connection breaks just then;
 * and its failure is told as that of the call.
 *
 * @param id that the call is about
 */
export async function readInTime(
  store: ShardStore,
  script: ScriptName,
  args: (string | number)[],
  { call, id }: { call: string; id: string },
): Promise<unknown> {
  const { connection } = store;
  const until = performance.now() + connection.timeoutMs;
  for (let delay = FIRST_RETRY_MS; ; delay *= 2) {
    try {
      await connection.whenReady(Math.max(1, until - performance.now()));
      return await store.call(script, args);
    } catch (cause) {
      const { timeoutMs, isClosed, isInterrupted } = connection;
      if (!isTransient(cause)) throw typedError(cause, `${call}("${store.queue}", "${id}")`);
      if (isClosed || isInterrupted || performance.now() + delay >= until)
        throw unavailable({ call }, { store, timeoutMs, isOver: isClosed, sent: false, cause })(id);
      await sleep(delay * (0.5 + random()), undefined, { ref: false });
    }
  }
}
