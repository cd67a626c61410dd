// One run of one scenario for one library, in a process of its own: the program that run.mjs starts.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { load } from './libraries/index.mjs';
import { openAway } from './measure/away.mjs';
import { connect, removeAll } from './measure/redis.mjs';
import { openStore } from './measure/stores.mjs';
import { endAll } from './processes.mjs';

const QUEUE = 'bench';
const ON_DISK = new Set(['ours', 'graphileWorker', 'pgBoss']);

/** @returns what openStore() takes, where the library does not run on the Redis of the run */
function storeOf(library, kind, { disk, tls, server }) {
  if (tls || server || (disk && ON_DISK.has(library))) return { kind, disk, tls, server };
  return kind === 'redis' ? undefined : { kind, disk };
}

/** Scenarios get a space of keys of their own, and end with nothing in it but what they said they would leave. */
export default async function scenario({ name, library, url, delayMs, disk, tls, server, variant, ...args }) {
  const space = `bench-${randomBytes(4).toString('hex')}`;
  const adapter = await load(library);
  const wanted = storeOf(library, adapter.store ?? 'redis', { disk, tls, server });
  const own = wanted && (await openStore(wanted));
  if (own?.missing) return { skipped: `this machine has ${own.missing}` };
  // What is on PostgreSQL needs no Redis, but what measures looks at one.
  const redis = connect(own?.plainUrl ?? url);
  const place = { library, url: own?.url ?? url, space, queue: QUEUE, variant };
  try {
    // What measures looks at the server without the delay, and without TLS.
    if (delayMs) place.url = (await openAway(place.url, delayMs)).url;
    const { default: measure } = await import(`./scenarios/${name}.mjs`);
    const figures = await measure({ ...args, ...place, place, adapter, redis });
    const { stays = 0, ...rest } = figures;
    await assertStored(adapter, redis, space, stays, place.url);
    return rest;
  } finally {
    await endAll();
    await removeAll(redis, space);
    const left = await removeAll(redis, space);
    if (left > 0) console.error(`${name} of ${library}: somebody still wrote ${left} keys after the end`);
    redis.disconnect();
    await own?.close();
  }
}

/** Every job that was to run ran and is gone; every one that was to stay waits. Settling may still be on its way. */
async function assertStored(adapter, redis, space, stays, url) {
  let found;
  for (let tries = 0; tries < 100; tries++) {
    found = await adapter.counts(redis, space, QUEUE, url);
    if (found.pending === stays && found.other === 0) return;
    await sleep(50);
  }
  throw new Error(
    `Stored at the end: ${JSON.stringify(found)}, where ${stays} jobs should wait and no other should be.`,
  );
}
