// What the storage alone can do: a bare client that sends the library's own step script over two sessions, each step settling
// what the last one of its session brought and claiming half of the slots. No Nest, no payload decoded, no timers, no trouble.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { keyCount, scriptSource } from '../dist-modules/esm/lua/scripts.js';
import { ShardKeys } from '../dist-modules/esm/redis/keys.js';
import {
  NOTHING_ASKED,
  parseStep,
  STEP_MAX_JOBS,
  STEP_SEQUENCE_AT,
  stepArgs,
} from '../dist-modules/esm/redis/step.protocol.js';
import { connectionOptions, info } from './measure/redis.mjs';

export { counts, dueAt, openProducer } from './libraries/ours.mjs';

export const settings = "the library's step script, two steps in flight, half of the concurrency each, 200 at most";

const SESSIONS = 2;
const EMPTY_PAUSE_MS = 2;
const REQUEST = { ...NOTHING_ASKED, deadLetters: { max: 10_000, maxAgeMs: 90 * 86_400_000 } };

/** What a client that waits for each of its calls can do at all: SET, of the same payload, in the place of an enqueue. */
export async function openCaller({ url, space }) {
  const redis = new Redis(connectionOptions(url));
  let n = 0;
  return {
    enqueue: (body) => redis.set(`${space}:set:${n++}`, JSON.stringify(body)),
    close: () => redis.disconnect(),
  };
}

export async function openWorker({ url, space, queues: [queue], concurrency, handle }) {
  const redis = new Redis(connectionOptions(url));
  const { redis_version: version } = await info(redis, 'server');
  redis.defineCommand('step', {
    lua: scriptSource('step', parseInt(version, 10) >= 7),
    numberOfKeys: keyCount('step'),
  });
  const keys = new ShardKeys(space, queue);
  let stop = false;

  async function drain(session) {
    const limit = Math.min(STEP_MAX_JOBS, Math.ceil(concurrency / SESSIONS));
    const all = [...keys.fixed, keys.session(`bare.${session}`)];
    let claim = 0;
    let ids = [];
    for (let sequence = 1; !stop || ids.length > 0; sequence++) {
      const settle = { groups: ids.length > 0 ? 1 : 0, outcomes: 0, args: [claim, ids.length, ...ids] };
      if (ids.length === 0) settle.args = [];
      const args = stepArgs({ ...REQUEST, limit: stop ? 0 : limit, settle }, `bare#${session}`);
      args[STEP_SEQUENCE_AT] = sequence;
      const reply = parseStep(await redis.step(...all, ...args));
      claim = reply.claim;
      ids = reply.jobs.map(({ id }) => id);
      for (const job of reply.jobs) handle(job);
      if (ids.length === 0 && !stop) await sleep(EMPTY_PAUSE_MS);
    }
  }

  const sessions = Array.from({ length: SESSIONS }, (_, session) => drain(session));
  return {
    async close() {
      stop = true;
      await Promise.all(sessions);
      redis.disconnect();
    },
  };
}
