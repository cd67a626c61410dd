import { Catch, DefaultValuePipe, Injectable, Module, UseGuards } from '@nestjs/common';
import type { Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Registry } from 'prom-client';
import { existsSync, readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  BatchJob,
  defineQueue,
  DelayedJob,
  DelayQueueConsumer,
  DelayQueueHealth,
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  DelayQueueRegistry,
  getDelayQueueToken,
  getQueueToken,
  Job,
  JobPayload,
  OnDelayed,
  SnoozeJob,
} from '../../lib/index.js';
import type { ConnectionOption } from '../../lib/index.js';
import { serviceName } from '../../lib/instance/service-names.js';
import { watchForRoot } from '../../lib/handlers/decorated-classes.js';
import { DelayQueueDashboardModule } from '../../lib/dashboard/index.js';
import { DelayQueueMetricsModule } from '../../lib/metrics/index.js';
import { DelayQueueOtelMetricsModule } from '../../lib/otel-metrics/index.js';
import { DelayQueueHarness, DelayQueueTestingModule } from '../../lib/testing/index.js';
import { handlerClass } from '../helpers/app.js';
import { eventually } from '../helpers/eventually.js';
import { relayClass } from '../helpers/relaying.js';
import { Beginner, decorate, enqueue, handlers, memoryRoot, Orders, payments } from '../helpers/making-mistakes.js';
import type { Mistake } from '../helpers/making-mistakes.js';

// What somebody gets to read who makes a mistake that was seen to be made: the very text, which says what to do.

const env = process.env['NODE_ENV'];
afterEach(() => void (process.env['NODE_ENV'] = env));

const MODULE: Mistake[] = [
  {
    mistake: 'DelayQueueModule is imported without forRoot()',
    make: (me) => me.boot({ imports: [DelayQueueModule] }),
    says: 'imports: [DelayQueueModule] alone starts nothing. Import DelayQueueModule.forRoot({ connection }) in the root module.',
  },
  {
    mistake: 'DelayQueueMetricsModule is imported without forRoot()',
    make: (me) => me.start({ imports: [DelayQueueMetricsModule] }),
    says: 'imports: [DelayQueueMetricsModule] alone measures nothing. Import DelayQueueMetricsModule.forRoot() in the root module.',
  },
  {
    mistake: 'DelayQueueOtelMetricsModule is imported without forRoot()',
    make: (me) => me.start({ imports: [DelayQueueOtelMetricsModule] }),
    says: 'imports: [DelayQueueOtelMetricsModule] alone measures nothing. Import DelayQueueOtelMetricsModule.forRoot() in the root module.',
  },
  {
    mistake: 'DelayQueueDashboardModule is imported without forRoot()',
    make: (me) => me.start({ imports: [DelayQueueDashboardModule] }),
    says: 'imports: [DelayQueueDashboardModule] alone shows nothing. Import DelayQueueDashboardModule.forRoot({ path, guards }) in the root module.',
  },
  ...[DelayQueueProducer, DelayQueueInspector, DelayQueueConsumer, DelayQueueRegistry, DelayQueueHealth].flatMap(
    (service): Mistake[] => {
      const name = serviceName(service);
      const says =
        `${name} stands in the \`providers\` or \`imports\` of a module. Remove it there, and import ` +
        'DelayQueueModule.forRoot() in the root module, which makes it injectable everywhere.';
      const named = service as unknown as Type;
      return [
        { mistake: `${name} in providers`, make: (me) => me.boot({ providers: [named] }), says },
        {
          mistake: `${name} in providers beside forRoot()`,
          make: (me) => me.start({ providers: [named] }),
          says,
        },
        { mistake: `${name} in imports`, make: (me) => me.boot({ imports: [named] }), says },
      ];
    },
  ),
  {
    mistake: 'a name one letter off in queues',
    make: (me) =>
      me.start({ providers: [handlers('A', 'payment.check')] }, { queues: { 'payment.chek': { attempts: 1 } } }),
    says: 'forRoot({ queues }): nothing here handles or defines queue "payment.chek", but there is "payment.check", which has no entry. If both exist, give "payment.check" one as well, {} will do; then this is not said.',
  },
  {
    mistake: 'the same beside a definition',
    make: (me) =>
      me.start({ imports: [DelayQueueModule.forFeature([payments])] }, { queues: { 'payment.chek': { attempts: 1 } } }),
    says: 'nothing here handles or defines queue "payment.chek", but there is "payment.check"',
  },
  {
    mistake: 'a name one letter off in consume',
    make: (me) => me.start({ providers: [handlers('A', 'payment.check')] }, { consume: ['payment.chek'] }),
    says: 'forRoot({ consume }): no handler here is for queue "payment.chek", but there is one for "payment.check", which the list leaves out. Correct the name, or remove it from the list.',
  },
  {
    mistake: 'a handler without the instance that enqueues',
    make: async (me) => {
      const app = await twoInstances(me, handlers('A', 'd.q'));
      await app.get<DelayQueueProducer>(getDelayQueueToken('eu')).enqueue('d.q', {});
    },
    says: 'enqueue(queue): queue "d.q" of instance "eu" has no handler here, but on the unnamed one there is A.run, which gets none of these jobs. Give that handler `instance: "eu"`, or enqueue on the unnamed one. If another process handles them, name the queue in `queues` of this forRoot(); then this is not said.',
  },
  {
    mistake: 'a handler of an instance, and the producer of the unnamed one, with a definition',
    make: async (me) => {
      const app = await twoInstances(me, handlers('A', 'payment.check', { instance: 'eu' }));
      await app.get(DelayQueueProducer).enqueue(payments, { paymentId: 'A' });
    },
    says: 'enqueue(queue): queue "payment.check" of the unnamed instance has no handler here, but on "eu" there is A.run, which gets none of these jobs. Leave `instance` out there, or enqueue by @InjectDelayQueue("eu"). If',
  },
  {
    mistake: 'forRoot() twice',
    make: (me) => me.boot({ imports: [memoryRoot(), memoryRoot()] }),
    says: 'DelayQueueModule.forRoot() is imported twice without a name. Import it once, in the root module (it is global), or give the second one another `name`.',
  },
  {
    mistake: 'forFeature() without forRoot()',
    make: (me) => me.boot({ imports: [DelayQueueModule.forFeature([payments])] }),
    says: 'forFeature([payment.check]): no DelayQueueModule.forRoot() declares instance "default". Declared: none. Import DelayQueueModule.forRoot() in the root module.',
  },
  {
    mistake: 'forFeature() for an instance that there is not',
    make: (me) => me.start({ imports: [DelayQueueModule.forFeature([payments], 'uk')] }),
    says: 'forFeature([payment.check]): no DelayQueueModule.forRoot() declares instance "uk". Declared: "default". Name one of these, or import DelayQueueModule.forRoot({ name: "uk" }) in the root module.',
  },
  {
    mistake: 'a handler for an instance that there is not',
    make: (me) => me.start({ providers: [handlers('A', 'd.q', { instance: 'uk' })] }),
    says: '@OnDelayed on A.run: no DelayQueueModule.forRoot() declares instance "uk". Declared: "default". Name one of these, or import DelayQueueModule.forRoot({ name: "uk" }) in the root module.',
  },
  {
    mistake: 'a name inside the factory of forRootAsync()',
    make: (me) =>
      me.boot({ imports: [DelayQueueModule.forRootAsync({ useFactory: () => ({ name: 'uk' }) as object })] }),
    says: 'forRoot({ ... }): `name` must be known before the factory runs. Give it beside the factory: forRootAsync({ name, useFactory }).',
  },
  {
    mistake: 'a misspelt option',
    make: (me) => me.start({}, { drainTimout: 1 } as object),
    says: 'forRoot({ ... }): unknown option "drainTimout". The nearest known one is "drainTimeout". Known: ',
  },
  {
    mistake: 'consume with one name instead of a list',
    make: (me) => me.start({}, { consume: 'd.q' } as never),
    says: 'forRoot({ consume }): "d.q" is neither true, false, nor a list of queues such as [\'mail.send\'].',
  },
  {
    mistake: 'memory:// in production',
    make: (me) => {
      process.env['NODE_ENV'] = 'production';
      return me.start();
    },
    says: 'memory:// keeps jobs in this process only, and NODE_ENV is production: they are gone with it, and no other process sees them. Set `connection` of forRoot() to the URL of a Redis.',
  },
  {
    mistake: 'a connection as { url }',
    make: (me) => me.start({}, { connection: { url: 'redis://a' } as object }),
    says: 'forRoot({ connection }): ioredis has no option `url`; give the URL itself: `connection: url`.',
  },
  {
    mistake: 'a misspelt option of the connection',
    make: (me) => me.start({}, { connection: { hots: 'redis' } as object }),
    says: 'forRoot({ connection }): ioredis has no option `hots`, and would connect without it. Is it `host`?',
  },
  {
    mistake: 'a connection without a scheme',
    make: (me) => me.start({}, { connection: 'localhost:6379' }),
    says: 'forRoot({ connection }): text without a scheme instead of a redis://, rediss:// or memory:// URL. Write redis://localhost:6379.',
  },
  ...(
    [
      [
        'from a variable that is not set',
        'undefined',
        'If it comes from an environment variable, look whether that is set.',
      ],
      ['in quotes', '"redis://localhost:6379"', 'Leave out the blanks or quotes around it.'],
      ['behind a blank', ' redis://localhost:6379', 'Leave out the blanks or quotes around it.'],
      ['of a socket', '/var/run/redis.sock', 'For the socket of a server on this machine give { path }.'],
      [
        'of a socket as a URL',
        'redis:///var/run/redis.sock',
        'the URL has no host. For the socket of a server on this machine give { path }.',
      ],
    ] as const
  ).map(([what, connection, says]) => ({
    mistake: `a connection ${what}`,
    make: (me: Beginner) => me.start({}, { connection: connection as ConnectionOption }),
    says,
  })),
  {
    mistake: 'a class for the options without its method',
    make: (me) => me.boot({ imports: [DelayQueueModule.forRootAsync({ useClass: class Settings {} as never })] }),
    says: 'forRootAsync(): Settings has no method createDelayQueueOptions(), by which useClass and useExisting give the options.',
  },
  {
    mistake: 'the module of a test in place of its builder',
    make: async () => DelayQueueTestingModule.override((await Test.createTestingModule({}).compile()) as never),
    says: 'DelayQueueTestingModule.override(builder): give the builder that Test.createTestingModule() returns, before compile().',
  },
  {
    mistake: 'a connection without a scheme, but perhaps with a password',
    make: (me) => me.start({}, { connection: 'me:geheim@redis' }),
    says: 'text without a scheme instead of a redis://, rediss:// or memory:// URL. Write redis://host:6379.',
  },
  {
    mistake: 'a URL as the host of a connection',
    make: (me) => me.start({}, { connection: { host: 'redis://me:geheim@redis' } }),
    says: 'forRoot({ connection }): `connection.host` is no host, which has no blank, / or @. `connection` takes the URL itself, or { host, port, password }.',
  },
  {
    mistake: 'Sentinels that are no objects',
    make: (me) => me.start({}, { connection: { sentinels: ['redis://redis:26379'], name: 'jobs' } as object }),
    says: 'forRoot({ connection }): `connection.sentinels[0]` is no object. Give { host, port }.',
  },
  ...(
    [
      ['as the number of a database', { db: 'geheim' }],
      ['as the database in a URL', 'redis://redis/geheim'],
    ] as const
  ).map(([what, connection]) => ({
    mistake: `text ${what}`,
    make: (me: Beginner) => me.start({}, { connection: connection as ConnectionOption }),
    says: 'forRoot({ connection }): text is no database. Give its number, as in redis://host:6379/2.',
  })),
  {
    mistake: 'a connection that is empty',
    make: (me) => me.start({}, { connection: '' }),
    says: 'forRoot({ connection }): an empty text instead of a redis://, rediss:// or memory:// URL. If it comes from an environment variable, look whether that is set.',
  },
  ...[6379, null].map((connection) => ({
    mistake: `a connection that is ${connection}`,
    make: (me: Beginner) => me.start({}, { connection: connection as never }),
    says: "forRoot({ connection }): is neither a URL, nor ioredis options, nor an ioredis instance. Write 'redis://host:6379' or { host, port }; if it comes from an environment variable, look whether that is set.",
  })),
  ...(
    [
      ['a variable that is not set', { host: 'redis', port: Number(undefined) }, '`connection.port` is NaN'],
      ['a digit too many', { port: 63_790 * 10 }, '`connection.port` is 637900'],
      ['0 in a URL', 'redis://redis:0', '`connection.port` is "0"'],
      ['a node of a Cluster', { cluster: [7000, { port: NaN }] }, '`connection.cluster[1].port` is NaN'],
      ['a node that is a number', { cluster: [74_111] }, '`connection.cluster[0]` is 74111'],
      ['a Sentinel', { sentinels: [{ port: NaN }], name: 'jobs' }, '`connection.sentinels[0].port` is NaN'],
    ] as const
  ).flatMap(([what, connection, says]) =>
    (['eager', 'lazy'] as const).map((connect) => ({
      mistake: `a port that is none, ${connect}: ${what}`,
      make: (me: Beginner) => me.start({}, { connection: connection as ConnectionOption, connect }),
      says: `forRoot({ connection }): ${says}, and a port is a whole number from 1 to 65535. Leave it out for 6379; if it comes from an environment variable, look whether that is set.`,
    })),
  ),
  ...(
    [
      ['an object', { host: undefined, port: 1 }, 'connection.host'],
      ['an empty text', { host: '', port: 1 }, 'connection.host'],
      ['a Sentinel', { sentinels: [{ host: undefined, port: 1 }], name: 'jobs' }, 'connection.sentinels[0].host'],
      [
        'a node of a Cluster',
        {
          cluster: [
            { host: 'a', port: 1 },
            { host: '', port: 1 },
          ],
        },
        'connection.cluster[1].host',
      ],
      ['the whole connection', undefined, 'connection'],
    ] as const
  ).map(([what, connection, place]) => ({
    mistake: `a host from a variable that is not set: ${what}`,
    make: (me: Beginner) =>
      me.start({}, { connection: connection as unknown as ConnectionOption, connect: 'lazy', startupChecks: 'off' }),
    says: `forRoot({ connection }): \`${place}\` has no value, so Redis is looked for on localhost. If it comes from an environment variable, look whether that is set; if localhost is meant, write it there, and this is not said.`,
  })),
  ...(
    [
      [
        'forTest()',
        {},
        () => DelayQueueTestingModule.forTest(),
        'forTest() makes the unnamed instance',
        '',
        'a store in memory',
      ],
      [
        'forRedis()',
        { name: 'eu' },
        () => DelayQueueTestingModule.forRedis('redis://localhost:1', { name: 'eu' }),
        'forRedis() makes instance "eu"',
        ", { instance: 'eu', redis }",
        'that Redis',
      ],
    ] as const
  ).flatMap(([what, options, other, says, second, where]) =>
    [true, false].map((isFirst) => ({
      mistake: `${what} ${isFirst ? 'before' : 'behind'} forRoot()`,
      make: (me: Beginner) =>
        me.boot({ imports: isFirst ? [other(), memoryRoot(options)] : [memoryRoot(options), other()] }),
      says: `DelayQueueTestingModule.${says}, and so does DelayQueueModule.forRoot() of the modules under test. Remove ${what} from imports, and give the builder to DelayQueueTestingModule.override(builder${second}) before compile(): the options of forRoot() hold then, on ${where}.`,
    })),
  ),
  ...(
    [
      [
        'of a server',
        'redis://:geheim@redis:undefined',
        'a URL whose port is no whole number from 1 to 65535 instead of a',
      ],
      [
        'that is a password without its host',
        'redis://:geheim',
        'a URL whose port is no whole number from 1 to 65535 instead',
      ],
      [
        'of a node of a Cluster',
        { cluster: ['redis:74111'] },
        '`connection.cluster[0]` is a URL whose port is no whole number from 1 to 65535. Give { host, port }.',
      ],
    ] as const
  ).map(([what, connection, says]) => ({
    mistake: `a URL with a port that is none ${what}`,
    make: (me: Beginner) => me.start({}, { connection: connection as ConnectionOption }),
    says: `forRoot({ connection }): ${says}`,
  })),
  ...(
    [
      ['a hash', 'redis://app:ge#heim@redis:6379', '', 'host, username, password'],
      ['a slash', 'redis://app:ge/heim@redis:6379', '', 'host, username, password'],
      ['a question mark', 'redis://app:ge?heim@redis:6379', '', 'host, username, password'],
      [
        'a slash behind digits, which are taken for a port',
        'redis://app:4711/heim@redis:6379',
        '',
        'host, username, password',
      ],
      [
        'a hash, in a node of a Cluster',
        { cluster: ['redis://app:ge#heim@redis'] },
        ' `connection.cluster[0]`:',
        'host, port',
      ],
    ] as const
  ).map(([what, connection, place, instead]) => ({
    mistake: `a password in a URL that has ${what}`,
    make: (me: Beginner) => me.start({}, { connection: connection as ConnectionOption }),
    says: `forRoot({ connection }):${place} the user or the password in the URL has a /, ? or # that ends the host. Write %2F, %3F or %23, or give { ${instead} }.`,
  })),
];

/** The unnamed instance and "eu". */
function twoInstances(me: Beginner, handler: Type, queues = {}, consume = true) {
  return me.start({ imports: [memoryRoot({ name: 'eu', queues, consume })], providers: [handler] });
}

const HANDLERS: Mistake[] = [
  {
    mistake: '@OnDelayed on a class that is no provider',
    make: (me) => {
      process.env['NODE_ENV'] = 'development';
      handlers('Forgotten', 'forgotten.queue');
      return me.start({}, { consume: ['forgotten.queue'] });
    },
    says: "@OnDelayed on Forgotten.run: the class is in no module's providers, so nothing runs these jobs here. Add it to the providers of a module that is not loaded lazily, or leave these queues out of `consume` in forRoot().",
  },
  {
    mistake: 'two handlers of one queue',
    make: (me) => me.start({ providers: [handlers('A', 'd.q'), handlers('B', 'd.q')] }),
    says: 'Queue "d.q" has two handlers: AppModule/A.run and AppModule/B.run. A queue has one. Let one method do both, or give one of them a queue of its own and enqueue to both.',
  },
  {
    mistake: 'one class in two modules',
    make: (me) => {
      const A = handlers('A', 'd.q');
      @Module({ providers: [A] })
      class Other {}
      return me.start({ imports: [Other], providers: [A] });
    },
    says: 'A queue has one. Put A into the providers of one module, and let that module export it.',
  },
  {
    mistake: 'a module with a handler that is imported twice, with other options',
    make: (me) => {
      const A = handlers('A', 'd.q');
      class Mails {}
      Module({ providers: [A] })(Mails);
      const withOption = (value: number) => ({ module: Mails, providers: [{ provide: 'option', useValue: value }] });
      return me.start({ imports: [withOption(1), withOption(2)] });
    },
    says: 'A queue has one. Mails is imported twice with two sets of options, and A is in each: put A into a module that is there once.',
  },
  {
    mistake: 'one class under two tokens',
    make: (me) => {
      const A = handlers('A', 'd.q');
      return me.start({ providers: [A, { provide: 'other', useClass: A }] });
    },
    says: 'provides A under two tokens: use useExisting for one of them.',
  },
  {
    mistake: 'two definitions of one queue, in a handler and at enqueue',
    make: async (me) => {
      class A {
        run() {}
      }
      decorate(A.prototype, 'run', defineQueue('d.q', { attempts: 5 }));
      const producer = await me.producer({}, { providers: [A] });
      for (const _ of [1, 2]) await producer.enqueue(defineQueue('d.q', { attempts: 3, timeout: '1m' }), {});
    },
    says: 'defineQueue("d.q") was called twice with other options: `attempts`, `timeout`. A.run has one, enqueue(queue) the other, and each holds where it is given. Export one and share it.',
  },
  {
    mistake: 'two definitions of one queue, in forFeature() and at enqueue',
    make: async (me) => {
      const imports = [DelayQueueModule.forFeature([payments])];
      await (await me.producer({}, { imports })).enqueue(defineQueue('payment.check', { delay: '5m' }), {});
    },
    says: 'defineQueue("payment.check") was called twice with other options: `delay`. forFeature() has one, enqueue(queue) the other',
  },
  {
    mistake: '@JobPayload() of a property that the payload does not have',
    make: async (me) => {
      class A {
        @OnDelayed('d.q') one(@JobPayload('orderID') _id: unknown) {}
      }
      const providers = [A];
      const imports = [memoryRoot({ name: 'eu' })];
      const producer = await me.producer({}, { providers, imports });
      await producer.enqueue('d.q', { orderId: 'A' });
      await eventually(() => expect(me.warnings).not.toEqual([]));
    },
    says: 'A.one: the payload has no "orderID", so @JobPayload("orderID") gave undefined. Correct the name; if it may be missing, give the parameter a default or a pipe, and this is not said. Said once.',
  },
  {
    mistake: 'a decorator on one of two parameters',
    make: (me) => {
      class A {
        one(_payload: unknown, _job: unknown) {}
      }
      Job()(A.prototype, 'one', 1);
      decorate(A.prototype, 'one', 'd.q');
      return me.start({ providers: [A] });
    },
    says: 'A.one: parameter 0 has no decorator while others have. Give each parameter one, @JobPayload() or @Job(), or remove all and receive (payload, job).',
  },
  {
    mistake: '@OnDelayed(undefined)',
    make: (me) => {
      class A {
        one() {}
      }
      decorate(A.prototype, 'one', undefined);
      return me.start({ providers: [A] });
    },
    says: '@OnDelayed on A.one: undefined is neither a queue name nor made by defineQueue(). If it is imported, look for a circular import.',
  },
  {
    mistake: "the queue's name among the options of @OnDelayed",
    make: (me) => me.start({ providers: [handlers('A', { name: 'd.q', concurrency: 1 } as never)] }),
    says: '@OnDelayed on A.run: an object is neither a queue name nor made by defineQueue(). Options are the second argument, behind the name.',
  },
  {
    mistake: '@OnDelayed on a static method',
    make: () => {
      class A {
        static one() {}
      }
      decorate(A, 'one', 'd.q');
    },
    says: '@OnDelayed on A.one: put it on an instance method.',
  },
  {
    mistake: 'the job before the payload, as in BullMQ',
    make: (me) => {
      class A {
        @OnDelayed('d.q') one(_job: DelayedJob, _payload: unknown) {}
      }
      return me.start({ providers: [A] });
    },
    says: 'A.one: parameter 0 is a DelayedJob, but receives the payload. The order is (payload, job: DelayedJob); in another one each parameter needs @JobPayload() or @Job().',
  },
  {
    mistake: 'the job alone, without @Job()',
    make: (me) => {
      class A {
        @OnDelayed('d.q') one(_job: BatchJob) {}
      }
      return me.start({ providers: [A] });
    },
    says: 'A.one: parameter 0 is a BatchJob, but receives the payload. The order is (payload, job: DelayedJob); in',
  },
  {
    mistake: 'one job in a batch',
    make: (me) => {
      class A {
        @OnDelayed('d.q', { batch: { size: 2 } }) one(_payloads: unknown[], _job: DelayedJob) {}
      }
      return me.start({ providers: [A] });
    },
    says: 'A.one: parameter 1 is one DelayedJob, but receives an array of them, because of `batch`. Write jobs: BatchJob[].',
  },
  {
    mistake: 'one job in a batch, before the payload',
    make: (me) => {
      class A {
        @OnDelayed('d.q', { batch: { size: 2 } }) one(_job: DelayedJob, _payloads: unknown) {}
      }
      return me.start({ providers: [A] });
    },
    says: 'A.one: parameter 0 is a DelayedJob, but receives the payloads. The order is (payloads, jobs: BatchJob[]); in',
  },
  {
    mistake: 'jobs of a batch without a batch',
    make: (me) => {
      class A {
        @OnDelayed('d.q') one(@Job() _jobs: BatchJob[], @JobPayload() _payloads: unknown) {}
      }
      return me.start({ providers: [A] });
    },
    says: 'A.one: parameter 0 is an array, but receives one DelayedJob. Write job: DelayedJob, or give the decorator the option `batch: { size }`.',
  },
  {
    mistake: 'a job of a batch without a batch',
    make: (me) => {
      class A {
        @OnDelayed('d.q') one(_payload: unknown, _job: BatchJob) {}
      }
      return me.start({ providers: [A] });
    },
    says: 'A.one: parameter 1 is a BatchJob, but receives one DelayedJob. Write job: DelayedJob, or give the decorator',
  },
  {
    mistake: '@JobPayload() for the job',
    make: (me) => {
      class A {
        @OnDelayed('d.q') one(@JobPayload() _job: DelayedJob) {}
      }
      return me.start({ providers: [A] });
    },
    says: 'A.one: parameter 0 is a DelayedJob, but receives the payload. The order',
  },
  {
    mistake: 'keepCompleted: true',
    make: (me) => me.start({ providers: [handlers('A', 'd.q', { keepCompleted: true })] }),
    says: '@OnDelayed on A.run: { keepCompleted }: true does not say how many. Use {} or { count, age }.',
  },
  {
    mistake: 'batch: true',
    make: (me) => me.start({ providers: [handlers('A', 'd.q', { batch: true })] }),
    says: '@OnDelayed on A.run: { batch }: true is not an object. Give `batch: { size: 10 }`.',
  },
  {
    mistake: 'batch: 25',
    make: (me) => me.start({ providers: [handlers('A', 'd.q', { batch: 25 })] }),
    says: '@OnDelayed on A.run: { batch }: 25 is not an object. Give `batch: { size: 25 }`.',
  },
  {
    mistake: 'a backoff as BullMQ has it',
    make: (me) => me.start({ providers: [handlers('A', 'd.q', { backoff: { type: 'exponential', delay: 1000 } })] }),
    says: "@OnDelayed on A.run: { backoff }: { type: 'exponential', delay } is not known here. Use exponential(1000), or with options exponential(delay, { max, factor, jitter }).",
  },
  {
    mistake: 'a fixed backoff as number',
    make: (me) => me.start({ providers: [handlers('A', 'd.q', { backoff: 5000 })] }),
    says: '@OnDelayed on A.run: { backoff }: 5000 is not a backoff. Use exponential(), fixed() or steps().',
  },
];

const calling =
  (call: (producer: DelayQueueProducer) => unknown): Mistake['make'] =>
  async (me) =>
    call(await me.producer());

/** Made an hour before 2026-11-23T19:00Z. */
const atNow =
  (make: () => Mistake['make']): Mistake['make'] =>
  async (me) => {
    const now = jest.spyOn(Date, 'now').mockReturnValue(1_795_456_800_000);
    try {
      await make()(me);
    } finally {
      now.mockRestore();
    }
  };

const CALLS: Mistake[] = [
  {
    mistake: 'an instance as an option of enqueue()',
    make: enqueue({}, { instance: 'eu' }),
    says: 'unknown option "instance". Use here: the producer of that instance, which @InjectDelayQueue(name) injects. Known:',
  },
  {
    mistake: "BullMQ's ttl",
    make: enqueue({}, { ttl: 1_000 }),
    says: 'unknown option "ttl". Use here: `timeout` for the longest run; `expiresIn` of enqueue() for how late a job may start. Known:',
  },
  {
    mistake: "BullMQ's opts in an item",
    make: async (me) => (await me.producer()).enqueueMany('d.q', [{ payload: {}, opts: { delay: 1 } } as never]),
    says: 'enqueueMany("d.q", item 0: { ... }): unknown option "opts". Use here: its fields beside the payload. Known:',
  },
  {
    mistake: "BullMQ's names of states",
    make: async (me) => (await me.start()).get(DelayQueueInspector).list('d.q', 'failed' as never),
    says: "list(queue, state): what BullMQ calls 'failed' is 'dead' here.",
  },
  {
    mistake: 'a schema where the options are',
    make: () => defineQueue('d.q', { parse: (value: unknown) => value } as never),
    says: 'defineQueue("d.q", { ... }): unknown option "parse". Use here: `{ schema }` with that schema in it. Known:',
  },
  ...(
    [
      ["'10'", '10', '"10" has no unit'],
      ["'tomorrow'", 'tomorrow', '"tomorrow" is not a duration'],
      ["'2 moons'", '2 moons', '"2 moons" has an unknown unit'],
      ["'5M'", '5M', '"5M" is not a duration: units are lower case'],
      ['NaN', NaN, 'NaN is not a duration'],
      ['a cron expression', '0 7 * * *', '"0 7 * * *" is not a duration: schedule() takes cron'],
    ] as const
  ).map(([what, delay, says]) => ({
    mistake: `delay: ${what}`,
    make: enqueue({}, { delay }),
    says: `enqueue("d.q", { delay }): ${says}. Use ms, or text such as '250ms', '45m', '3h', '1d 2h' or 'PT3H'.`,
  })),
  {
    mistake: "delay: '-5m'",
    make: enqueue({}, { delay: '-5m' }),
    says: 'enqueue("d.q", { delay }): "-5m" is negative. A duration is 0 or more.',
  },
  ...(
    [
      ['a moment in ms', { delay: 1_795_460_400_000 }, 'delay }): 2026-11-23T19:00:00.000Z', '`at`'],
      ['a Date', { delay: new Date(1_795_460_400_000) }, 'delay }): 2026-11-23T19:00:00.000Z', '`at`'],
      ['its expiry', { expiresIn: 1_795_460_400_000 }, 'expiresIn }): 2026-11-23T19:00:00.000Z', '`expiresAt`'],
    ] as const
  ).map(([what, options, place, remedy]) => ({
    mistake: `a moment as duration: ${what}`,
    make: atNow(() => enqueue({}, options)),
    says: `enqueue("d.q", { ${place} is a moment, and not a duration. Give it as ${remedy}.`,
  })),
  {
    mistake: 'a moment in ms to which a job is snoozed',
    make: atNow(() => () => new SnoozeJob(1_795_460_400_000)),
    says: 'new SnoozeJob(delay): 2026-11-23T19:00:00.000Z is a moment, and not a duration. Give the time from now until it.',
  },
  {
    mistake: 'a moment in ms to which a job is rescheduled',
    make: atNow(() => calling((producer) => producer.reschedule('d.q', 'A', { delay: 1_795_460_400_000 }))),
    says: 'reschedule({ delay }): 2026-11-23T19:00:00.000Z is a moment, and not a duration. Give it as `at`.',
  },
  {
    mistake: 'a moment in seconds as delay',
    make: atNow(() => enqueue({}, { delay: 1_795_460_401 })),
    says: 'enqueue("d.q", { delay }): 1795460401 ms are 20 d 19 h; in seconds since 1970 it is 2026-11-23T19:00:01.000Z. If that is meant, give `at: new Date(seconds * 1000)`; if not, give the delay as text, and this is not said. Said once.',
  },
  ...(
    [
      ['a name and data', 'd.q', ['welcome', { to: 'a@b.example' }], 'enqueue("d.q", { ... })'],
      ['a name and a list', 'd.q', ['welcome', [1]], 'enqueue("d.q", { ... })'],
      ['a name, data and options', 'd.q', ['welcome', {}, { delay: '5m' }], 'enqueue(queue, payload, options)'],
    ] as const
  ).map(([what, queue, others, place]) => ({
    mistake: `a job name, as in BullMQ: ${what}`,
    make: calling((producer) => (producer.enqueue as (...all: unknown[]) => unknown).call(producer, queue, ...others)),
    says: `${place}: there are no job names here; what follows the queue is the payload, and then the options. Give each kind of job a queue of its own, or a field of the payload that tells them apart.`,
  })),
  {
    mistake: 'a job name, data and options for the handle of a queue',
    make: async (me) => {
      const app = await me.start({ imports: [DelayQueueModule.forFeature([payments])] });
      const handle = app.get<{ enqueue(...all: unknown[]): unknown }>(getQueueToken(payments));
      await handle.enqueue('check', {}, { delay: '5m' });
    },
    says: 'enqueue(payload, options) of "payment.check": there are no job names here; what follows',
  },
  {
    mistake: 'options where the payload stands',
    make: enqueue({ delay: '5m', id: 'A' }),
    says: 'enqueue("d.q"): the payload has nothing but names of options, and options come third: enqueue(queue, payload, options). If it is the payload, give {} behind it, and this is not said. Said once.',
  },
  {
    mistake: 'no payload',
    make: calling((producer) => (producer.enqueue as (queue: string) => unknown).call(producer, 'd.q')),
    says: 'Queue "d.q": payload is undefined. Send null or {} when there is nothing to say.',
  },
  {
    mistake: 'at in seconds',
    make: enqueue({}, { at: 1_700_000_000 }),
    says: 'enqueue("d.q", { at }): 1700000000 would be 1970-01-20T16:13:20.000Z in milliseconds; in seconds it is 2023-11-14T22:13:20.000Z. Give milliseconds, or a Date.',
  },
  {
    mistake: 'a misspelt option of a call',
    make: enqueue({}, { dealy: 5 }),
    says: 'enqueue("d.q", { ... }): unknown option "dealy". The nearest known one is "delay". Known: ',
  },
  ...(
    [
      ['jobId', '`id`'],
      ['removeOnComplete', 'completed jobs are removed already; `keepCompleted` of a queue or handler keeps some'],
      ['removeOnFail', '`deadLetters: { max, maxAge }` of forRoot() says how many dead letters stay, and for how long'],
      ['repeat', 'schedule() of the producer, or `repeat` of @OnDelayed'],
      ['retries', '`attempts` (the first run counts) and `backoff`'],
    ] as const
  ).map(([option, instead]) => ({
    mistake: `${option} of BullMQ`,
    make: enqueue({}, { [option]: 1 }),
    says: `enqueue("d.q", { ... }): unknown option "${option}". Use here: ${instead}. Known: `,
  })),
  ...(
    [
      ['limiter', '`rateLimit: { max, per }` of a queue'],
      ['redis', '`connection`'],
      ['logger', "app.useLogger(): the library logs by Nest's Logger"],
      ['defaultJobOptions', '`defaults` of forRoot(), or of one queue `queues: { name: { ... } }` or defineQueue()'],
    ] as const
  ).map(([option, instead]) => ({
    mistake: `${option} of BullMQ in forRoot()`,
    make: (me: Beginner) => me.start({}, { [option]: {} }),
    says: `forRoot({ ... }): unknown option "${option}". Use here: ${instead}. Known: `,
  })),
  {
    mistake: 'uniqueFor without an id',
    make: enqueue({}, { uniqueFor: '1h' }),
    says: 'enqueue("d.q", { uniqueFor }) has no effect: without an id each job is a new one. Give `id`, or idFromPayload: true. Said once.',
  },
  ...(
    [
      [
        'at',
        { at: 2e12, expiresAt: 2e12 - 1 },
        'at, expiresAt }): the job would expire at 2033-05-18T03:33:19.999Z, before it is due at 2033-05-18T03:33:20.000Z, and never run. Give a later `expiresAt`, or `expiresIn`, which counts from the due time.',
      ],
      [
        'a local time',
        { at: { local: '2033-05-18T03:33:20', timeZone: 'UTC' }, expiresAt: 2e12 - 1 },
        'at, expiresAt }): the job would expire at 2033-05-18T03:33:19.999Z, before it is due at 2033-05-18T03:33:20.000Z',
      ],
      [
        'delay',
        { delay: '400d', expiresAt: new Date(2e12) },
        'delay, expiresAt }): the job would expire at 2033-05-18T03:33:20.000Z, before it is due at 2034-',
      ],
    ] as const
  ).map(([what, options, says]) => ({
    mistake: `expiresAt before the due time: ${what}`,
    make: async (me: Beginner) => {
      const now = jest.spyOn(Date, 'now').mockReturnValue(2e12 - 60_000);
      try {
        await enqueue({}, options)(me);
      } finally {
        now.mockRestore();
      }
    },
    says: `enqueue("d.q", { ${says}`,
  })),
  {
    mistake: 'expiresAt before the default delay of the queue is over',
    make: async (me) =>
      (await me.producer({ defaults: { delay: '1h' } })).enqueue('d.q', {}, { expiresAt: Date.now() + 1_000 }),
    says: 'enqueue("d.q", { expiresAt }): the job would expire at ',
  },
  {
    mistake: 'maxWait without replace',
    make: enqueue({}, { maxWait: '1h', id: 'A' }),
    says: "enqueue(\"d.q\", { maxWait }) has no effect: with onDuplicate 'keep' no call puts the job off. Use 'replace' or 'reschedule'. Said once.",
  },
  {
    mistake: 'keepExpired of a job that never expires',
    make: enqueue({}, { keepExpired: true }),
    says: 'enqueue("d.q", { keepExpired }) has no effect: the job never expires. Give `expiresIn` or `expiresAt`. Said once.',
  },
  ...(
    [
      ['in forRoot()', { queues: { 'd.q': { keepExpired: true } } }, 'd.q'],
      ['in defineQueue()', {}, defineQueue('d.q', { keepExpired: true })],
    ] as const
  ).map(([where, options, queue]) => ({
    mistake: `keepExpired of a queue whose jobs never expire, ${where}`,
    make: async (me: Beginner) => (await me.producer(options)).enqueue(queue, {}),
    says: 'enqueue("d.q", { keepExpired }) has no effect: the queue has it, but neither the queue nor this job says when it expires. Give `expiresIn`. Said once.',
  })),
  {
    mistake: 'a name one letter off',
    make: async (me) => (await me.producer({ queues: { 'payment.check': {} } })).enqueue('payment.chek', {}),
    says: 'enqueue(queue): nothing here knows queue "payment.chek", but there is "payment.check". If both exist, name this one in forRoot({ queues }) or by defineQueue(); then this is not said. strictQueues: true refuses unknown names.',
  },
  {
    mistake: 'a name with other capitals',
    make: async (me) => (await me.producer({ queues: { 'payment.check': {} } })).enqueue('Payment.Check', {}),
    says: 'enqueue(queue): nothing here knows queue "Payment.Check", but there is "payment.check". If both exist, name this one in forRoot({ queues }) or',
  },
  {
    mistake: 'the same with strictQueues',
    make: async (me) =>
      (await me.producer({ queues: { 'payment.check': {} }, strictQueues: true })).enqueue('payment.hceck', {}),
    says: 'enqueue(queue): "payment.hceck" is neither handled here, nor a definition, nor listed in forRoot({ queues }), which strictQueues asks for. Is it "payment.check"?',
  },
  {
    mistake: 'bare payloads in enqueueMany',
    make: async (me) => (await me.producer()).enqueueMany('d.q', [1] as never),
    says: 'enqueueMany("d.q"): item 0 is 1. Give { payload, ...options }.',
  },
  {
    mistake: 'a bare object in enqueueMany',
    make: async (me) => (await me.producer()).enqueueMany('d.q', [{ payload: 1 }, { to: 'A' }] as never),
    says: 'enqueueMany("d.q"): item 1 has no `payload`. Give { payload, ...options }.',
  },
  {
    mistake: 'an item of addBulk() of BullMQ in enqueueMany',
    make: async (me) => (await me.producer()).enqueueMany('d.q', [{ name: 'A', data: {}, opts: {} }] as never),
    says: 'Give { payload, ...options }. What BullMQ calls `data` is `payload`; `opts` stand beside it.',
  },
  {
    mistake: 'a number as id',
    make: enqueue({}, { id: 42 }),
    says: 'enqueue("d.q", { id }): 42 is not text. Use 1 to 256 printable characters without braces. Use String(id).',
  },
  {
    mistake: 'a payload with a BigInt',
    make: enqueue({ order: { total: 1n } }),
    says: 'Queue "d.q": payload.order.total is a BigInt, which JSON does not know. Send it as text.',
  },
  ...(
    [
      ['NaN', NaN, 'payload.a is NaN, which JSON turns into null. Send null or text.'],
      ['a function', () => 1, 'payload.a is a function, which JSON drops. Send data alone.'],
      [
        'undefined in a list',
        [undefined],
        'payload.a[0] is undefined, which JSON turns into null. Send null or leave it out.',
      ],
      ['a Promise', Promise.resolve(1), 'payload.a is a Promise. Await it first.'],
      ['an Error', new Error('x'), 'payload.a is an Error. Send its message as text.'],
    ] as const
  ).map(([what, a, says]) => ({ mistake: `a payload with ${what}`, make: enqueue({ a }), says })),
  {
    mistake: 'a payload with a cycle',
    make: async (me) => {
      const order: Record<string, unknown> = {};
      await enqueue({ order: Object.assign(order, { order }) })(me);
    },
    says: 'payload.order.order is one of the objects that it is part of: a cycle. Send an id instead.',
  },
  {
    mistake: 'a payload with a Map',
    make: enqueue({ a: new Map() }),
    says: 'payload.a is a Map',
  },
  {
    mistake: 'enqueue after close',
    make: async (me) => {
      const app = await me.start();
      const producer = app.get(DelayQueueProducer);
      await app.close();
      await producer.enqueue('d.q', {}, { id: 'A' });
    },
    says: 'The application was closed: enqueue of "A" (queue "d.q") was not sent. Await such calls before app.close(), or make them in onModuleDestroy().',
  },
  {
    mistake: 'a health threshold as text',
    make: async (me) => {
      const { reasons } = await (await me.start()).get(DelayQueueHealth).check({ lag: '5m' as never });
      throw new Error(reasons.join(' '));
    },
    says: 'health threshold lag: "5m" is no object. Give { degraded: "5m" } or { down: "5m" }.',
  },
  {
    mistake: 'a harness before init() or for an instance that there is not',
    make: async (me) => DelayQueueHarness.of(await me.start(), { instance: 'uk' }),
    says: 'DelayQueueHarness.of(app): no DelayQueueModule.forRoot() declares instance "uk". Declared: "default". Name one of these, or import DelayQueueModule.forRoot({ name: "uk" }) in the root module.',
  },
];

/** Nest's own words, with what the library adds to them. */
const INJECTION: Mistake[] = [
  {
    mistake: 'the token of a client that nothing provides',
    make: (me) => me.start({ providers: [relayClass('d.q', { client: 'ORDER_CLIENT', pattern: 'order' })] }),
    says: 'Symbol(client "ORDER_CLIENT" of @RelayDelayed on Orders.expired)',
  },
  {
    mistake: '@InjectQueue without forFeature()',
    make: (me) => me.start({ providers: [{ provide: 'x', useFactory: () => 1, inject: [getQueueToken(payments)] }] }),
    says: '(of DelayQueueModule.forFeature([definition]))',
  },
  {
    mistake: '@InjectQueue of an instance without forFeature()',
    make: (me) =>
      me.start({ providers: [{ provide: 'x', useFactory: () => 1, inject: [getQueueToken(payments, 'eu')] }] }),
    says: '(of DelayQueueModule.forFeature([definition], "eu"))',
  },
  {
    mistake: '@InjectDelayQueue of an instance that there is not',
    make: (me) => me.start({ providers: [{ provide: 'x', useFactory: () => 1, inject: [getDelayQueueToken('uk')] }] }),
    says: '(of DelayQueueModule.forRoot({ name: "uk" }), or forRootAsync({ name: "uk", useFactory }), `name` beside the factory)',
  },
];

/** Met by somebody who had read the documentation. */
const FURTHER: Mistake[] = [
  {
    mistake: 'a factory that forgets its return',
    make: (me) => me.boot({ imports: [DelayQueueModule.forRootAsync({ useFactory: () => undefined as never })] }),
    says: 'forRootAsync(): useFactory returned undefined. Return the options; {} means the defaults.',
  },
  {
    mistake: 'a factory that returns null',
    make: (me) => me.boot({ imports: [DelayQueueModule.forRootAsync({ useFactory: () => null as never })] }),
    says: 'forRootAsync(): useFactory returned null. Return the options; {} means the defaults.',
  },
  {
    mistake: 'a class for the options that returns null',
    make: (me) => {
      class Settings {
        createDelayQueueOptions = () => null as never;
      }
      return me.boot({ imports: [DelayQueueModule.forRootAsync({ useClass: Settings })] });
    },
    says: 'forRootAsync(): createDelayQueueOptions() returned null. Return the options; {} means the defaults.',
  },
  {
    mistake: 'a factory that returns the URL',
    make: (me) =>
      me.boot({ imports: [DelayQueueModule.forRootAsync({ useFactory: () => 'redis://:geheim@redis' as never })] }),
    says: 'forRootAsync(), useFactory: options must be a plain object, but are text. Give { connection: url }.',
  },
  {
    mistake: '@InjectQueue of an import that goes in a circle',
    make: () => getQueueToken(undefined as never),
    says: '@InjectQueue(queue): undefined is neither a name nor made by defineQueue(). If it is imported, look for a circular import.',
  },
  {
    mistake: 'forFeature() of an import that goes in a circle',
    make: () => DelayQueueModule.forFeature([undefined as never]),
    says: 'forFeature(definitions): give an array of what defineQueue() made. One of them is undefined: if it is imported, look for a circular import.',
  },
  {
    mistake: 'a handler that is overridden without the decorator',
    make: (me) => {
      class Polite extends (handlers('Plain', 'd.q') as Type<object>) {
        run(): void {}
      }
      return me.start({ providers: [Polite] });
    },
    says: 'Polite.run overrides Plain.run without @OnDelayed, so nothing runs these jobs here. Put the decorator on Polite.run too.',
  },
  {
    mistake: 'times of a schedule beside the options of a handler',
    make: (me) => me.start({ providers: [handlers('A', 'd.q', { cron: '0 9 * * *' })] }),
    says: '@OnDelayed on A.run: { ... }: unknown option "cron". Use here: `repeat: { cron, timeZone }` or `repeat: { every }`.',
  },
  {
    mistake: 'a schedule with a number as id',
    make: calling((producer) => producer.schedule('d.q', 7 as never, { every: '1h' }, {})),
    says: '7 is not text. Use 1 to 200 printable characters without braces. Use String(id).',
  },
  {
    mistake: 'pattern of BullMQ in schedule()',
    make: calling((producer) => producer.schedule('d.q', 's', { pattern: '0 9 * * *' } as never, {})),
    says: 'unknown option "pattern". Use here: `cron`. Known: ',
  },
  {
    mistake: 'tz inside repeat',
    make: (me) => me.start({ providers: [handlers('A', 'd.q', { repeat: { cron: '0 9 * * *', tz: 'UTC' } })] }),
    says: '{ repeat: { ... } }) on A.run: unknown option "tz". Use here: `timeZone`. Known: cron, timeZone, every, payload, ',
  },
  {
    mistake: 'repeat as text',
    make: (me) => me.start({ providers: [handlers('A', 'd.q', { repeat: '0 9 * * *' })] }),
    says: '@OnDelayed on A.run: { repeat }: "0 9 * * *" is not an object. Give { cron, timeZone } or { every }.',
  },
  {
    mistake: 'a middleware that is a class',
    make: (me) => me.start({}, { middleware: [Orders as never] }),
    says: 'forRoot({ middleware }): "Orders" is a class. Give a function (job, next) => ..., as a method of an instance.',
  },
  ...(['onDuplicate', 'onDead'] as const).map((option) => ({
    mistake: `${option} without an id`,
    make: enqueue({}, { [option]: option === 'onDead' ? 'keep' : 'reject' }),
    says: `enqueue("d.q", { ${option} }) has no effect: without an id each job is a new one. Give \`id\`, or idFromPayload: true. Said once.`,
  })),
  {
    mistake: 'a delay in place of the options',
    make: enqueue({}, '10m' as never),
    says: 'enqueue("d.q", { ... }): options must be a plain object, but are "10m". Give { delay: "10m" }.',
  },
  {
    mistake: 'a moment in place of the options',
    make: enqueue({}, new Date(0) as never),
    says: 'Give { at }.',
  },
  {
    mistake: 'a call by id without the queue',
    make: calling((producer) => producer.cancel('A', undefined as never)),
    says: 'cancel(queue, id): undefined is not text. Use 1 to 256 printable characters without braces.',
  },
];

/** Met on the way from another library, or from one form of a call to another. */
const ON_THE_WAY: Mistake[] = [
  {
    mistake: 'a name with two letters off, in two words',
    make: async (me) => (await me.producer({ queues: { 'payment.check': {} } })).enqueue('payments.checks', {}),
    says: 'nothing here knows queue "payments.checks", but there is "payment.check".',
  },
  {
    mistake: 'cancel() with the job',
    make: calling((producer) => producer.cancel('d.q', { id: 'A' } as never)),
    says: 'cancel(queue, id): an object is not text. Use 1 to 256 printable characters without braces. Give the `id` of the job.',
  },
  {
    mistake: 'schedule() without an id',
    make: calling((producer) => producer.schedule('d.q', { cron: '0 9 * * *' } as never, {} as never, {})),
    says: 'schedule(queue, id): the id comes second, as text: schedule(queue, id, times, payload).',
  },
  {
    mistake: 'forRoot() with a URL',
    make: () => DelayQueueModule.forRoot('redis://:geheim@redis' as never),
    says: 'forRoot(options): options must be a plain object, but are text. Give { connection: url }.',
  },
  {
    mistake: 'a URL of a host from a variable that is not set',
    make: (me) => me.start({}, { connection: 'redis://undefined:6379' }),
    says: 'forRoot({ connection }): the host in the URL is "undefined". If it comes from an environment variable, look whether that is set.',
  },
  {
    mistake: 'failNext() of the test kit for a queue without a handler',
    make: async (me) =>
      DelayQueueHarness.of(await me.start({ providers: [handlers('A', 'payment.check')] })).failNext('payment.chek'),
    says: 'failNext(queue): no handler here is for queue "payment.chek". Is it "payment.check"?',
  },
  ...([false, true] as const).map((isGuarded) => ({
    mistake: `a handler that returns an error${isGuarded ? ', behind a guard' : ''}`,
    make: async (me: Beginner) => {
      const run = handlerClass('d.q', () => new Error('no such order'));
      Object.defineProperty(run, 'name', { value: 'A' });
      if (isGuarded) UseGuards({ canActivate: () => true })(run);
      await (await me.producer({}, { providers: [run] })).enqueue('d.q', {});
      await eventually(() => {
        if (me.warnings.length === 0) throw new Error('nothing was said');
      });
    },
    says: 'A.run returned an error, which completes its job. Throw it: then the job is retried. Said once.',
  })),
  {
    mistake: 'UnrecoverableError of BullMQ',
    make: async (me) => {
      class UnrecoverableError extends Error {
        override name = 'UnrecoverableError';
      }
      const run = handlerClass('d.q', () => {
        throw new UnrecoverableError('gone');
      });
      await (await me.producer({}, { providers: [run] })).enqueue('d.q', {});
      await eventually(() => expect(me.warnings).not.toEqual([]));
    },
    says: 'gone. UnrecoverableError is of BullMQ, and retried here: throw DiscardJob to end a job at once. Said once',
  },
];

it('consume: false is told in the log with the handlers that do not run, and of its instance alone', async () => {
  const beginner = new Beginner();
  await beginner.start(
    {
      imports: [memoryRoot({ name: 'eu' })],
      providers: [handlers('A', 'd.q'), handlers('B', 'mail'), handlers('C', 'eu.mail', { instance: 'eu' })],
    },
    { consume: false },
  );
  await beginner.close();
  expect(beginner.lines.filter((line) => line.includes('Not consumed here')).join('\n')).toContain(
    'Not consumed here, because `consume` is false: d.q (A.run), mail (B.run).',
  );
});

it('a job without a group, in a queue whose groups have limits, is told of once and without a warning', async () => {
  const beginner = new Beginner();
  const perTenant = defineQueue<object>('d.defined', { groups: { rateLimit: { max: 1, per: '1s' } } });
  const producer = await beginner.producer({
    queues: { 'd.q': { groups: { concurrency: 1 } }, 'd.all': { globalConcurrency: 1 } },
  });
  for (const queue of ['d.all', 'd.none']) await producer.enqueue(queue, {});
  await producer.enqueue('d.q', {}, { group: 'acme' });
  const told = () => beginner.lines.filter((line) => line.includes('`group`'));
  expect(told()).toEqual([]);
  for (let n = 0; n < 2; n++) {
    await producer.enqueue('d.q', {});
    await producer.enqueue(perTenant, {});
  }
  await beginner.close();
  expect(told()).toEqual(
    ['d.q', 'd.defined'].map(
      (queue) =>
        `log enqueue("${queue}"): this job has no \`group\`, so the limits in \`groups\` of its queue do not hold for it, nor for others without one. Said once. DelayQueue`,
    ),
  );
});

it.each([false, true])('a returned error is told of once, and not in each job (guarded: %s)', async (isGuarded) => {
  const beginner = new Beginner();
  const run = handlerClass('d.q', () => new Error('no such order'));
  if (isGuarded) UseGuards({ canActivate: () => true })(run);
  const app = await beginner.start({ providers: [run] });
  const jobs = DelayQueueHarness.of(app);
  for (let n = 0; n < 3; n++) await app.get(DelayQueueProducer).enqueue('d.q', {}, { delay: '1m' });
  await jobs.advance('1m');
  expect(jobs.runs('d.q')).toHaveLength(3);
  await beginner.close();
  expect(beginner.warnings.filter((line) => line.includes('returned an error'))).toHaveLength(1);
});

it('a queue that differs from a known one by another digit is not said to be misspelt', async () => {
  const beginner = new Beginner();
  const producer = await beginner.producer({ queues: { 'tenant1.order': {} } });
  await producer.enqueue('tenant2.orders', {});
  await beginner.close();
  expect(beginner.warnings).toEqual([]);
});

async function heard({ make }: Mistake): Promise<string[]> {
  const beginner = new Beginner();
  const thrown: string[] = [];
  try {
    await make(beginner);
  } catch (error) {
    thrown.push((error as Error).message);
  } finally {
    await beginner.close();
  }
  return [...thrown, ...beginner.warnings];
}

describe('who makes a mistake reads what to do about it', () => {
  it.each([...MODULE, ...HANDLERS, ...CALLS, ...INJECTION, ...FURTHER, ...ON_THE_WAY])('$mistake', async (row) => {
    expect((await heard(row)).join('\n')).toContain(row.says);
  });
});

it('handlers without any forRoot() in the process are a warning of the process', async () => {
  const emitted: unknown[] = [];
  const emit = jest.spyOn(process, 'emitWarning').mockImplementation((...args) => void emitted.push(args));
  handlers('Alone', 'alone');
  watchForRoot(1);
  await eventually(() => expect(emitted).toHaveLength(1));
  expect(emitted[0]).toEqual([
    expect.stringMatching(
      /^Nothing runs the jobs of .*Alone\.run.*: no DelayQueueModule\.forRoot\(\) was called in this process\. Import it in the root module\.$/,
    ),
    'DelayQueueWarning',
  ]);
  emit.mockRestore();
});

it('a Date in a payload is told of once, because its handler gets a text', async () => {
  const emitted: unknown[] = [];
  const emit = jest.spyOn(process, 'emitWarning').mockImplementation((...args) => void emitted.push(args));
  const beginner = new Beginner();
  const producer = await beginner.producer();
  for (let n = 0; n < 2; n++) await producer.enqueue('d.q', { order: { on: new Date(0) } });
  await beginner.close();
  emit.mockRestore();
  expect(emitted).toEqual([
    [
      'Queue "d.q": payload.order.on is a Date, of which JSON makes a text: that is what handlers get. Send text or a number, or use devalueCodec(), which keeps Dates. Said once.',
      'DelayQueueWarning',
    ],
  ]);
});

describe('an instance in a payload is told of once for its class, because its handler gets the fields alone:', () => {
  class Order {
    constructor(readonly cents: number) {}
    total() {
      return this.cents / 100;
    }
  }
  class Refund extends Order {}
  class Basket {
    #cents = 4711;
    get cents() {
      return this.#cents;
    }
  }
  const says = (path: string, name: string, member: string) => [
    `Queue "d.q": ${path} is of ${name}, of which JSON keeps the fields alone: handlers get a plain object, without ${member}. Send the fields that handlers need; where those alone are meant, give the class a toJSON(), and this is not said. Said once for each class.`,
    'DelayQueueWarning',
  ];
  async function emittedBy(payloads: unknown[]): Promise<unknown[]> {
    const emitted: unknown[] = [];
    const emit = jest.spyOn(process, 'emitWarning').mockImplementation((...args) => void emitted.push(args));
    const beginner = new Beginner();
    const producer = await beginner.producer();
    for (const payload of payloads) await producer.enqueue('d.q', payload);
    await producer.enqueueMany(
      'd.q',
      payloads.map((payload) => ({ payload })),
    );
    await beginner.close();
    emit.mockRestore();
    return emitted;
  }

  it('with a method, inherited methods and a getter, wherever it stands', async () => {
    const anonymous = new (class {
      run() {}
    })();
    const payloads = [
      new Order(4711),
      { list: [{ refund: new Refund(4711) }] },
      { basket: new Basket() },
      { anonymous },
    ];
    expect(await emittedBy(payloads)).toEqual([
      says('payload', 'the class Order', 'total()'),
      says('payload.list[0].refund', 'the class Refund', 'total()'),
      says('payload.basket', 'the class Basket', 'cents'),
      says('payload.anonymous', 'a class without a name', 'run()'),
    ]);
  });

  it('not one that loses nothing, or says what it becomes', async () => {
    class Dto {
      name = 'A';
      readonly lines = [1];
    }
    class Money {
      add() {}
      toJSON() {
        return { cents: 1 };
      }
    }
    const bare = Object.assign(Object.create(null) as object, { a: 1 });
    const foreign: unknown = runInNewContext('({ a: { b: 1 } })');
    const payloads = [new Dto(), { money: new Money() }, bare, foreign, new URL('https://a.b'), { a: new Number(1) }];
    expect(await emittedBy(payloads)).toEqual([]);
  });
});

describe('a handler that means its own job is told once that it changes nothing:', () => {
  const again = "To run it again, throw new SnoozeJob('10m'), or";
  it.each<[string, (producer: DelayQueueProducer) => Promise<{ outcome: string; state?: string | undefined }>, string]>(
    [
      [
        'enqueue() under its id',
        (producer) => producer.enqueue('poll', {}, { id: 'p1', delay: '10m' }),
        `enqueue("poll") under the id of the job whose handler called it made no job: that one still runs, and onDuplicate is 'keep'. ${again} give onDuplicate: 'replace' or 'reschedule'. Said once.`,
      ],
      [
        'one of enqueueMany()',
        async (producer) => (await producer.enqueueMany('poll', [{ payload: {}, id: 'p1' }]))[0]!,
        'enqueue("poll") under the id of the job whose handler called it made no job',
      ],
      [
        'reschedule()',
        (producer) => producer.reschedule('poll', 'p1', { delay: '10m' }),
        `reschedule("poll") of the job whose handler called it changed nothing: a running job stays as it is. ${again} SnoozeJob('10m', { payload }) with another payload. Said once.`,
      ],
      [
        'reschedule() to a local time',
        (producer) => producer.reschedule('poll', 'p1', { at: { local: '2033-05-18T03:33:20', timeZone: 'UTC' } }),
        'reschedule("poll") of the job whose handler called it changed nothing',
      ],
      [
        'update()',
        (producer) => producer.update('poll', 'p1', {}),
        'update("poll") of the job whose handler called it changed nothing',
      ],
      [
        'runNow()',
        (producer) => producer.runNow('poll', 'p1'),
        'runNow("poll") of the job whose handler called it changed nothing',
      ],
    ],
  )('%s', async (_, call, says) => {
    const beginner = new Beginner();
    const answers: unknown[] = [];
    const polls = handlerClass('poll', async () => {
      for (const _ of [1, 2]) answers.push(await call(producer));
    });
    const producer = await beginner.producer({}, { providers: [polls] });
    await producer.enqueue('poll', {}, { id: 'p1' });
    await eventually(() => expect(answers).toHaveLength(2));
    expect(answers[1]).toMatchObject({ state: 'running' });
    expect(beginner.warnings).toEqual([expect.stringContaining(says)]);
    await beginner.close();
  });

  it('not one that means another job, or is not kept', async () => {
    const beginner = new Beginner();
    const answers: unknown[] = [];
    const polls = handlerClass('poll', async (_, job: DelayedJob) => {
      if (job.attempt === 1 && answers.length > 0) return;
      answers.push(await producer.enqueue('poll', {}, { id: 'p2', delay: '10m' }));
      answers.push(await producer.enqueue('other', {}, { id: 'p1' }));
      answers.push(await producer.enqueue('poll', {}, { id: 'p1', delay: '10m', onDuplicate: 'replace' }));
    });
    const producer = await beginner.producer({}, { providers: [polls] });
    await producer.enqueue('poll', {}, { id: 'p1' });
    await eventually(() => expect(answers).toHaveLength(3));
    await eventually(async () => expect(await producer.get('poll', 'p1')).toMatchObject({ state: 'delayed' }));
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });
});

describe('a mistake in the way a job ends', () => {
  it('a SnoozeJob or DiscardJob that is returned instead of thrown means the same', async () => {
    const { DiscardJob } = await import('../../lib/index.js');
    const beginner = new Beginner();
    const returning = handlerClass('snoozes', () => new SnoozeJob('1h'));
    const discarding = handlerClass('discards', async () => new DiscardJob('no such order'));
    const producer = await beginner.producer({}, { providers: [returning, discarding] });
    await producer.enqueue('snoozes', {}, { id: 'A' });
    await producer.enqueue('discards', {}, { id: 'A' });
    await eventually(async () => expect(await producer.get('snoozes', 'A')).toMatchObject({ state: 'delayed' }));
    await eventually(async () =>
      expect(await producer.get('discards', 'A')).toMatchObject({ state: 'dead', deadReason: 'discarded' }),
    );
    await beginner.close();
  });

  it('a guard made for requests, with globalEnhancers all, is named with what to do', async () => {
    @Injectable()
    class JwtGuard {
      canActivate(context: { switchToHttp(): { getRequest(): { headers: { authorization: string } } } }): boolean {
        return context.switchToHttp().getRequest().headers.authorization !== '';
      }
    }
    const beginner = new Beginner();
    const guard = { provide: 'APP_GUARD', useClass: JwtGuard };
    const providers = [handlers('A', 'guarded', { attempts: 1 }), guard];
    const producer = await beginner.producer({ globalEnhancers: 'all' }, { providers });
    await producer.enqueue('guarded', {}, { id: 'A' });
    await eventually(async () => expect(await producer.get('guarded', 'A')).toMatchObject({ state: 'dead' }));
    expect(beginner.warnings.join('\n')).toContain(
      "Guard JwtGuard failed before a handler of queue \"guarded\": TypeError: Cannot read properties of undefined (reading 'authorization'). A job is no request: let the guard return true if isDelayQueueContext(context), or, if it is global, leave it out of jobs by globalEnhancers: 'pipes'. Said once.",
    );
    await beginner.close();
  });

  it('a filter made for requests, with globalEnhancers all, is told of with what to do, and hides nothing', async () => {
    @Catch()
    class HttpFilter {
      catch(_: unknown, host: { switchToHttp(): { getResponse(): { status(code: number): void } } }): void {
        host.switchToHttp().getResponse().status(500);
      }
    }
    const beginner = new Beginner();
    const filter = { provide: 'APP_FILTER', useClass: HttpFilter };
    const fails = handlerClass('filtered', () => Promise.reject(new Error('the real one')), { attempts: 1 });
    const producer = await beginner.producer({ globalEnhancers: 'all' }, { providers: [fails, filter] });
    await producer.enqueue('filtered', {}, { id: 'A' });
    await eventually(async () => expect(await producer.get('filtered', 'A')).toMatchObject({ state: 'dead' }));
    expect(beginner.warnings.join('\n')).toContain(
      'An exception filter failed behind a handler of queue "filtered": TypeError: host.switchToHttp(...).getResponse(...).status is not a function, caused by Error: the real one. A job is no request: let the filter throw what it was given if isDelayQueueContext(host), or, if it is global, leave it out of jobs by globalEnhancers: \'pipes\'. Said once.',
    );
    expect(JSON.stringify(await producer.get('filtered', 'A'))).toContain('the real one');
    await beginner.close();
  });

  it('a guard that answers false is named in the error of the job, and one that throws DiscardJob in no warning', async () => {
    const { DiscardJob } = await import('../../lib/index.js');
    class TenantGuard {
      canActivate(context: { getArgByIndex(index: number): { tenant: string } }): boolean {
        if (context.getArgByIndex(0).tenant === 'gone') throw new DiscardJob('tenant is gone');
        return false;
      }
    }
    const beginner = new Beginner();
    const run = handlers('A', 'guarded', { attempts: 1 });
    UseGuards(new TenantGuard() as never)(run);
    const producer = await beginner.producer({}, { providers: [run] });
    await producer.enqueue('guarded', { tenant: 'a' }, { id: 'A' });
    await producer.enqueue('guarded', { tenant: 'gone' }, { id: 'B' });
    for (const id of ['A', 'B'])
      await eventually(async () => expect(await producer.get('guarded', id)).toMatchObject({ state: 'dead' }));
    expect(await producer.get('guarded', 'B')).toMatchObject({ deadReason: 'discarded' });
    expect((await producer.get('guarded', 'A'))!.lastError!.message).toBe(
      'Guard TenantGuard returned false for a job of queue "guarded", which is retried as after an error. Throw DiscardJob in the guard to end such a job at once; a guard made for requests returns true if isDelayQueueContext(context).',
    );
    expect(beginner.warnings.filter((line) => line.startsWith('Guard '))).toEqual([]);
    await beginner.close();
  });

  it('what is thrown without being an error is named by its content', async () => {
    const beginner = new Beginner();
    const thrown: Record<string, unknown> = { text: 'oops', nothing: undefined, object: { code: 7 } };
    const providers = Object.entries(thrown).map(([queue, value]) =>
      handlerClass(
        queue,
        () => {
          throw value;
        },
        { attempts: 1 },
      ),
    );
    const producer = await beginner.producer({}, { providers });
    for (const queue of Object.keys(thrown)) await producer.enqueue(queue, {}, { id: 'A' });
    const messages: Record<string, unknown> = {};
    for (const queue of Object.keys(thrown)) {
      await eventually(async () => {
        const job = await producer.get(queue, 'A');
        expect(job).toMatchObject({ state: 'dead' });
        messages[queue] = job!.lastError!.message;
      });
    }
    expect(messages).toEqual({
      text: 'oops',
      nothing: 'throw an Error, which says what failed and where',
      object: '{ code: 7 }',
    });
    await beginner.close();
  });
});

describe('no mistake is', () => {
  it('a module without forRoot() where another module has it', async () => {
    const beginner = new Beginner();
    const registry = new Registry();
    const imports = [DelayQueueMetricsModule.forRoot({ registry }), DelayQueueMetricsModule];
    await beginner.start({ imports });
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });

  it('two queues one letter apart that both have an entry, are both consumed, or are not handled here', async () => {
    const beginner = new Beginner();
    const providers = [handlers('A', 'orders'), handlers('B', 'order')];
    await beginner.start({ providers }, { queues: { order: {}, orders: {} }, consume: ['order', 'orders', 'mail'] });
    await beginner.start({ providers: [handlers('A', 'orders')] }, { queues: { order: {}, orders: {}, refund: {} } });
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });

  it('a queue of two instances that one of them handles elsewhere, only enqueues to, or both handle', async () => {
    const beginner = new Beginner();
    const both = [handlers('A', 'd.q'), handlers('B', 'd.q', { instance: 'eu' })];
    const apps = [
      await twoInstances(beginner, handlers('A', 'd.q'), { 'd.q': {} }),
      await twoInstances(beginner, handlers('A', 'd.q'), {}, false),
      await beginner.start({ imports: [memoryRoot({ name: 'eu' })], providers: both }),
    ];
    for (const app of apps) await app.get<DelayQueueProducer>(getDelayQueueToken('eu')).enqueue('d.q', {});
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });

  it('a job where it is decorated, of any type where a batch or one job is received, or that pipes make', async () => {
    class A {
      @OnDelayed('a') alone(@Job() _job: DelayedJob) {}
      @OnDelayed('b') swapped(@Job() _job: DelayedJob, @JobPayload() _payload: unknown) {}
      @OnDelayed('c') list(_payload: string[], _job: DelayedJob) {}
      @OnDelayed('d') loose(_payload: unknown, _job: { id: string }) {}
      @OnDelayed('e') property(@JobPayload('job') _job: DelayedJob) {}
      @OnDelayed('f', { batch: { size: 2 } }) batch(_payloads: unknown[], _jobs: BatchJob[]) {}
      @OnDelayed('g', { batch: { size: 2 } }) jobs(@Job() _jobs: DelayedJob[], @JobPayload() _payloads: unknown) {}
    }
    const beginner = new Beginner();
    await beginner.start({ providers: [A] });
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });

  it('a class with handlers whose subclass is the provider, or whose queue is not consumed here', async () => {
    class Base {
      run() {}
    }
    process.env['NODE_ENV'] = 'development';
    decorate(Base.prototype, 'run', 'inherited');
    class Derived extends Base {}
    class Elsewhere {
      run() {}
    }
    decorate(Elsewhere.prototype, 'run', 'elsewhere');
    const beginner = new Beginner();
    await beginner.start({ providers: [Derived] }, { consume: ['inherited'] });
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });

  it('a queue whose name differs by a digit, is short, or is known here', async () => {
    const beginner = new Beginner();
    const queues = { 'tenant-1': {}, abc: {}, orders: {}, order: {} };
    const producer = await beginner.producer({ queues });
    for (const queue of ['tenant-2', 'abd', 'order', 'orders', 'tenant-1']) await producer.enqueue(queue, {});
    await producer.enqueue(defineQueue('ordes'), {});
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });

  it('an enqueue in a constructor or in onModuleInit', async () => {
    const beginner = new Beginner();
    const made: Promise<unknown>[] = [];
    const early = {
      provide: 'early',
      useFactory: (producer: DelayQueueProducer) => made.push(producer.enqueue('early', {}, { id: 'A' })),
      inject: [DelayQueueProducer],
    };
    await beginner.start({ providers: [early] });
    expect(await Promise.all(made)).toEqual([expect.objectContaining({ outcome: 'created' })]);
    await beginner.close();
  });

  it('an expiry behind the due time, also of a time in the past, and within what the clock of a machine may be wrong', async () => {
    const beginner = new Beginner();
    const producer = await beginner.producer();
    const soon = Date.now() + 1_000;
    await producer.enqueue('d.q', {}, { at: 1.6e12, expiresAt: 1.6e12 });
    await producer.enqueue('d.q', {}, { delay: '30s', expiresAt: soon });
    await producer.enqueue('d.q', {}, { expiresAt: soon - 10 * 60_000 });
    await producer.enqueue('d.q', {}, { delay: '1h', expiresAt: soon, id: 'A', onDuplicate: 'replace', dueAt: 'keep' });
    await producer.enqueue('d.q', {}, { delay: '1h', expiresIn: 1 });
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });

  it('a payload with fields that options have too, a text with options, and a delay of weeks', async () => {
    const beginner = new Beginner();
    const schema = {
      '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) },
    } as const;
    const producer = await beginner.producer();
    for (const payload of [{ id: 'A' }, { id: 'A', group: 'g', priority: 1, timeout: 5 }, { delay: 5, to: 'A' }, {}]) {
      await producer.enqueue('d.q', payload);
    }
    await producer.enqueue('d.q', { delay: '5m' }, {});
    await producer.enqueue(defineQueue('waits', { schema }), { delay: '5m' });
    await producer.enqueue('d.q', 'welcome', { delay: '1h' });
    const day = 86_400_000;
    for (const delay of [20 * day, 21 * day, 40 * 365 * day, '20000d']) await producer.enqueue('d.q', {}, { delay });
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });

  it('a property that may be missing: with a default, with a pipe, or because it was there before', async () => {
    const seen: unknown[] = [];
    class A {
      @OnDelayed('a') a(@JobPayload('note') note: unknown = 'none') {
        seen.push(note);
      }
      @OnDelayed('b') b(@JobPayload('note', new DefaultValuePipe('none')) note: unknown) {
        seen.push(note);
      }
      @OnDelayed('c') c(@JobPayload('note') note: unknown) {
        seen.push(note);
      }
    }
    const beginner = new Beginner();
    const producer = await beginner.producer({}, { providers: [A] });
    const run = async (queue: string, payload: object) => {
      const before = seen.length;
      await producer.enqueue(queue, payload);
      await eventually(() => expect(seen).toHaveLength(before + 1));
    };
    await run('a', {});
    await run('b', {});
    await run('c', { note: 'some' });
    await run('c', {});
    expect(seen).toEqual(['none', 'none', 'some', undefined]);
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });

  it('a definition that is made anew, but is the same', async () => {
    const beginner = new Beginner();
    const made = () => defineQueue('d.q', { attempts: 3, timeout: '1m', id: () => 'A' });
    const producer = await beginner.producer({}, { imports: [DelayQueueModule.forFeature([made()])] });
    for (const _ of [1, 2]) await producer.enqueue(made(), {});
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });

  it('keepExpired of all queues, or where jobs expire', async () => {
    const beginner = new Beginner();
    const kept = { keepExpired: true };
    const queues = { expiring: { ...kept, expiresIn: '1h' }, some: kept };
    const producer = await beginner.producer({ defaults: kept, queues });
    await producer.enqueue('d.q', {});
    await producer.enqueue('expiring', {}, kept);
    await producer.enqueue('some', {}, { expiresAt: Date.now() + 60_000 });
    await producer.enqueue('some', {}, { keepExpired: false });
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });

  it('a connection with a path or a host, and one that is left out', async () => {
    const beginner = new Beginner();
    const lazy = { connect: 'lazy', startupChecks: 'off' } as const;
    await beginner.start({}, { connection: { host: undefined, path: '/nowhere/redis.sock' } as object, ...lazy });
    await beginner.start({}, { connection: { host: 'localhost', password: undefined } as object, ...lazy });
    expect(beginner.warnings.filter((line) => line.includes('has no value'))).toEqual([]);
    await beginner.close();
  });

  it('maxWait with replace, uniqueFor with an id, and a time in the past', async () => {
    const beginner = new Beginner();
    const producer = await beginner.producer();
    await producer.enqueue('d.q', {}, { id: 'A', onDuplicate: 'replace', maxWait: '1h', uniqueFor: '1h' });
    await producer.enqueue('d.q', {}, { at: 1_000_000_000_000 });
    await producer.enqueue('d.q', {}, { at: 5 });
    await producer.enqueue('d.q', {}, { at: new Date(1_700_000_000) });
    expect(beginner.warnings).toEqual([]);
    await beginner.close();
  });
});

/** What only a server, a signal or the rest of the library shows: where it is held. */
const HELD_ELSEWHERE: readonly (readonly [mistake: string, file: string, text: string])[] = [
  ['Redis is down at boot', 'test/integration/faults/boot-without-redis.spec.ts', 'connectTimeout'],
  [
    'a wrong password',
    'test/integration/module/refused-connections.spec.ts',
    'does not accept the user or the password',
  ],
  ['a Cluster that is none', 'test/integration/module/refused-connections.spec.ts', 'is a single server'],
  ['TLS to a plain port', 'test/integration/module/refused-connections.spec.ts', 'speaks no TLS'],
  ['a database that there is not', 'test/integration/module/database.spec.ts', 'database'],
  ['an old Redis', 'test/servers/too-old.spec.ts', 'at least 6.2 is needed'],
  [
    'a Redis that evicts keys',
    'test/integration/module/startup-checks.spec.ts',
    'CONFIG SET maxmemory-policy noeviction',
  ],
  ['no enableShutdownHooks()', 'test/integration/module/startup-checks.spec.ts', 'Nobody listens for SIGTERM'],
  ['forRoot() is not the last import', 'test/integration/module/lifecycle.spec.ts', 'drain before any of them closes'],
  ['a ValidationPipe without metadata', 'test/handlers/validation.spec.ts', 'checks nothing in the payload'],
  [
    'jobs without a handler',
    'test/integration/health/health.spec.ts',
    'no live process claims them. Start one with its handler',
  ],
  ['durability without replicas', 'test/integration/features/durability.spec.ts', 'replicas had it within'],
  ['a handler that ignores its timeout', 'test/integration/faults/timeouts.spec.ts', 'ran on after its timeout'],
  ['handlers that enqueue without end', 'test/integration/features/testing.spec.ts', 'without end'],
  ['Redis is gone while the application runs', 'test/integration/features/logging.spec.ts', 'is back after'],
];

describe('held where a server is', () => {
  it.each(HELD_ELSEWHERE)('%s', (_, file, text) => {
    expect([file, existsSync(file)]).toEqual([file, true]);
    expect([text, readFileSync(file, 'utf8').replaceAll('\\', '').includes(text)]).toEqual([text, true]);
  });
});
