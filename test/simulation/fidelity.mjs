// node test/simulation/fidelity.mjs --help: runs of the simulator without faults, whose calls are then made to a real server with the same
// clock. Each reply, each message and what is stored at the end must be equal.
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { readArguments, readNumber, refuseArguments } from '../../tools/arguments.mjs';
import { serverOnPath, startLocalRedis } from '../../tools/local-redis.mjs';
import { at } from '../../tools/project.mjs';
import { Tether } from '../../tools/tether.mjs';
import { serverFolder, SERVERS } from '../servers/get.mjs';
import { buildAll } from './build.mjs';

const USAGE = `Usage: node test/simulation/fidelity.mjs [server ...]    whether real servers answer as the store of the simulator does
  server        own, the one on the PATH (default), ${Object.keys(SERVERS).join(', ')}
  --seeds 200   so many runs without faults
  --from 1      the first one`;
const { values, positionals } = readArguments(USAGE, {
  options: { seeds: { type: 'string', default: '200' }, from: { type: 'string', default: '1' } },
  allowPositionals: true,
});
const MOST_SHOWN = 5;

const seeds = readNumber(USAGE, '--seeds', values.seeds);
const from = readNumber(USAGE, '--from', values.from, { least: 0 });
const rows = positionals.length > 0 ? positionals : ['own'];
const unknown = rows.filter((row) => row !== 'own' && !(row in SERVERS));
if (unknown.length > 0) refuseArguments(USAGE, `No such server: ${unknown.join(', ')}.`);
await buildAll();
const { recordSeed, differences, errorText } = await import('../../dist-simulation/fidelity.js');
const tether = await Tether.open();
try {
  const servers = [];
  for (const row of rows) servers.push({ ...(await start(tether, row)), different: 0 });
  let calls = 0;
  for (let seed = from; seed < from + seeds; seed++) {
    const recording = await recordSeed(seed, {}, at());
    calls += recording.calls.length;
    for (const server of servers) await compare(server, seed, recording);
  }
  for (const { name, different } of servers)
    console.log(`${seeds} seeds, ${different} of them different on ${name}; ${calls} calls`);
  for (const server of servers) server.close();
  process.exitCode = servers.some(({ different }) => different > 0) ? 1 : 0;
} finally {
  await tether.close();
}

async function compare(server, seed, recording) {
  await server.empty();
  const found = await differences(recording, server);
  if (found.length > 0) server.different++;
  for (const one of found.slice(0, MOST_SHOWN)) console.log(`seed ${seed} on ${server.name}: ${one}`);
}

async function start(tether, row) {
  const env = row === 'own' ? process.env : { ...process.env, PATH: serverFolder(row) };
  const program = serverOnPath(env);
  const clockFile = join(tether.directory, `clock-${row}`);
  const clock = openSync(clockFile, 'w');
  const setClock = (micros) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(micros));
    writeSync(clock, bytes, 0, 8, 0);
  };
  setClock(1_800_000_000_000_000);
  const { port } = await startLocalRedis(tether, withClock(tether, program, row, clockFile));
  const client = new Redis(port, { stringNumbers: false });
  const subscriber = new Redis(port);
  let heard = [];
  subscriber.on('pmessage', (_, channel, message) => heard.push(`${channel} ${message}`));
  await subscriber.psubscribe('*');
  const version = /v=(\S+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))[1];
  return {
    name: `${row} ${version}`,
    setClock,
    call: ([name, ...args]) => call(client, name, args),
    async empty() {
      await client.flushall();
      await client.script('FLUSH');
      heard = [];
    },
    async published() {
      // Behind all that was published before.
      await subscriber.ping();
      return heard;
    },
    close() {
      client.disconnect();
      subscriber.disconnect();
      closeSync(clock);
    },
  };
}

async function call(client, name, args) {
  const bytes = args.map((arg) => Buffer.from(arg, 'latin1'));
  try {
    return plain(await client.callBuffer(name, ...bytes));
  } catch (error) {
    return errorText(error.message);
  }
}

function plain(reply) {
  if (Buffer.isBuffer(reply)) return reply.toString('latin1');
  if (reply instanceof Error) return errorText(reply.message);
  return Array.isArray(reply) ? reply.map(plain) : reply;
}

/** The same program, started with a wall clock that stands still. */
function withClock(tether, program, row, clockFile) {
  const library = join(tether.directory, 'clock.so');
  const source = at('test', 'helpers', 'shifted-clock.c');
  if (!existsSync(library)) execFileSync('gcc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl']);
  // The program goes by its name.
  const folder = join(tether.directory, row);
  mkdirSync(folder);
  const script = join(folder, 'redis-server');
  const settings = `LD_PRELOAD='${library}' CLOCK_OFFSET='${clockFile}' CLOCK_STANDS=1`;
  writeFileSync(script, `#!/bin/sh\nexec env ${settings} '${program}' "$@"\n`, { mode: 0o755 });
  return script;
}
