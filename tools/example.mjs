// npm run example -- <name>: runs one of docs/examples and prints what it returns. On the Redis of REDIS_URL, or in memory,
// under a prefix of its own each time.
import { readdirSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { buildIfStale, EXAMPLES, LIBRARY } from './compile.mjs';
import { installDependencies } from './dependencies.mjs';
import { at } from './project.mjs';

const names = readdirSync(at('docs', 'examples'))
  .filter((name) => name.endsWith('.ts') && !['redis.ts', 'until.ts'].includes(name))
  .map((name) => name.slice(0, -'.ts'.length));
const [name] = process.argv.slice(2);
if (!names.includes(name)) {
  console.error(`Usage: npm run example -- ${names.join('|')}`);
  process.exit(1);
}

process.env.REDIS_URL ||= `memory://${name}`;
process.env.DELAY_QUEUE_PREFIX ||= `example-${randomBytes(4).toString('hex')}`;
await installDependencies();
await buildIfStale([LIBRARY, EXAMPLES]);

await import('reflect-metadata');
const { NestFactory } = await import('@nestjs/core');
const { AppModule, run } = await import(at('dist-examples', `${name}.js`));
const app = await NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error', 'fatal'] });
try {
  console.dir(await run(app), { depth: null });
} finally {
  await app.close();
}
