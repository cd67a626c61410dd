import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Proxy } from '../helpers/proxy.js';
import { World } from '../helpers/world.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIMIT_MS = 30_000;

let world: World;
let proxy: Proxy;

beforeAll(async () => {
  world = await World.open();
  proxy = await Proxy.before(world.url);
});

afterAll(async () => {
  await proxy.close();
  await world.close();
});

// A worker starts when Redis has confirmed its subscription, so it may be told to stop before. In a process of its own:
// one that spins cannot be timed out from within, and one that does not end is the other half of the defect.
it(
  'an application that is closed right after it has booted ends: no worker starts on the closed connection',
  async () => {
    proxy.judge = (_, chunk) => (/subscribe/i.test(chunk.toString('latin1')) ? 'swallow' : 'pass');
    const program = `
      import 'reflect-metadata';
      import { Module } from '@nestjs/common';
      import { NestFactory } from '@nestjs/core';
      import { DelayQueueModule, OnDelayed } from 'nestjs-delay-queue';

      class Handlers { run() {} }
      OnDelayed('closed')(Handlers.prototype, 'run', Object.getOwnPropertyDescriptor(Handlers.prototype, 'run'));
      const options = ${JSON.stringify({ connection: proxy.url, prefix: world.prefix })};
      for (let round = 0; round < 3; round++) {
        class App {}
        Module({ imports: [DelayQueueModule.forRoot(options)], providers: [Handlers] })(App);
        const app = await NestFactory.createApplicationContext(App, { logger: false });
        await app.close();
      }
      console.log('all closed');`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
      cwd: ROOT,
      timeout: LIMIT_MS,
      killSignal: 'SIGKILL',
    });
    expect(stdout).toBe('all closed\n');
  },
  LIMIT_MS + 5_000,
);
