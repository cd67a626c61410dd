// node test/servers/kills.mjs [--busy-disk] [kills] [setting ...]: how often a redis-server that is killed loses writes that it had
// acknowledged, for each setting of appendfsync (default: 100 kills of each). A plain client and plain commands, nothing of
// this library: what is measured is what the server promises. The machine lives on, so the disk gets all that the server had
// written. With --busy-disk somebody else writes to the same disk, so that an fsync takes longer. Ends with a table.
import { rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { serverOnPath, startLocalRedis } from '../../tools/local-redis.mjs';
import { Tether } from '../../tools/tether.mjs';

const SETTINGS = ['no', 'everysec', 'always'];
/** They write one after another each, with a pause: some 2,000 writes a second in all, which no machine takes amiss. */
const WRITERS = 16;
const PAUSE_MS = 6;
const VALUE = 'x'.repeat(500);
/** When a server is killed, drawn anew each time: later than the second after which the first fsync happens. */
const EARLIEST_MS = 300;
const LATEST_MS = 2_300;
const CHUNK = 1_000;

/** What the others write at a time, before each fsync of theirs. */
const BUSY_BYTES = 64 * 2 ** 20;
const BUSY_PAUSE_MS = 5;

const { values, positionals } = parseArgs({ options: { 'busy-disk': { type: 'boolean' } }, allowPositionals: true });
const [kills = '100', ...chosen] = positionals;
if (!/^[1-9]\d*$/.test(kills) || chosen.some((setting) => !SETTINGS.includes(setting)))
  throw new Error(`usage: node test/servers/kills.mjs [--busy-disk] [kills] [${SETTINGS.join(' | ')} ...]`);
const { Redis } = await import('ioredis');
const rows = [];
for (const setting of chosen.length > 0 ? chosen : SETTINGS) rows.push(await tried(setting, Number(kills)));
console.log('\n| appendfsync | kills | of them lost writes | acknowledged | lost | most at once | oldest lost |');
console.log('| --- | --- | --- | --- | --- | --- | --- |');
for (const row of rows) console.log(`| ${Object.values(row).join(' | ')} |`);

async function tried(setting, times) {
  const row = { setting, kills: times, losing: 0, acknowledged: 0, lost: 0, most: 0, oldest: '-' };
  let oldestMs = 0;
  for (let n = 0; n < times; n++) {
    const { acknowledged, lost, ageMs } = await killed(setting);
    row.acknowledged += acknowledged;
    row.lost += lost;
    row.most = Math.max(row.most, lost);
    oldestMs = Math.max(oldestMs, ageMs);
    if (lost === 0) continue;
    row.losing++;
    console.log(`appendfsync ${setting}: kill ${n + 1} lost ${lost} of ${acknowledged} acknowledged writes`);
  }
  if (row.lost > 0) row.oldest = `${Math.round(oldestMs)} ms before the kill`;
  console.log(`appendfsync ${setting}: ${row.losing} of ${times} kills lost writes`);
  return row;
}

/** One server of its own, from its first write to the count of what it has after it was killed and started again. */
async function killed(setting) {
  const tether = await Tether.open();
  try {
    const server = await startLocalRedis(tether, serverOnPath(), ['--appendonly', 'yes', '--appendfsync', setting]);
    const others = values['busy-disk'] ? await busyDisk(join(tether.directory, 'others')) : undefined;
    const acknowledgedAt = await writeUntilKilled(server);
    const diedAt = performance.now();
    await others?.stop();
    await server.restart();
    const missing = await missingOn(server.port, [...acknowledgedAt.keys()]);
    rmSync(join(tether.directory, String(server.port), 'appendonlydir'), { recursive: true, force: true });
    const ages = missing.map((key) => diedAt - acknowledgedAt.get(key));
    return { acknowledged: acknowledgedAt.size, lost: missing.length, ageMs: Math.max(0, ...ages) };
  } finally {
    await tether.close();
  }
}

/** @returns when each key was acknowledged */
async function writeUntilKilled(server) {
  const client = clientOf(server.port);
  await client.connect();
  const acknowledgedAt = new Map();
  let dead = false;
  const write = async (writer) => {
    for (let n = 0; !dead; n++) {
      const key = `${writer}:${n}`;
      try {
        await client.set(key, VALUE);
      } catch {
        return; // The server is dead: nobody said that this one was written.
      }
      acknowledgedAt.set(key, performance.now());
      await sleep(PAUSE_MS);
    }
  };
  const writers = Array.from({ length: WRITERS }, (_, writer) => write(writer));
  await sleep(EARLIEST_MS + Math.random() * (LATEST_MS - EARLIEST_MS));
  await server.kill('SIGKILL');
  dead = true;
  await Promise.all(writers);
  client.disconnect();
  return acknowledgedAt;
}

async function busyDisk(path) {
  const file = await open(path, 'w');
  const bytes = Buffer.alloc(BUSY_BYTES, 'x');
  let over = false;
  const work = (async () => {
    while (!over) {
      await file.write(bytes, 0, bytes.length, 0);
      await file.sync();
      await sleep(BUSY_PAUSE_MS);
    }
  })();
  return {
    async stop() {
      over = true;
      await work;
      await file.close();
    },
  };
}

async function missingOn(port, keys) {
  const client = clientOf(port);
  await client.connect();
  const missing = [];
  for (let at = 0; at < keys.length; at += CHUNK) {
    const chunk = keys.slice(at, at + CHUNK);
    const found = await client.mget(chunk);
    missing.push(...chunk.filter((_, index) => found[index] !== VALUE));
  }
  client.disconnect();
  return missing;
}

/** One that neither connects again nor keeps a call for later: an answer is an answer of this server. */
function clientOf(port) {
  const client = new Redis(port, '127.0.0.1', { lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 });
  client.on('error', () => undefined); // Its death is what this is about.
  return client;
}
