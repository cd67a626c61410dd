// One run of one scenario for one library, in a process of its own: the program that run.mjs starts.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { load } from './libraries/index.mjs';
import { connect, removeAll } from './measure/redis.mjs';
import { openStore } from './measure/stores.mjs';
import { endAll, start } from './processes.mjs';

const QUEUE = 'bench';
const ON_DISK = new Set(['ours', 'graphileWorker', 'pgBoss']);

/** @returns the address of the same server, so many ms away in each direction */
async function awayFrom(url, delayMs) {
  const proxy = start('./roles/delay.mjs', { url, delayMs }, { timeoutMs: 3_600_000 });
  proxy.result.catch(() => {}); // It is killed at the end.
  const port = await new Promise((resolve) => proxy.onNote(resolve));
  const there = new URL(url);
  there.hostname = '127.0.0.1';
  there.port = port;
  return there.href;
}

/** Scenarios get a space of keys of their own, and end with nothing in it but what they said they would leave. */
export default async function scenario({ name, library, url, delayMs, disk, variant, ...args }) {
  const space = `bench-${randomBytes(4).toString('hex')}`;
  const adapter = await load(library);
  const own = disk && ON_DISK.has(library) ? await openStore(adapter.store ?? 'redis', disk) : undefined;
  if (adapter.store && !own) return { skipped: `no ${adapter.store} on this machine` };
  // What is on PostgreSQL needs no Redis, but what measures looks at one.
  const redis = connect(own && !adapter.store ? own.url : url);
  const place = { library, url: own?.url ?? url, space, queue: QUEUE, variant };
  try {
    // What measures looks at the server without the delay.
    if (delayMs) place.url = await awayFrom(url, delayMs);
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
