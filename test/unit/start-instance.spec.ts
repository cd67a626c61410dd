import { afterEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { resolveModuleOptions } from '../../lib/delay-queue.options.js';
import type { DelayQueueModuleOptions } from '../../lib/delay-queue.options.js';
import { startInstance } from '../../lib/instance/start-instance.js';
import type { Instance } from '../../lib/instance/start-instance.js';
import { RedisConnection } from '../../lib/redis/redis.connection.js';
import { eventually } from '../helpers/eventually.js';

const OPTIONS: DelayQueueModuleOptions = { connection: 'memory://', shutdownHooksWarning: false };

let instance: Instance | undefined;

async function start(parts: Omit<NonNullable<Parameters<typeof startInstance>[0]>, 'options'> = {}): Promise<Instance> {
  Logger.overrideLogger(false);
  instance = await startInstance({ options: OPTIONS, ...parts });
  return instance;
}

afterEach(async () => {
  await instance?.close();
  instance = undefined;
});

describe('an instance beneath Nest', () => {
  it('runs what its producer enqueues', async () => {
    const runs: unknown[] = [];
    const { producer, inspector } = await start({ handlers: { mails: (payload) => runs.push(payload) } });
    await producer.enqueue('mails', 'now');
    await producer.enqueue('mails', 'later', { delay: '1h' });
    await eventually(() => expect(runs).toEqual(['now']));
    await eventually(async () => expect(await inspector.counts('mails')).toMatchObject({ running: 0, delayed: 1 }));
  });

  it('takes further handlers and gives jobs to those who pull', async () => {
    const runs: unknown[] = [];
    const { producer, registry, consumer } = await start();
    registry.register('letters', (payload) => runs.push(payload), { attempts: 1 });
    await producer.enqueue('letters', 1);
    await eventually(() => expect(runs).toEqual([1]));
    await producer.enqueue('parcels', 2);
    const [pulled] = await consumer.pull('parcels', { wait: '1s' });
    expect(pulled!.payload).toBe(2);
    await pulled!.complete();
  });

  it('names in errors the call that was made', async () => {
    const away = { connection: 'redis://127.0.0.1:1', connect: 'lazy', commandTimeout: 50 } as const;
    instance = await startInstance({ options: { ...OPTIONS, ...away } });
    const { inspector, consumer } = instance;
    const messages = (...calls: Promise<unknown>[]) =>
      Promise.all(calls.map((call) => call.catch((error: Error) => error.message)));
    expect(
      await messages(
        inspector.counts('q'),
        inspector.totals('q'),
        inspector.requeueDead('q', 'all'),
        inspector.removeDead('q', 'all'),
        inspector.purge('q'),
        inspector.pause('q'),
        inspector.resume('q'),
        inspector.pausePublishing('q'),
        inspector.resumePublishing('q'),
      ),
    ).toEqual(
      [
        'counts',
        'totals',
        'requeueDead',
        'removeDead',
        'purge',
        'pause',
        'resume',
        'pausePublishing',
        'resumePublishing',
      ].map((call) => expect.stringContaining(` for ${call} of queue "q"`)),
    );
    expect(await messages(consumer.take('q'), consumer.pull('q'), consumer.take('q', 0), consumer.take('{'))).toEqual([
      'take("q"): Redis did not answer.',
      'pull("q"): Redis did not answer.',
      'take(queue, max): 0 is not a whole number from 1 to 1000.',
      expect.stringMatching('^take\\(queue\\): '),
    ]);
    await instance.close();
    expect(await messages(consumer.take('q'))).toEqual([
      'take("q"): the application is being closed. Nothing was claimed.',
    ]);
  });

  it('waits for its handlers before it closes', async () => {
    const ended: string[] = [];
    const { producer, context } = await start({
      handlers: {
        slow: async () => {
          ended.push('begun');
          await new Promise((resolve) => setTimeout(resolve, 50));
          ended.push('ended');
        },
      },
    });
    await producer.enqueue('slow', 0);
    await eventually(() => expect(ended).toEqual(['begun']));
    await instance!.close();
    instance = undefined;
    expect(ended).toEqual(['begun', 'ended']);
    expect(context.connection.isClosed).toBe(true);
  });

  it('goes over a connection that it is given', async () => {
    const connection = new RedisConnection(resolveModuleOptions(OPTIONS, 'default'));
    const { producer, context } = await start({ connection });
    expect(context.connection).toBe(connection);
    await expect(producer.enqueue('mails', 1)).resolves.toMatchObject({ outcome: 'created' });
  });

  it('refuses what an application would refuse at boot, and leaves nothing open', async () => {
    const connection = new RedisConnection(resolveModuleOptions(OPTIONS, 'default'));
    await expect(start({ connection, handlers: { 'no{braces}': () => undefined } })).rejects.toThrow('braces');
    expect(connection.isClosed).toBe(true);
    await expect(startInstance({ options: { ...OPTIONS, prefix: '' } })).rejects.toThrow('prefix');
  });
});
