import { describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { DEFAULTS } from '../../lib/defaults.js';
import { resolveEnqueueDefaults, resolveModuleOptions } from '../../lib/delay-queue.options.js';
import { resolveHandlerSettings } from '../../lib/handlers/handler-settings.js';
import type { DelayQueueModuleOptions } from '../../lib/delay-queue.options.js';
import { InvalidDelayError, InvalidOptionError, InvalidQueueError } from '../../lib/delay-queue.errors.js';
import type { HandlerOptions } from '../../lib/handlers/handler.js';
import type { ContextProvider } from '../../lib/job/current-job.js';
import { exponential, fixed, steps } from '../../lib/job/backoff.js';
import { defineQueue } from '../../lib/job/queue-definition.js';
import type { QueueDefaults } from '../../lib/job/queue-definition.js';
import { DelayQueueModule } from '../../lib/index.js';

const CODEC = { name: 'x', encode: () => '', decode: () => null };
const resolve = (options?: unknown) => resolveModuleOptions(options, 'default');

describe('the options of forRoot()', () => {
  it('are these by default', () => {
    const expected = {
      name: 'default',
      connection: 'redis://127.0.0.1:6379',
      prefix: 'dq',
      defaults: {
        attempts: 10,
        backoff: exponential('1s', { max: '1h', jitter: 0.2 }),
        concurrency: 10,
        prefetch: true,
        leaseMs: 30_000,
      },
      queues: {},
      consume: true,
      drainTimeoutMs: 10_000,
      connectTimeoutMs: 10_000,
      commandTimeoutMs: 5_000,
      connect: 'eager',
      startupChecks: 'strict',
      durability: 'async',
      codec: ['json'],
      compressAbove: undefined,
      maxPayloadBytes: 262_144,
      deadLetters: { max: 10_000, maxAgeMs: 7_776_000_000 },
      globalEnhancers: 'pipes',
      middleware: [],
      contextProvider: undefined,
      strictQueues: false,
      shutdownHooksWarning: true,
    };
    expect(resolve(undefined)).toEqual(expected);
    expect(resolve({})).toEqual(expected);
    const allUndefined = Object.fromEntries(Object.keys(FULL).map((option) => [option, undefined]));
    expect(resolve(allUndefined)).toEqual({ ...expected, unsetHost: 'connection' });
  });

  it('are all taken, durations in ms', () => {
    expect(resolveModuleOptions(FULL, 'eu')).toEqual({
      name: 'eu',
      connection: 'rediss://user:password@redis.example.com:6380/2',
      prefix: 'shop:dq',
      defaults: {
        attempts: 3,
        backoff: fixed(1000),
        concurrency: 10,
        prefetch: true,
        leaseMs: 60_000,
        timeoutMs: 60_000,
      },
      queues: { 'payment.check': { concurrency: 2, delayMs: 1000, shards: 8 }, constructor: {} },
      consume: ['payment.check', 'mail'],
      drainTimeoutMs: 0,
      connectTimeoutMs: 1000,
      commandTimeoutMs: 2000,
      connect: 'lazy',
      startupChecks: 'off',
      statedAttempts: 3,
      durability: { replicas: 2, timeoutMs: 500 },
      codec: [CODEC, 'json'],
      compressAbove: 4096,
      maxPayloadBytes: 1000,
      deadLetters: { max: 10, maxAgeMs: 86_400_000 },
      globalEnhancers: 'all',
      middleware: [MIDDLEWARE],
      contextProvider: CONTEXT_PROVIDER,
      strictQueues: true,
      shutdownHooksWarning: false,
    });
  });

  it('are frozen to the bottom, and those of the application are left alone', () => {
    const given = { ...FULL, defaults: { ...FULL.defaults }, deadLetters: { ...FULL.deadLetters } };
    const resolved = resolve(given);
    // What is somebody else's object stays as it was given.
    expectFrozen({ ...resolved, connection: undefined, contextProvider: undefined, codec: undefined });
    expect(Object.isFrozen(resolved)).toBe(true);
    expect(Object.isFrozen(given)).toBe(false);
    expect(Object.isFrozen(given.defaults)).toBe(false);
    expectFrozen(DEFAULTS);
  });

  it('do not change any more when the application changes its own', () => {
    const given = { queues: { a: { lease: '10s' } }, consume: ['a'], connection: { host: 'one' } };
    const resolved = resolve(given);
    given.queues.a.lease = '20s';
    given.consume.push('b');
    given.connection.host = 'two';
    expect(resolved).toMatchObject({ queues: { a: { leaseMs: 10_000 } }, consume: ['a'], connection: { host: 'one' } });
  });

  it('fill the gaps of deadLetters', () => {
    expect(resolve({ deadLetters: { max: 5 } }).deadLetters).toEqual({ max: 5, maxAgeMs: 90 * 86_400_000 });
    expect(resolve({ deadLetters: {} }).deadLetters).toEqual(DEFAULTS.deadLetters);
  });

  it('know nothing of queues that are called like what objects have anyway', () => {
    const { queues } = resolve({ queues: { mail: {} } });
    for (const name of ['constructor', 'toString', '__proto__']) expect(queues[name]).toBeUndefined();
    const odd = resolve({ queues: JSON.parse('{"__proto__":{"attempts":3}}') }).queues;
    expect(odd['__proto__']).toEqual({ attempts: 3 });
  });

  it('consume nothing, everything, or queues by name or definition', () => {
    expect(resolve({ consume: false }).consume).toBe(false);
    expect(resolve({ consume: true }).consume).toBe(true);
    expect(resolve({ consume: ['a', defineQueue('b'), 'a'] }).consume).toEqual(['a', 'b']);
    expect(resolve({ consume: [] }).consume).toEqual([]);
  });

  it.each<[string, unknown, new (message: string) => Error, string]>([
    ['null options', { defaults: null }, InvalidOptionError, 'forRoot({ defaults: { ... } }): options must be'],
    ['a list', [], InvalidOptionError, 'forRoot({ ... }): options must be a plain object, but are an array'],
    ['text', 'redis://localhost', InvalidOptionError, 'forRoot({ ... })'],
    [
      'a misspelt option',
      { drainTimout: 5 },
      InvalidOptionError,
      '"drainTimout". The nearest known one is "drainTimeout"',
    ],
    ['an option of the handler', { concurrency: 5 }, InvalidOptionError, 'unknown option "concurrency"'],
    ['an empty prefix', { prefix: '' }, InvalidOptionError, 'forRoot({ prefix }): is empty'],
    ['a long prefix', { prefix: 'p'.repeat(65) }, InvalidOptionError, 'longer than 64 characters'],
    ['braces in the prefix', { prefix: '{dq}' }, InvalidOptionError, 'forRoot({ prefix }): "{dq}" holds braces'],
    ['spaces around the prefix', { prefix: 'dq ' }, InvalidOptionError, 'begins or ends with a space'],
    ['a number as prefix', { prefix: 5 }, InvalidOptionError, 'forRoot({ prefix }): 5 is not text'],
    ['a wrong default', { defaults: { lease: '1ms' } }, InvalidDelayError, 'forRoot({ defaults: { lease } }): "1ms"'],
    ['an unknown default', { defaults: { leese: 1 } }, InvalidOptionError, 'The nearest known one is "lease"'],
    [
      'a default function',
      { defaults: { backoff: () => 1 } },
      InvalidOptionError,
      'forRoot({ defaults: { backoff } })',
    ],
    [
      'a wrong option of a queue',
      { queues: { 'payment.check': { lease: 'x' } } },
      InvalidDelayError,
      'forRoot({ queues: { "payment.check": { lease } } }): "x" is not a duration',
    ],
    ['no room', { defaults: { maxSize: 0 } }, InvalidOptionError, 'forRoot({ defaults: { maxSize } }): 0'],
    ['no number of shards', { queues: { a: { shards: 0 } } }, InvalidOptionError, 'queues: { "a": { shards } }'],
    ['too many shards', { queues: { a: { shards: 257 } } }, InvalidOptionError, 'queues: { "a": { shards } }'],
    ['shards of all queues', { defaults: { shards: 2 } }, InvalidOptionError, 'unknown option "shards"'],
    [
      'a queue where another has a shard',
      { queues: { a: { shards: 4 }, 'a:3': {} } },
      InvalidOptionError,
      'forRoot({ queues }): "a:3" cannot be a queue next to "a"',
    ],
    ['a wrong queue name', { queues: { 'a{b': {} } }, InvalidQueueError, 'forRoot({ queues }): "a{b"'],
    ['a list of queues', { queues: ['a'] }, InvalidOptionError, 'forRoot({ queues }): an array is not a map'],
    ['nothing for a queue', { queues: { a: null } }, InvalidOptionError, 'queues: { "a": { ... } }'],
    ['a single name to consume', { consume: 'a' }, InvalidOptionError, 'forRoot({ consume }): "a" is neither true'],
    ['a wrong name to consume', { consume: [''] }, InvalidQueueError, 'forRoot({ consume }): is empty'],
    ['no queue to consume', { consume: [5] }, InvalidQueueError, 'forRoot({ consume }): 5 is neither a name'],
    ['a negative drainTimeout', { drainTimeout: -1 }, InvalidDelayError, 'forRoot({ drainTimeout }): -1'],
    ['an endless drainTimeout', { drainTimeout: '30d' }, InvalidDelayError, 'too long'],
    ['no connectTimeout', { connectTimeout: 0 }, InvalidDelayError, 'forRoot({ connectTimeout }): 0 is too short'],
    ['no commandTimeout', { commandTimeout: 0 }, InvalidDelayError, 'forRoot({ commandTimeout }): 0 is too short'],
    ['a wrong connect', { connect: true }, InvalidOptionError, `true is not one of 'eager', 'lazy'`],
    ['wrong startupChecks', { startupChecks: false }, InvalidOptionError, `'strict', 'warn', 'off'`],
    ['a wrong durability', { durability: 'sync' }, InvalidOptionError, `"sync" is not one of 'async', 'fsync'`],
    ['no replicas', { durability: { replicas: 0 } }, InvalidOptionError, 'forRoot({ durability }).replicas: 0'],
    [
      'a wait longer than a command',
      { durability: { replicas: 1, timeout: '6s' } },
      InvalidOptionError,
      'forRoot({ durability }).timeout: 6000 ms is longer than commandTimeout (5000 ms)',
    ],
    ['no codec', { codec: null }, InvalidOptionError, `forRoot({ codec }): must be 'json' or an object`],
    ['a codec by name', { codec: 'msgpack' }, InvalidOptionError, `must be 'json' or an object with a name`],
    ['an empty list of codecs', { codec: [] }, InvalidOptionError, 'forRoot({ codec }): an empty list'],
    ['a codec without a name', { codec: { ...CODEC, name: '' } }, InvalidOptionError, 'the name "" of a codec'],
    ['a codec with a line feed', { codec: { ...CODEC, name: 'a\nb' } }, InvalidOptionError, 'must be 1 to 32 letters'],
    ['a codec named json', { codec: { ...CODEC, name: 'json' } }, InvalidOptionError, '"json" is taken'],
    ['two codecs of one name', { codec: [CODEC, { ...CODEC }] }, InvalidOptionError, 'two codecs have the name "x"'],
    ['a codec that cannot decode', { codec: { ...CODEC, decode: 1 } }, InvalidOptionError, 'and decode(data)'],
    ['a wrong identity', { codec: { ...CODEC, identity: 1 } }, InvalidOptionError, 'identity of codec "x"'],
    ['a wrong compressAbove', { compressAbove: '4KiB' }, InvalidOptionError, 'forRoot({ compressAbove }): "4KiB"'],
    ['no payload', { maxPayloadBytes: 0 }, InvalidOptionError, 'forRoot({ maxPayloadBytes }): 0'],
    ['a payload beyond Redis', { maxPayloadBytes: 2 ** 29 }, InvalidOptionError, 'from 1 to 268435456'],
    ['no dead letters', { deadLetters: { max: 0 } }, InvalidOptionError, 'forRoot({ deadLetters: { max } }): 0'],
    ['a wrong maxAge', { deadLetters: { maxAge: '' } }, InvalidDelayError, 'deadLetters: { maxAge } })'],
    ['a number of dead letters', { deadLetters: 5 }, InvalidOptionError, 'deadLetters: { ... }'],
    ['a wrong globalEnhancers', { globalEnhancers: 'guards' }, InvalidOptionError, `'all', 'pipes', 'none'`],
    ['a wrong strictQueues', { strictQueues: 'yes' }, InvalidOptionError, 'forRoot({ strictQueues }): "yes"'],
    ['a wrong shutdownHooksWarning', { shutdownHooksWarning: 0 }, InvalidOptionError, 'shutdownHooksWarning }): 0'],
  ])('refuse %s', (_, options, type, message) => {
    expect(() => resolve(options)).toThrow(type);
    expect(() => resolve(options)).toThrow(message);
  });

  it('name the instance in errors, when it has a name', () => {
    expect(() => resolveModuleOptions({ connect: 1 }, 'eu')).toThrow('forRoot({ name: "eu", connect }): 1');
  });
});

describe('a connection', () => {
  it.each([
    ['redis:', 'redis://localhost'],
    ['redis: with credentials and database', 'redis://user:p%40ss@localhost:6379/3'],
    ['rediss:', 'rediss://localhost:6380'],
    ['memory:', 'memory://'],
    ['memory: with a name', 'memory://orders'],
  ])('may be a URL: %s', (_, connection) => {
    expect(resolve({ connection }).connection).toBe(connection);
  });

  it.each([
    ['ioredis options', { host: 'localhost', port: 6379, password: 'secret', tls: {} }],
    ['no options', {}],
    ['a socket', { path: '/tmp/redis.sock' }],
    ['Sentinels', { sentinels: [{ host: 'a', port: 26379 }], name: 'mymaster' }],
    ['a Cluster', { cluster: [{ host: 'a', port: 7000 }], redisOptions: { password: 'secret' } }],
  ])('may be plain: %s', (_, connection) => {
    const resolved = resolve({ connection }).connection;
    expect(resolved).toEqual(connection);
    expect(Object.isFrozen(connection)).toBe(false);
  });

  it.each([
    ['Redis', () => new Redis({ lazyConnect: true })],
    ['Cluster', () => new Cluster(['redis://localhost:7000'], { lazyConnect: true })],
    ['anything of that shape', () => ({ duplicate: () => undefined, options: {} })],
  ])('may be an instance, which stays as it is: %s', (_, make) => {
    const connection = make();
    expect(resolve({ connection }).connection).toBe(connection);
    expect(Object.isFrozen(connection)).toBe(false);
    expect(Object.isFrozen(connection.options)).toBe(false);
    if ('disconnect' in connection) connection.disconnect();
  });

  it.each<[string, unknown, string]>([
    ['null', null, 'neither a URL, nor ioredis options, nor an ioredis instance'],
    ['a number', 6379, 'neither a URL'],
    ['a list', [{ host: 'a' }], 'neither a URL'],
    ['a class instance', new (class Config { host = 'a' })(), 'neither a URL'], // prettier-ignore
    ['empty text', '', 'an empty text instead of a redis://'],
    ['a host', 'localhost:6379', 'text without a scheme'],
    ['a path', '/tmp/redis.sock', 'text without a scheme'],
    ['another scheme', 'http://localhost', 'http:// instead of a redis://, rediss:// or memory:// URL'],
    ['a malformed URL', 'redis://local host', 'a malformed URL'],
    ['a URL whose password has a bare %', 'redis://:100%zz@localhost', 'Write %25 for a %'],
    ['no Sentinels', { sentinels: [], name: 'm' }, '`sentinels`'],
    ['Sentinels without master', { sentinels: [{ host: 'a' }] }, 'goes the `name` of the master'],
    ['no Cluster nodes', { cluster: [] }, '`cluster` must be an array of at least one node'],
    ['one Cluster node without list', { cluster: { host: 'a' } }, '`cluster` must be an array'],
    ['a URL in an object', { url: 'redis://a' }, 'no option `url`; give the URL itself: `connection: url`'],
    ['options of another client', { socket: { host: 'a' } }, 'no option `socket`; `host`, `port`'],
    ['a database by another name', { host: 'a', database: 1 }, 'ioredis calls it `db`'],
    ['Cluster nodes by another name', { rootNodes: ['a'] }, 'go into `cluster`'],
    ['keyPrefix in options', { host: 'a', keyPrefix: 'x:' }, 'keyPrefix is refused'],
    ['keyPrefix in a URL', 'redis://localhost?keyPrefix=x', 'keyPrefix is refused'],
    ['keyPrefix of Cluster nodes', { cluster: ['a'], redisOptions: { keyPrefix: 'x' } }, 'Use the option `prefix`'],
    ['keyPrefix of an instance', { duplicate: () => 1, options: { keyPrefix: 'x' } }, 'keyPrefix is refused'],
    [
      'a client of another package',
      Object.create({ duplicate: () => 1, options: {}, isOpen: true }, { x: { value: 1 } }),
      'nor an ioredis instance',
    ],
  ])('is not %s', (_, connection, message) => {
    expect(() => resolve({ connection })).toThrow(InvalidOptionError);
    expect(() => resolve({ connection })).toThrow(`forRoot({ connection }): `);
    expect(() => resolve({ connection })).toThrow(message);
  });

  it('is never shown when it is refused, because it may hold a password', () => {
    for (const connection of [
      'http://user:secret@localhost',
      'user:secret@localhost:6379',
      `eyJ.secret${'x'.repeat(58)}`,
      'secret.'.repeat(40),
      `${'secret'.repeat(1_000)}://localhost`,
      'redis://user:secret@local host',
      'redis://user:secret%zz@localhost',
      'redis://user:secret@localhost?keyPrefix=x',
      ['secret'],
      { password: 'secret', keyPrefix: 'x' },
      { password: 'secret', cluster: [] },
      { url: 'redis://user:secret@localhost' },
      { host: 'redis://user:secret@localhost' },
      { host: 'user:secret@localhost' },
      { host: new URL('redis://user:secret@localhost') },
      { host: 'localhost', port: 'redis://user:secret@localhost' },
      { port: 'secret' },
      { path: 'redis://user:secret@localhost' },
      { cluster: [{ host: 'redis://user:secret@localhost' }] },
      { cluster: [{ port: 'secret' }] },
      { sentinels: [{ host: 'redis://user:secret@localhost' }], name: 'm' },
      { sentinels: [{ host: 'a' }], name: 'redis://user:secret@localhost' },
      { sentinels: [{ host: 'a' }, 'redis://user:secret@localhost'], name: 'm' },
      'redis://localhost?host=user:secret@localhost',
      { duplicate: () => 1, options: { host: 'redis://user:secret@localhost' } },
      'secret',
    ]) {
      expect(() => resolve({ connection })).toThrow(InvalidOptionError);
      expect(() => resolve({ connection })).toThrow(/^(?!.*secret)/);
    }
  });

  it('may have every host and path that there is', () => {
    for (const connection of [
      { host: '::1' },
      { host: 'fe80::1%eth0', port: '6379' },
      { host: 'redis_1.eu-west.example.com.' },
      { path: '/var/run/redis 7/@redis.sock' },
      { cluster: ['redis://user:password@a:1', 'b', 7000, { host: '::1' }] },
      { sentinels: [{ host: '::1', port: 1 }, {}], name: 'the master @ home' },
    ]) {
      expect(resolve({ connection }).connection).toEqual(connection);
    }
  });

  it.each([
    [
      { host: 'a ' },
      '`connection.host` is no host, which has no blank, / or @. `connection` takes the URL itself, or { host, port, password }.',
    ],
    [{ host: ['a'] }, '`connection.host` is no host'],
    [{ path: 'redis://a' }, '`connection.path` is no path. `connection` takes the URL itself'],
    [
      { cluster: [1, { host: 'a/b' }] },
      '`connection.cluster[1].host` is no host, which has no blank, / or @. Give { host, port }.',
    ],
    [{ sentinels: [{}, 26_379], name: 'm' }, '`connection.sentinels[1]` is no object. Give { host, port }.'],
    [{ sentinels: [['a', 1]], name: 'm' }, '`connection.sentinels[0]` is no object. Give { host, port }.'],
    [{ port: 'redis' }, '`connection.port` is text, and a port is a whole number'],
  ])('is told what it must be: %j', (connection, message) => {
    expect(() => resolve({ connection })).toThrow(`forRoot({ connection }): ${message}`);
  });

  it.each(['redis', 'LOCALHOST', 'valkey', 'redis.internal', 'me:6380', '10.0.0.1'])(
    'is quoted where it is nothing but the name of a host: %s',
    (connection) => expect(() => resolve({ connection })).toThrow(`Write redis://${connection}.`),
  );

  it.each(['S3cr3t', 'my-redis', 'redis1'])('is not quoted where it may be a password as well: %s', (connection) =>
    expect(() => resolve({ connection })).toThrow('Write redis://host:6379.'),
  );
});

describe('a URL with a password that is given to another option', () => {
  const url = 'redis://user:secret@localhost';

  it.each([
    { prefix: url },
    { prefix: `${url}{` },
    { drainTimeout: url },
    { connect: url },
    { consume: url },
    { codec: [{ ...CODEC, name: url }] },
    { durability: url },
    { maxPayloadBytes: url },
    { queues: url },
    { queues: { a: { lease: `  ${url}` } } },
    { defaults: { backoff: `secret ${url}` } },
    { [url]: 1 },
  ])('is shown up to its scheme: %j', (options) => {
    expect(() => resolve(options)).toThrow(/"redis:\/\/…"/);
    expect(() => resolve(options)).toThrow(/^(?!.*secret)/);
  });

  it.each([url, 'user:secret@localhost', { defaults: url }, { defaults: 'secret' }, { deadLetters: url }])(
    'or stands in the place of all options, is not shown: %j',
    (options) => {
      expect(() => resolve(options)).toThrow('options must be a plain object, but are text.');
      expect(() => resolve(options)).toThrow(/^(?!.*secret)/);
    },
  );
});

describe('the settings of a handler', () => {
  const settings = (
    levels: { defaults?: QueueDefaults; definition?: QueueDefaults; handler?: unknown; queue?: QueueDefaults } = {},
  ) =>
    resolveHandlerSettings({
      queue: 'payment.check',
      handlerOptions: levels.handler,
      definition: levels.definition && defineQueue('payment.check', levels.definition),
      module: resolve({ defaults: levels.defaults, queues: levels.queue && { 'payment.check': levels.queue } }),
      source: 'PaymentsHandlers.check',
    });

  it('are those of the library when nobody says anything', () => {
    expect(settings()).toEqual({
      concurrency: 10,
      prefetch: true,
      leaseMs: 30_000,
      attempts: 10,
      backoff: exponential('1s', { max: '1h', jitter: 0.2 }),
      timeoutMs: undefined,
      retryIf: undefined,
      batch: undefined,
      middleware: [],
    });
    expect(Object.isFrozen(settings())).toBe(true);
  });

  const option = (
    n: number,
  ): Required<
    Pick<QueueDefaults, 'concurrency' | 'prefetch' | 'lease' | 'attempts' | 'backoff' | 'timeout' | 'keepCompleted'>
  > => ({
    concurrency: n,
    prefetch: n % 2 === 0,
    lease: n * 1000,
    attempts: n,
    backoff: fixed(n),
    timeout: n,
    keepCompleted: { count: n, age: n },
  });
  const result = (n: number) => ({
    concurrency: n,
    prefetch: n % 2 === 0,
    leaseMs: n * 1000,
    attempts: n,
    backoff: fixed(n),
    timeoutMs: n,
    keepCompleted: { count: n, ageMs: n },
  });

  it.each([
    ['defaults beat the library', { defaults: option(1) }, 1],
    ['the definition beats defaults', { defaults: option(1), definition: option(2) }, 2],
    ['@OnDelayed beats the definition', { defaults: option(1), definition: option(2), handler: option(3) }, 3],
    [
      'queues[name] beats @OnDelayed',
      { defaults: option(1), definition: option(2), handler: option(3), queue: option(4) },
      4,
    ],
  ])('%s', (_, levels, winner) => {
    expect(settings(levels)).toMatchObject(result(winner));
  });

  it('come from several levels, each option for itself', () => {
    expect(
      settings({
        defaults: { attempts: 1, timeout: 1 },
        definition: { concurrency: 2 },
        handler: { lease: '3s', attempts: undefined },
        queue: { backoff: steps([4]) },
      }),
    ).toMatchObject({ attempts: 1, timeoutMs: 1, concurrency: 2, leaseMs: 3000, backoff: steps([4]) });
  });

  it('keep no completed jobs unless that is said; false takes it back, and gaps are filled', () => {
    const kept = (levels: Parameters<typeof settings>[0]) => settings(levels).keepCompleted;
    expect(kept({})).toBeUndefined();
    expect(kept({ defaults: { keepCompleted: {} } })).toEqual({ count: 1_000, ageMs: 7 * 86_400_000 });
    expect(kept({ handler: { keepCompleted: { age: '1h' } } })).toEqual({ count: 1_000, ageMs: 3_600_000 });
    expect(kept({ defaults: { keepCompleted: {} }, queue: { keepCompleted: false } })).toBeUndefined();
  });

  it('may have functions for backoff and retryIf', () => {
    const backoff = () => 5;
    const retryIf = () => false;
    expect(settings({ defaults: { backoff: fixed(1) }, handler: { backoff, retryIf } })).toMatchObject({
      backoff,
      retryIf,
    });
    expect(settings({ handler: { backoff }, queue: { backoff: fixed(1) } }).backoff).toEqual(fixed(1));
  });

  it('ignore what is said of other queues', () => {
    const module = resolve({ queues: { other: { attempts: 1 } } });
    for (const queue of ['payment.check', 'constructor', '__proto__']) {
      const { attempts } = resolveHandlerSettings({ queue, handlerOptions: {}, module, source: 'A.b' });
      expect(attempts).toBe(10);
    }
  });

  it('accept every option that a handler may have', () => {
    const all: Required<HandlerOptions> = {
      ...option(5),
      instance: 'eu',
      retryIf: () => true,
      middleware: [],
      batch: { size: 2, wait: '1s' },
      repeat: { cron: '0 9 * * *', timeZone: 'Europe/Berlin' },
      globalConcurrency: 6,
      rateLimit: { max: 7, per: '1m' },
      groups: { concurrency: 1, rateLimit: { max: 2, per: '1s' } },
      priorityStep: '30s',
    };
    expect(settings({ handler: all })).toMatchObject({
      ...result(5),
      batch: { size: 2, waitMs: 1000 },
      limits: {
        concurrency: 6,
        rate: { max: 7, perMs: 60_000 },
        groupConcurrency: 1,
        groupRate: { max: 2, perMs: 1_000 },
        stepMs: 30_000,
      },
    });
  });

  it.each<[string, unknown, new (message: string) => Error, string]>([
    [
      'a misspelt option',
      { concurency: 5 },
      InvalidOptionError,
      '"concurency". The nearest known one is "concurrency"',
    ],
    ['an option of jobs', { delay: 5 }, InvalidOptionError, 'unknown option "delay"'],
    [
      'a wrong lease',
      { lease: '1ms' },
      InvalidDelayError,
      '@OnDelayed("payment.check", { lease }) on PaymentsHandlers.check: "1ms"',
    ],
    ['a wrong concurrency', { concurrency: 0 }, InvalidOptionError, '{ concurrency }) on PaymentsHandlers.check: 0'],
    ['a wrong backoff', { backoff: '1s' }, InvalidOptionError, '"1s" is not a backoff'],
    [
      'a wrong retryIf',
      { retryIf: true },
      InvalidOptionError,
      '{ retryIf }) on PaymentsHandlers.check: true is not a function',
    ],
    [
      'a batch without size',
      { batch: {} },
      InvalidOptionError,
      '{ batch }) on PaymentsHandlers.check: `size` is missing',
    ],
    ['no batch', { batch: true }, InvalidOptionError, '{ batch }) on PaymentsHandlers.check'],
    ['an empty batch', { batch: { size: 0 } }, InvalidOptionError, 'PaymentsHandlers.check: size: 0 is not'],
    ['a batch that is too large', { batch: { size: 201 } }, InvalidOptionError, 'from 1 to 200'],
    [
      'a misspelt option of a batch',
      { batch: { size: 1, wiat: 1 } },
      InvalidOptionError,
      'nearest known one is "wait"',
    ],
    ['a batch that waits too long', { batch: { size: 1, wait: '2h' } }, InvalidDelayError, 'too long'],
    [
      'more jobs in batches than a process may hold',
      { batch: { size: 200 }, concurrency: 51 },
      InvalidOptionError,
      '51 batches of 200 are 10200 jobs at a time, and 10000 is the most',
    ],
    [
      'keepCompleted as a number',
      { keepCompleted: 5 },
      InvalidOptionError,
      'options must be a plain object, but are 5',
    ],
    [
      'no completed jobs to keep',
      { keepCompleted: { count: 0 } },
      InvalidOptionError,
      '{ keepCompleted }) on PaymentsHandlers.check.count: 0',
    ],
    ['an empty instance', { instance: '' }, InvalidOptionError, '"" is not the name of an instance'],
    [
      'a number',
      5,
      InvalidOptionError,
      '@OnDelayed("payment.check", { ... }) on PaymentsHandlers.check: options must be',
    ],
  ])('refuse %s, naming class and method', (_, handler, type, message) => {
    expect(() => settings({ handler })).toThrow(type);
    expect(() => settings({ handler })).toThrow(message);
  });

  it('name in errors whatever else registered the handler', () => {
    const register = () =>
      resolveHandlerSettings({
        queue: 'q',
        handlerOptions: { attempts: 0 },
        module: resolve(),
        source: (name) => `register("q", fn, { ${name} })`,
      });
    expect(register).toThrow('register("q", fn, { attempts }): 0');
  });
});

describe('what a producer adds to a job', () => {
  const module = resolve({
    defaults: { delay: 1, expiresIn: 1, uniqueFor: 1, keepExpired: true, attempts: 3, maxSize: 1000 },
    queues: { operated: { delay: 3 } },
  });

  it('comes from queues[name], then the definition, then defaults', () => {
    const definition = defineQueue('operated', { delay: 2, expiresIn: 2 });
    expect(resolveEnqueueDefaults({ queue: 'operated', definition, module })).toEqual({
      delayMs: 3,
      expiresInMs: 2,
      uniqueForMs: 1,
      keepExpired: true,
      maxSize: 1000,
    });
  });

  it('is nothing by default', () => {
    expect(resolveEnqueueDefaults({ queue: 'q', module: resolve() })).toEqual({});
  });
});

const MIDDLEWARE = Object.freeze(() => {});
const CONTEXT_PROVIDER: ContextProvider = { capture: () => undefined, run: (_, next) => next() };

const FULL: DelayQueueModuleOptions = {
  middleware: [MIDDLEWARE],
  contextProvider: CONTEXT_PROVIDER,
  connection: 'rediss://user:password@redis.example.com:6380/2',
  prefix: 'shop:dq',
  defaults: { attempts: 3, backoff: fixed('1s'), lease: '1m', timeout: '1m' },
  queues: { 'payment.check': { concurrency: 2, delay: '1s', shards: 8 }, constructor: {} } as Record<
    string,
    QueueDefaults
  >,
  consume: ['payment.check', defineQueue('mail')],
  drainTimeout: 0,
  connectTimeout: '1s',
  commandTimeout: '2s',
  connect: 'lazy',
  startupChecks: 'off',
  durability: { replicas: 2, timeout: 500 },
  codec: [CODEC, 'json'],
  compressAbove: 4096,
  maxPayloadBytes: 1000,
  deadLetters: { max: 10, maxAge: '1d' },
  globalEnhancers: 'all',
  strictQueues: true,
  shutdownHooksWarning: false,
};

function expectFrozen(value: object): void {
  for (const part of Object.values(value)) {
    if (typeof part !== 'object' || part === null) continue;
    expect(Object.isFrozen(part)).toBe(true);
    expectFrozen(part);
  }
}

describe('forRoot() and forFeature()', () => {
  it.each([null, 5, 'redis://a', true, [], new Map(), new Date()])(
    'crashed on options that are none, or took them for the defaults: %p',
    (options) => {
      expect(() => DelayQueueModule.forRoot(options as never)).toThrow(InvalidOptionError);
      expect(() => DelayQueueModule.forRootAsync(options as never)).toThrow(InvalidOptionError);
    },
  );

  it('took anything for isGlobal', () => {
    expect(() => DelayQueueModule.forRoot({ isGlobal: 'no' as never })).toThrow('isGlobal');
  });

  it.each(['a\nb', '\x1b[2J', 'x'.repeat(65), ' eu', 'redis://:secret@host'])(
    'took an instance name that breaks lines of the log, or shows a password there: %j',
    (name) => {
      expect(() => DelayQueueModule.forRoot({ name })).toThrow(InvalidOptionError);
    },
  );

  it.each([null, 5, Symbol('eu'), ''])('crashed on an instance that is no name: %p', (instance) => {
    expect(() => DelayQueueModule.forFeature([defineQueue('mail')], instance as never)).toThrow(InvalidOptionError);
  });

  it('crashed on an instance of ioredis without options', () => {
    const connection = { duplicate: () => undefined, options: null };
    expect(() => resolveModuleOptions({ connection }, 'default')).toThrow(InvalidOptionError);
  });
});
