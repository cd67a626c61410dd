import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { endingWithEachTest } from '../../helpers/ending.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const end = endingWithEachTest();
const run = promisify(execFile);
const OBSERVERS = ['events', 'metrics', 'otel-metrics', 'tracing', 'history', 'tally'];
const THEIR_PEERS = ['prom-client', '@opentelemetry'];

/** A job that fails once and is done at its second attempt. */
const PROGRAM = `
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DelayQueueModule, DelayQueueProducer, DelayQueueRegistry, fixed } from './dist/index.js';

const { connection, prefix } = JSON.parse(process.argv[2]);
class App {}
Module({ imports: [DelayQueueModule.forRoot({ connection, prefix, shutdownHooksWarning: false })] })(App);
const app = await NestFactory.createApplicationContext(App, { logger: false });
const attempts = await new Promise((resolve) => {
  const seen = [];
  const handle = (_, job) => {
    seen.push(job.attempt);
    if (job.attempt === 1) throw new Error('no luck');
    resolve(seen);
  };
  app.get(DelayQueueRegistry).register('q', handle, { backoff: fixed(1) });
  void app.get(DelayQueueProducer).enqueue('q', {}, { delay: 20 });
});
await app.close();
console.log(JSON.stringify(attempts));
`;

it('Without the folders of events, metrics, tracing and history, and without their peers, the library builds and runs jobs', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'without-observability-')));
  end({ close: async () => rmSync(folder, { recursive: true, force: true }) });
  cpSync('lib', join(folder, 'lib'), { recursive: true });
  for (const name of OBSERVERS) rmSync(join(folder, 'lib', name), { recursive: true });
  mkdirSync(join(folder, 'node_modules'));
  for (const name of readdirSync('node_modules').filter((name) => !THEIR_PEERS.includes(name) && name[0] !== '.')) {
    symlinkSync(realpathSync(join('node_modules', name)), join(folder, 'node_modules', name));
  }
  cpSync('tsconfig.json', join(folder, 'tsconfig.json'));
  cpSync('tsconfig.build.json', join(folder, 'tsconfig.build.json'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'program.mjs'), PROGRAM);
  // Of types no import leads into the folders: test/contract/imports.spec.ts. A check of all would take half a minute.
  const tsc = realpathSync('node_modules/typescript/bin/tsc');
  const cwd = { cwd: folder, timeout: 180_000 };
  await run(
    process.execPath,
    [
      tsc,
      '-p',
      'tsconfig.build.json',
      '--outDir',
      'dist',
      '--noCheck',
      '--declaration',
      'false',
      '--declarationMap',
      'false',
    ],
    cwd,
  );
  const world = JSON.stringify({ connection: here.world.connection, prefix: here.world.prefix });
  const env = { ...process.env, NODE_OPTIONS: '' };
  const { stdout } = await run(process.execPath, ['program.mjs', world], { ...cwd, env });
  expect(JSON.parse(stdout)).toEqual([1, 2]);
}, 240_000);
