// npm run test:servers -- --help: the specs on other servers and other ways to reach one. Ends with a table, and fails when a
// row does. Long: a row of a whole server takes as long as `npm test`, so this is no part of it.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { readArguments, refuseArguments } from '../../tools/arguments.mjs';
import { makeCertificate, tlsFlags } from '../../tools/certificate.mjs';
import { buildIfStale, LIBRARY, SAMPLE } from '../../tools/compile.mjs';
import { freePort } from '../../tools/free-port.mjs';
import { serverOnPath, startLocalRedis } from '../../tools/local-redis.mjs';
import { at } from '../../tools/project.mjs';
import { joinMasters, startClusterNodes, untilWhole } from '../../tools/redis-cluster.mjs';
import { startSentinel } from '../../tools/redis-sentinel.mjs';
import { Tether } from '../../tools/tether.mjs';
import { obtainBrokers } from './brokers.mjs';
import { serverFolder } from './get.mjs';
import {
  HELD_TO_REDIS_7,
  MORE_RIGHTS,
  ONE_SERVER,
  ONE_SERVER_TESTS,
  READ_ALONG,
  SERVER_OF_THEIR_OWN,
  TEST_KIT,
} from './skipped.mjs';

/** Projects that need no server, and runs that are made to be long. */
const NEVER = ['unit', 'handlers', 'contract', 'chaos', 'fuzz', 'model'].map((name) => `test/${name}/`);
const SETUPS = ['sentinel', 'cluster', 'relay'].map((name) => `test/servers/${name}.spec.ts`);
const WITHOUT_OTHERS = [...NEVER, ...SETUPS];

const ROWS = {
  own: { without: WITHOUT_OTHERS },
  'valkey-8.0': { server: 'valkey-8.0', without: [...WITHOUT_OTHERS, ...HELD_TO_REDIS_7] },
  'redis-8.0': { server: 'redis-8.0', without: [...WITHOUT_OTHERS, ...HELD_TO_REDIS_7] },
  tls: { serve: serveTls, without: [...NEVER, 'test/servers/', 'test/memory/', ...SERVER_OF_THEIR_OWN, ...READ_ALONG] },
  acl: {
    serve: serveAcl,
    without: [...NEVER, 'test/servers/', 'test/memory/', ...SERVER_OF_THEIR_OWN, ...TEST_KIT, ...MORE_RIGHTS],
  },
  // The specs, as clients of a Cluster and of a master that Sentinels name; then those that break such a setup.
  'cluster-specs': { serve: serveCluster, without: [...NEVER, 'test/servers/', 'test/memory/', ...SERVER_OF_THEIR_OWN, ...READ_ALONG, ...TEST_KIT, ...ONE_SERVER], except: ONE_SERVER_TESTS }, // prettier-ignore
  'sentinel-specs': { serve: serveSentinels, without: [...NEVER, 'test/servers/', 'test/memory/', ...SERVER_OF_THEIR_OWN, ...READ_ALONG, ...TEST_KIT, ...ONE_SERVER], except: ONE_SERVER_TESTS }, // prettier-ignore
  sentinel: { only: ['test/servers/sentinel.spec.ts'], without: [] },
  cluster: {
    only: ['test/servers/cluster.spec.ts', 'test/integration/features/shards-cluster.spec.ts', 'test/integration/features/durability.cluster.spec.ts'], // prettier-ignore
    without: [],
  },
  // Brokers, killed under load. Beside the server, which is the machine's own.
  relay: { prepare: obtainBrokers, only: ['test/servers/relay.spec.ts'], without: [] },
};
const NOT_RUN = 'Redis 6.2, 7.2 and 7.4, Valkey 7.2, 8.1 and 9, KeyDB, Dragonfly, and what clouds offer';

const HOST = '127.0.0.1';
/** A row that is not over by then hangs. */
const LIMIT_MS = 40 * 60_000;

const USAGE = `Usage: npm run test:servers [-- row ...]    the tests on other servers; about half an hour
  --part 1/3    one part of the spec files of each row

Rows: ${Object.keys(ROWS).join(', ')}`;
const { values, positionals: wanted } = readArguments(USAGE, {
  options: { part: { type: 'string' } },
  allowPositionals: true,
});
const { part } = values;
if (part !== undefined && !/^[1-9]\d*\/[1-9]\d*$/.test(part)) refuseArguments(USAGE, '--part must be like 1/3.');
const unknown = wanted.filter((name) => !Object.hasOwn(ROWS, name));
if (unknown.length > 0) refuseArguments(USAGE, `No such row: ${unknown.join(', ')}.`);
await buildIfStale([LIBRARY, SAMPLE]);
const results = [];
for (const name of wanted.length > 0 ? wanted : Object.keys(ROWS)) results.push(await run(name, ROWS[name]));

console.log('\n| row | server | passed | failed | skipped | spec files left out | seconds |');
console.log('| --- | --- | --- | --- | --- | --- | --- |');
for (const row of results) console.log(`| ${Object.values(row).join(' | ')} |`);
console.log(`Not run: ${NOT_RUN}.`);
process.exitCode = results.some(({ failed }) => failed !== 0) ? 1 : 0;

async function run(name, { server, prepare, serve, only = [], without, except = [] }) {
  const began = Date.now();
  const tether = await Tether.open();
  try {
    await prepare?.();
    const env = { ...process.env, TEST_REDIS: 'local' };
    delete env.REDIS_URL;
    if (server) env.PATH = serverFolder(server) + delimiter + env.PATH;
    const version = execFileSync(serverOnPath(env), ['--version'], { encoding: 'utf8' });
    if (serve) Object.assign(env, { TEST_REDIS: 'url' }, await serve(tether, serverOnPath(env)));
    const output = join(tether.directory, 'result.json');
    const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', at('node_modules/jest/bin/jest.js')]; // prettier-ignore
    const ignored = ['/node_modules/', ...without.map((path) => `<rootDir>/${path}`)];
    const choice = ['--selectProjects', 'redis', '--reporters=default', '--json', `--outputFile=${output}`];
    const args = [...flags, ...choice, ...ignored.flatMap((path) => ['--testPathIgnorePatterns', path]), ...(part ? [`--shard=${part}`] : []), ...(except.length > 0 ? ['--testNamePattern', `^(?!.*(${except.join('|')}))`] : []), ...(only.length > 0 ? ['--runTestsByPath', ...only] : [])]; // prettier-ignore
    const jest = spawn(process.execPath, args, { cwd: at(), env, stdio: ['ignore', 'ignore', 'inherit'], timeout: LIMIT_MS, killSignal: 'SIGKILL' }); // prettier-ignore
    const [code] = await once(jest, 'exit');
    if (!existsSync(output)) throw new Error(`row ${name} ended without a result, or not at all within ${LIMIT_MS} ms`);
    const { numPassedTests, numFailedTests, numPendingTests, numRuntimeErrorTestSuites } = JSON.parse(readFileSync(output, 'utf8')); // prettier-ignore
    return {
      row: part ? `${name} (${part})` : name,
      server: /^(\w+) server v=(\S+)/.exec(version).slice(1).join(' '),
      passed: numPassedTests,
      // A run may also fail after its tests, for what they left behind.
      failed: numFailedTests + numRuntimeErrorTestSuites || (code === 0 ? 0 : 1),
      skipped: numPendingTests,
      leftOut: only.length > 0 ? '' : without.filter((path) => !NEVER.includes(path)).length,
      seconds: Math.round((Date.now() - began) / 1000),
    };
  } finally {
    await tether.close();
  }
}

/** A server that speaks nothing but TLS and wants a password; its certificate is of an authority that lives as long. */
async function serveTls(tether, program) {
  const files = makeCertificate(join(tether.directory, 'tls'));
  if (!files) throw new Error('row tls needs openssl');
  const port = await freePort();
  const server = await startLocalRedis(tether, program, [...tlsFlags(port, files), '--requirepass', 'secret']);
  const url = `rediss://:secret@127.0.0.1:${port}`;
  await send(server.port, [['CONFIG', 'SET', 'port', '0']], 'secret');
  return { REDIS_URL: url, NODE_EXTRA_CA_CERTS: files.certificate };
}

/** A user with the permissions of docs/operations.md, but for the prefix: each spec has one of its own. In database 1. */
async function serveAcl(tether, program) {
  const page = readFileSync(at('docs/operations.md'), 'utf8');
  const words = /ACL SETUSER app on >secret ([^`]+)```/.exec(page)[1];
  const known = /v=(?:6|7\.0)/.test(execFileSync(program, ['--version'], { encoding: 'utf8' }));
  // What parts of the library need that not every application uses.
  const further = [...page.match(/^- History needs [^]*?\n- /m)[0].matchAll(/`(\+[^`]+)`/g)].map(([, more]) => more);
  const rights = [words, ...further]
    .join(' ')
    .split(/[\s\\]+/)
    .filter((word) => word && !(known && /setinfo|waitaof/.test(word)));
  const server = await startLocalRedis(tether, program);
  await send(server.port, [['ACL', 'SETUSER', 'app', 'on', '>secret', ...rights, '~t*', '&t*']]);
  const url = new URL(`${server.url}/1`);
  url.username = 'app';
  url.password = 'secret';
  return { REDIS_URL: url.toString(), REDIS_ADMIN_URL: `${server.url}/1` };
}

/** Three masters with a third of the slots each. */
async function serveCluster(tether) {
  const servers = await startClusterNodes(tether, 3);
  const nodes = await Promise.all(servers.map(async ({ port }) => ({ port, redis: await clientOf(port) })));
  await joinMasters(nodes);
  await untilWhole(nodes);
  for (const { redis } of nodes) redis.disconnect();
  const cluster = nodes.map(({ port }) => ({ host: HOST, port }));
  return { REDIS_URL: servers[0].url, REDIS_CONNECTION: JSON.stringify({ cluster }) };
}

/** A master with a replica, which three Sentinels watch. */
async function serveSentinels(tether, program) {
  const name = 'jobs';
  const [master, replica] = [await startLocalRedis(tether, program), await startLocalRedis(tether, program)];
  await send(replica.port, [['REPLICAOF', HOST, master.port]]);
  const settings = { name, masterPort: master.port, downAfterMs: 10_000, failoverTimeoutMs: 30_000 };
  const sentinels = [];
  while (sentinels.length < 3) sentinels.push({ host: HOST, port: await startSentinel(tether, settings) });
  return { REDIS_URL: master.url, REDIS_CONNECTION: JSON.stringify({ sentinels, name }) };
}

async function clientOf(port, password) {
  const { Redis } = await import('ioredis');
  const client = new Redis(port, HOST, { password, lazyConnect: true });
  await client.connect();
  return client;
}

async function send(port, commands, password) {
  const client = await clientOf(port, password);
  for (const [command, ...args] of commands) await client.call(command, ...args);
  client.disconnect();
}
