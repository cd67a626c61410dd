import { describe, expect, it } from '@jest/globals';
import { Inject, Injectable, Module, Optional } from '@nestjs/common';
import { Redis } from 'ioredis';
import { DelayQueueInspector, DelayQueueModule, DelayQueueProducer, InvalidOptionError } from '../../../lib/index.js';
import type { DelayQueueModuleOptions, DelayQueueOptionsFactory } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

// A private server, because the clients of this process are counted.
const here = inAWorld({});
const options = (more: DelayQueueModuleOptions = {}): DelayQueueModuleOptions => ({
  connection: here.world.connection,
  prefix: here.world.prefix,
  ...more,
});
const isStored = async (prefix: string, queue: string, id: string) =>
  (await here.world.redis.hexists(`${prefix}:{${queue}}:jobs`, id)) === 1;

@Injectable()
class Orders {
  constructor(readonly queues: DelayQueueProducer) {}
}
@Module({ providers: [Orders] })
class OrdersModule {}

describe('forRoot()', () => {
  it('stores under the prefix "dq" when no other is given', async () => {
    const app = await here.boot({ imports: [DelayQueueModule.forRoot({ connection: here.world.connection })] });
    const { id } = await app.get(DelayQueueProducer).enqueue('mail', {}, { delay: '1h' });
    expect(await isStored('dq', 'mail', id)).toBe(true);
  });

  it('gives its services to modules that do not import it', async () => {
    const app = await here.boot({ imports: [OrdersModule, DelayQueueModule.forRoot(options())] });
    expect(app.get(Orders, { strict: false }).queues).toBe(app.get(DelayQueueProducer));
  });

  it('with isGlobal: false only to those that do', async () => {
    const root = DelayQueueModule.forRoot({ ...options(), isGlobal: false });
    @Module({ imports: [root], providers: [Orders] })
    class Importing {}
    @Injectable()
    class Other {
      constructor(@Optional() readonly queues?: DelayQueueProducer) {}
    }
    @Module({ providers: [Other] })
    class NotImporting {}

    const app = await here.boot({ imports: [Importing, NotImporting] });
    const { id } = await app.get(Orders, { strict: false }).queues.enqueue('mail', {}, { delay: '1h' });
    expect(await isStored(here.world.prefix, 'mail', id)).toBe(true);
    expect(app.get(Other, { strict: false }).queues).toBeUndefined();
  });

  it('that cannot reach Redis fails within connectTimeout, naming host and port', async () => {
    const unreachable = { connection: 'redis://:secret@127.0.0.1:1', connectTimeout: 200 };
    const boot = here.boot({ imports: [DelayQueueModule.forRoot(unreachable)] });
    const error = (await boot.catch((thrown: unknown) => thrown)) as Error;
    expect(error).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', retryable: true, maybeAccepted: false });
    expect(error.message).toContain('127.0.0.1:1 ');
    expect(error.message).not.toContain('secret');
  });
});

describe('forRootAsync()', () => {
  @Injectable()
  class Settings implements DelayQueueOptionsFactory {
    createDelayQueueOptions(): DelayQueueModuleOptions {
      return options();
    }
  }
  @Module({ providers: [Settings, { provide: 'PREFIX', useValue: 'given' }], exports: [Settings, 'PREFIX'] })
  class SettingsModule {}

  it.each<[string, Parameters<typeof DelayQueueModule.forRootAsync>[0]]>([
    ['useFactory', { useFactory: () => options() }],
    ['an async useFactory', { useFactory: async () => options() }],
    ['useClass', { useClass: Settings }],
    ['useExisting and imports', { useExisting: Settings, imports: [SettingsModule] }],
  ])('takes %s', async (_, given) => {
    const app = await here.boot({ imports: [OrdersModule, DelayQueueModule.forRootAsync(given)] });
    const { id } = await app.get(Orders, { strict: false }).queues.enqueue('mail', {}, { delay: '1h' });
    expect(await isStored(here.world.prefix, 'mail', id)).toBe(true);
  });

  it('injects into the factory what the imports export', async () => {
    const app = await here.boot({
      imports: [
        DelayQueueModule.forRootAsync({
          imports: [SettingsModule],
          inject: ['PREFIX', { token: 'ABSENT', optional: true }],
          useFactory: (prefix: string, absent: unknown) => options({ prefix: `${prefix}-${typeof absent}` }),
        }),
      ],
    });
    const { id } = await app.get(DelayQueueProducer).enqueue('mail', {}, { delay: '1h' });
    expect(await isStored('given-undefined', 'mail', id)).toBe(true);
  });

  it('injects into a class what the imports export', async () => {
    @Injectable()
    class Prefixed implements DelayQueueOptionsFactory {
      constructor(@Inject('PREFIX') private readonly prefix: string) {}
      createDelayQueueOptions(): DelayQueueModuleOptions {
        return options({ prefix: this.prefix });
      }
    }
    const app = await here.boot({
      imports: [DelayQueueModule.forRootAsync({ useClass: Prefixed, imports: [SettingsModule] })],
    });
    const { id } = await app.get(DelayQueueProducer).enqueue('mail', {}, { delay: '1h' });
    expect(await isStored('given', 'mail', id)).toBe(true);
  });

  it('refuses none or two of the three', () => {
    expect(() => DelayQueueModule.forRootAsync({})).toThrow(InvalidOptionError);
    expect(() => DelayQueueModule.forRootAsync({ useClass: Settings, useFactory: () => ({}) })).toThrow(
      InvalidOptionError,
    );
  });

  it('names the option that its factory got wrong', async () => {
    const boot = here.boot({ imports: [DelayQueueModule.forRootAsync({ useFactory: () => ({ prefix: '' }) })] });
    await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_OPTION' });
    await expect(boot).rejects.toThrow('forRoot({ prefix }): is empty');
  });
});

describe('the connections', () => {
  it('are two clients per process and instance, however many queues', async () => {
    const handlers = Array.from({ length: 20 }, (_, n) => handlerClass(`many-${n}`, () => undefined));
    const { producer, app } = await here.start({ providers: handlers });
    await Promise.all(handlers.map((_, n) => producer.enqueue(`many-${n}`, {})));
    await app.get(DelayQueueInspector).counts('another');
    await eventually(async () =>
      expect(await here.world.clientNames()).toEqual(['dq:default:commands', 'dq:default:wake']),
    );
  });

  it('are not opened by an application that cannot be built', async () => {
    const broken = { provide: 'broken', useFactory: () => Promise.reject(new Error('of the user')) };
    const boot = here.boot({ imports: [DelayQueueModule.forRoot(options())], providers: [broken] });
    await expect(boot).rejects.toThrow('of the user');
    await eventually(async () => expect(await here.world.clientNames()).toEqual([]));
  });

  it('take a duplicate of an ioredis instance, and leave the instance alone', async () => {
    const own = new Redis(here.world.url, { lazyConnect: true, db: 3, connectionName: 'own' });
    const app = await here.boot({ imports: [DelayQueueModule.forRoot(options({ connection: own }))] });
    await app.get(DelayQueueProducer).enqueue('mail', {}, { delay: '1h' });
    expect(own.status).toBe('wait');

    await own.connect();
    expect(await own.exists(here.world.key('mail', 'jobs'))).toBe(1); // its database was taken over
    await app.close();
    expect(own.status).toBe('ready');
    expect(await own.ping()).toBe('PONG');
    await eventually(async () => expect(await here.world.clientNames()).toEqual(['own']));
    expect(own.listenerCount('error')).toBe(0);
    await own.flushdb();
    own.disconnect();
  });

  it.each([
    ['an instance', () => new Redis({ lazyConnect: true, keyPrefix: 'x:' })],
    ['options', () => ({ host: '127.0.0.1', keyPrefix: 'x:' })],
    ['a URL', () => `${here.world.url}?keyPrefix=x:`],
  ])('refuse the keyPrefix of %s', async (_, connection) => {
    const boot = here.boot({ imports: [DelayQueueModule.forRoot(options({ connection: connection() }))] });
    await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_OPTION' });
    await expect(boot).rejects.toThrow(/keyPrefix.*`prefix`/);
  });
});
