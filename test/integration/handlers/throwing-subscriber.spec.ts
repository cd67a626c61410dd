import { expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

// In a process of its own: Node raises what a subscriber throws as an uncaught exception, which jest would take for its own.
it('a subscriber of the channels that throws costs no slot and no settlement', async () => {
  const program = `
    import 'reflect-metadata';
    import { subscribe } from 'node:diagnostics_channel';
    import { Module } from '@nestjs/common';
    import { NestFactory } from '@nestjs/core';
    import { DelayQueueModule, DelayQueueProducer, OnDelayed, SnoozeJob } from 'nestjs-delay-queue';

    let uncaught = 0;
    process.on('uncaughtException', () => uncaught++);
    for (const name of ['enqueued', 'claimed', 'completed', 'failed', 'retried', 'snoozed', 'deadLettered', 'step']) {
      subscribe('nestjs-delay-queue:' + name, () => { throw new Error('of a subscriber'); });
    }
    class Handlers {
      run(_, { id }) {
        if (id === 'snoozed') throw new SnoozeJob('1h');
        if (id !== 'completed') throw new Error('no luck');
      }
    }
    OnDelayed('heard', { concurrency: 1, backoff: { type: 'fixed', delay: '1h' } })(
      Handlers.prototype, 'run', Object.getOwnPropertyDescriptor(Handlers.prototype, 'run'));
    class App {}
    const options = ${JSON.stringify({ connection: here.world.connection, prefix: here.world.prefix })};
    Module({ imports: [DelayQueueModule.forRoot(options)], providers: [Handlers] })(App);
    const app = await NestFactory.createApplicationContext(App, { logger: false });
    const producer = app.get(DelayQueueProducer);
    const states = async () => Promise.all(ids.map(async (id) => (await producer.get('heard', id))?.state ?? 'none'));
    const ids = ['completed', 'failed', 'dead', 'snoozed', 'last'];
    for (const id of ids) await producer.enqueue('heard', {}, { id, ...(id === 'dead' && { attempts: 1 }) });
    const wanted = 'none delayed dead delayed delayed';
    for (let round = 0; round < 400 && (await states()).join(' ') !== wanted; round++)
      await new Promise((resolve) => setTimeout(resolve, 50));
    console.log(JSON.stringify({ states: (await states()).join(' '), uncaught: uncaught > 10 }));
    await app.close();
  `;
  const options = { cwd: ROOT, timeout: 50_000 };
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], options);
  expect(JSON.parse(stdout)).toEqual({ states: 'none delayed dead delayed delayed', uncaught: true });
  expect((await here.world.read('heard')).leases).toEqual({});
});
