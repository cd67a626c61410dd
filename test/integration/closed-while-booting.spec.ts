import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { RedisCluster } from '../helpers/cluster.js';
import { World } from '../helpers/world.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIMIT_MS = 30_000;
/** Of 366 applications: 7 s on an idle machine. */
const OFTEN_LIMIT_MS = 150_000;

let world: World;

beforeAll(async () => {
  world = await World.open();
});

afterAll(async () => {
  await world.close();
});

/**
 * Runs `rounds` in a process of its own: what still waits, listens or spins there keeps it from ending by itself, and it is
 * killed. An application with a server for HTTP, because Nest lets others boot to the end before it closes them.
 */
async function outputOf(rounds: string, options: object = {}, limitMs = LIMIT_MS): Promise<string> {
  const program = `
    import 'reflect-metadata';
    import { setImmediate as turn } from 'node:timers/promises';
    import { Module } from '@nestjs/common';
    import { NestFactory } from '@nestjs/core';
    import { DelayQueueConsumer, DelayQueueModule, OnDelayed } from 'nestjs-delay-queue';

    class Handlers { run() {} }
    OnDelayed('booting')(Handlers.prototype, 'run', Object.getOwnPropertyDescriptor(Handlers.prototype, 'run'));
    const options = ${JSON.stringify({ connection: world.connection, prefix: world.prefix, ...options })};
    async function create(providers = []) {
      class App {}
      Module({ imports: [DelayQueueModule.forRoot(options)], providers: [Handlers, ...providers] })(App);
      return NestFactory.create(App, { logger: false, abortOnError: false });
    }
    /** A hook of the application in which somebody closes it. */
    const hook = (name, app) => {
      class Closer {}
      Closer.prototype[name] = () => app().close();
      return Closer;
    };
    async function closedIn(name) {
      const app = await create([hook(name, () => app)]);
      await app.init().catch((error) => console.log(error.code));
      await app.close();
    }
    ${rounds}
    console.log('all closed');`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    cwd: ROOT,
    timeout: limitMs,
    killSignal: 'SIGKILL',
  });
  return stdout;
}

/** Each one finds the boot at another of the places where it waits; the last ones come after it. */
const AFTER_ANY_TURNS = `
    for (let turns = 0; turns <= 60; turns++) {
      const app = await create();
      const booting = app.init().catch(() => undefined);
      for (let n = 0; n < turns; n++) await turn();
      await app.close();
      await booting;
    }`;

describe('an application that is closed while it boots ends, and no worker starts on the closed connection:', () => {
  it(
    'before it began',
    async () => {
      const output = await outputOf(`
        const app = await create();
        await app.close();
        await app.init().catch((error) => console.log(error.code, error.message));`);
      expect(output).toMatch(/^ERR_DQ_CLOSED The application was closed.*\nall closed\n$/);
    },
    LIMIT_MS + 5_000,
  );

  it(
    'while it waits for Redis',
    async () => {
      const output = await outputOf(
        `
        const app = await create();
        const booting = app.init().catch((error) => console.log(error.code, error.message));
        for (let n = 0; n < 200; n++) await turn();
        await app.close();
        await booting;`,
        { connection: 'redis://127.0.0.1:1', connectTimeout: '10m' },
      );
      expect(output).toMatch(/^ERR_DQ_CLOSED The application was closed.*\nall closed\n$/);
    },
    LIMIT_MS + 5_000,
  );

  it(
    'in its own hooks',
    async () => {
      expect(
        await outputOf(`for (const name of ['onModuleInit', 'onApplicationBootstrap']) await closedIn(name);`),
      ).toBe('all closed\n');
    },
    LIMIT_MS + 5_000,
  );

  it.each([
    ['after any number of turns of the event loop', {}],
    ['the same while it connects lazily', { connect: 'lazy' }],
  ])(
    '%s',
    async (_, options) => {
      const output = await outputOf(AFTER_ANY_TURNS, options);
      expect(output).toBe('all closed\n');
    },
    LIMIT_MS + 5_000,
  );

  it(
    'after any number of turns, on a Cluster',
    async () => {
      const cluster = await RedisCluster.start();
      try {
        const { connection } = cluster;
        // Its driver needs several answers, and not always in the same turns.
        const often = `for (let sweep = 0; sweep < 6; sweep++) { ${AFTER_ANY_TURNS} }`;
        expect(await outputOf(often, { connection }, OFTEN_LIMIT_MS)).toBe('all closed\n');
      } finally {
        await cluster.stop();
      }
    },
    OFTEN_LIMIT_MS + 30_000,
  );

  it(
    'with somebody who pulls',
    async () => {
      const output = await outputOf(`
        const app = await create();
        await app.init();
        const consumer = app.get(DelayQueueConsumer);
        const pulls = [consumer.pull('pulled', { wait: '10m' }), consumer.pull(['pulled', 'other'], { wait: '10m', max: 5 })];
        await turn();
        await app.close();
        console.log(JSON.stringify(await Promise.all(pulls)));
        await consumer.pull('pulled', { wait: '10m' }).catch((error) => console.log(error.code));
        await consumer.pull('new', { wait: '10m' }).catch((error) => console.log(error.code));`);
      expect(output).toBe('[[],[]]\nERR_DQ_CLOSED\nERR_DQ_CLOSED\nall closed\n');
    },
    LIMIT_MS + 5_000,
  );
});
