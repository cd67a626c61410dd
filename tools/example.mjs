// npm run example -- NAME: runs one of docs/examples and prints what it returns; on the Redis that `npm start` would
// take, under a prefix of its own each time.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { answerHelp, refuseArguments } from './arguments.mjs';
import { buildIfStale, EXAMPLES, LIBRARY } from './compile.mjs';
import { installDependencies } from './dependencies.mjs';
import { findRedis, START_ORDER } from './find-redis.mjs';
import { at } from './project.mjs';
import { Tether } from './tether.mjs';

const names = readdirSync(at('docs', 'examples'))
  .filter((name) => name.endsWith('.ts') && !['free-port.ts', 'redis.ts', 'until.ts'].includes(name))
  .map((name) => name.slice(0, -'.ts'.length));
/** Examples that are looked at: they are served until Ctrl-C. */
const SERVED = { dashboard: '/delay-queue' };
const USAGE = `Usage: npm run example -- NAME       runs docs/examples/NAME.ts and prints what it returns; dashboard is served on PORT, or 3000
  ${names.join('\n  ')}`;
answerHelp(USAGE);
const [name] = process.argv.slice(2);
if (!names.includes(name)) refuseArguments(USAGE, name ? `There is no example "${name}".` : 'Which example?');

const tether = await Tether.open();
try {
  await installDependencies();
  const redis = await findRedis({ tether, order: START_ORDER, flags: [] });
  await buildIfStale([LIBRARY, EXAMPLES]);
  process.env.REDIS_URL = redis.url;
  process.env.DELAY_QUEUE_PREFIX ||= `example-${randomBytes(4).toString('hex')}`;
  await (SERVED[name] ? serveExample(SERVED[name]) : runExample());
} finally {
  await tether.close();
}

async function load() {
  await import('reflect-metadata');
  const { NestFactory } = await import('@nestjs/core');
  return { NestFactory, ...(await import(pathToFileURL(at('dist-examples', `${name}.js`)).href)) };
}

async function serveExample(path) {
  const { NestFactory, AppModule, run } = await load();
  const app = await NestFactory.create(AppModule, { logger: ['warn', 'error', 'fatal'] });
  try {
    await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
    const url = `${await app.getUrl()}${path}`;
    await run(app, 2_000);
    console.log(`${url}\nCtrl-C ends it.`);
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  } finally {
    await app.close();
  }
}

async function runExample() {
  const { NestFactory, AppModule, run } = await load();
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error', 'fatal'] });
  try {
    console.dir(await run(app), { depth: null });
  } finally {
    await app.close();
  }
}
