// What the storage alone can do: a bare client that sends the library's own step script over two lanes, each step settling
// what the last one of its lane brought and claiming half of the slots. No Nest, no decoding, no timers, no trouble.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { KEYS_PER_CALL, scriptSource } from '../dist/esm/lua/scripts.js';
import { ShardKeys } from '../dist/esm/redis/keys.js';
import { CLAIM_MAX_BYTES, STEP_MAX_JOBS } from '../dist/esm/redis/step.js';
import { info } from './measure/redis.mjs';

export { counts, dueAt, openProducer } from './libraries/ours.mjs';

export const settings = "the library's step script, two steps in flight, half of the concurrency each, 200 at most";

const LEASE_MS = 30_000;
const DEAD_LETTERS = [10_000, 90 * 86_400_000];
const LANES = 2;
const EMPTY_PAUSE_MS = 2;
/** Where a reply has the claim number, and the jobs as id, due time, attempts, envelope. */
const CLAIM = 1;
const JOBS = 10;

export async function openWorker({ url, space, queues: [queue], concurrency, handle }) {
  const redis = new Redis(url);
  const { redis_version: version } = await info(redis, 'server');
  redis.defineCommand('step', { lua: scriptSource('step', parseInt(version, 10) >= 7), numberOfKeys: KEYS_PER_CALL });
  const keys = new ShardKeys(space, queue);
  let stop = false;

  async function drain(lane) {
    const want = Math.min(STEP_MAX_JOBS, Math.ceil(concurrency / LANES));
    const all = [...keys.fixed, keys.lane(`bare.${lane}`)];
    let claim = 0;
    let ids = [];
    for (let sequence = 1; !stop || ids.length > 0; sequence++) {
      const wanted = stop ? 0 : want;
      const settled = ids.length > 0 ? [claim, ids.length, ...ids] : [];
      const args = [`bare#${lane}`, sequence, LEASE_MS, wanted, CLAIM_MAX_BYTES, '', 0, 0, ...DEAD_LETTERS, 0];
      const reply = await redis.step(...all, ...args, ids.length > 0 ? 1 : 0, 0, ...settled);
      claim = reply[CLAIM];
      ids = [];
      for (let at = 0; at < reply[JOBS].length; at += 4) {
        ids.push(reply[JOBS][at]);
        handle();
      }
      if (ids.length === 0 && !stop) await sleep(EMPTY_PAUSE_MS);
    }
  }

  const lanes = Array.from({ length: LANES }, (_, lane) => drain(lane));
  return {
    async close() {
      stop = true;
      await Promise.all(lanes);
      redis.disconnect();
    },
  };
}
