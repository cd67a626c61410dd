// npm run soak -- --help
// Steady load on a Nest application of its own with a Redis of its own, and a verdict whether memory, handles and connections
// stay flat; exits with 1 when they do not.
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { readArguments, refuseArguments } from '../../tools/arguments.mjs';
import { buildIfStale, LIBRARY } from '../../tools/compile.mjs';
import { findRedis } from '../../tools/find-redis.mjs';
import { Tether } from '../../tools/tether.mjs';
import { Application } from './application.mjs';
import { tableOf, verdictOf } from './verdict.mjs';

const MIB = 1024 * 1024;
/** Fewer would be no line. */
const LEAST_SAMPLES = 12;

const USAGE = `Usage: npm run soak [-- options]       steady load on one process, whose memory, handles and connections must stay flat
  --minutes 10     how long
  --rate 200       jobs per second
  --every 5        seconds between two samples
  --report FILE    the table as Markdown
  --leak BYTES     retains so many bytes per job, to see that the verdict sees it`;

const text = { type: 'string' };
const { values } = readArguments(USAGE, {
  options: { minutes: text, rate: text, every: text, report: text, leak: text },
});
const number = (name, fallback) => {
  const value = Number(values[name] ?? fallback);
  if (!(value >= 0)) refuseArguments(USAGE, `--${name} must be a number.`);
  return value;
};
const minutes = number('minutes', 10);
const rate = number('rate', 200);
const leak = number('leak', 0);
const everyMs = Math.min(number('every', 5) * 1_000, (minutes * 60_000) / LEAST_SAMPLES);

await buildIfStale([LIBRARY]);
// Whatever becomes of this process, both the application and Redis end with it.
const tether = await Tether.open();
let client;
try {
  const redis = await findRedis({ tether, order: ['local', 'container', 'system'] });
  client = new Redis(redis.url, { lazyConnect: true });
  await client.connect();
  const application = await Application.start(tether, { url: redis.url, rate, leak });
  console.log(
    `soak: ${minutes} min at ${rate} jobs/s, a sample every ${everyMs / 1_000} s, ${redis.description}, Node ${process.version}`,
  );
  const samples = await watch(application);
  const { verdict, report } = judge(samples, await application.finish(), redis.description);
  console.log(report);
  if (values.report) writeFileSync(values.report, `${report}\n`);
  process.exitCode = verdict ? 0 : 1;
} finally {
  client?.disconnect();
  await tether.close();
}

async function watch(application) {
  const samples = [];
  const began = performance.now();
  while (performance.now() - began < minutes * 60_000) {
    await sleep(everyMs);
    const own = await application.ask('sample');
    const info = await client.info();
    const seconds = (performance.now() - began) / 1_000;
    const of = (name) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)[1]);
    const sample = {
      seconds,
      ...own,
      redis: of('used_memory') / MIB,
      keys: await client.dbsize(),
      connections: of('connected_clients'),
    };
    samples.push(sample);
    if (samples.length % 12 === 0)
      console.log(`${Math.round(seconds)} s: ${own.jobs} runs, heap ${own.heap.toFixed(2)} MiB`);
  }
  return samples;
}

function judge(samples, ended, server) {
  const verdict = verdictOf(samples);
  const { accepted, runs, failed, dead, cancelled, waiting, seconds } = ended;
  const isWhole = waiting === 0;
  const lines = [
    '',
    `${minutes} minutes at ${rate} calls per second (${server}, Node ${process.version}): ${accepted} jobs accepted, ${runs} runs, ${failed} of them failed, ` +
      `${dead} dead letters kept, ${cancelled} cancelled; drained ${seconds.toFixed(1)} s after the last call, ${waiting} left.`,
    '',
    tableOf(verdict),
    '',
    `${verdict.isFlat ? 'Flat' : 'NOT flat'}: least, most, rise and what is allowed are those of the last two thirds.`,
  ];
  if (!isWhole) lines.push(`NOT drained: ${waiting} jobs wait.`);
  return { verdict: verdict.isFlat && isWhole, report: lines.join('\n') };
}
