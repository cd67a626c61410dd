import { Catch, Inject, Injectable, Module, Scope, UseFilters, UseGuards, UseInterceptors } from '@nestjs/common';
import { NestFactory, REQUEST } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { DelayQueueModule, DelayQueueProducer, DiscardJob, OnDelayed } from '../../lib/index.js';
import { DelayQueueLogger } from '../../lib/delay-queue.logger.js';
import { InitWatch } from '../../lib/instance/init-watch.js';
import { handlerClass, logCollector } from '../helpers/app.js';
import { endingWithEachTest } from '../helpers/ending.js';
import { eventually } from '../helpers/eventually.js';
import { Beginner, handlers, memoryRoot } from '../helpers/making-mistakes.js';

// What was seen to go wrong without a word: an application that is not begun, a test without a Redis, a zone that was not meant,
// and what was written for requests.

const end = endingWithEachTest();
afterEach(() => void jest.restoreAllMocks());

describe('an application that is created and not initialised', () => {
  const NEVER =
    'Queue "never" was used 5 s ago, and the application is still not initialised, so no job runs here: call and await app.init() or ' +
    'app.listen(). NestFactory.create(), compile() and startAllMicroservices() do not do it.';

  /** Nest has one logger, so what all of them log stands in `lines`. */
  async function created(queue: string, lines: string[], consume = true) {
    @Module({ imports: [memoryRoot({ consume })], providers: [handlers('A', queue)] })
    class AppModule {}
    const app = await NestFactory.create(AppModule, { logger: logCollector(lines) });
    end({ stop: () => app.close() });
    await app.get(DelayQueueProducer).enqueue(queue, {});
    return app;
  }

  it('is told of once it has enqueued and 5 s are over, and one that only enqueues, or is initialised late, is not', async () => {
    const lines: string[] = [];
    await created('only.enqueues', lines, false);
    await (await created('late', lines)).init();
    await created('never', lines);
    await eventually(() => expect(lines.join()).toContain('never'));
    expect(lines.filter((line) => line.startsWith('warn '))).toEqual([`warn ${NEVER} DelayQueue`]);
  });

  it('is told of once, and not while it closes', async () => {
    const logger = DelayQueueLogger.of('default');
    const warn = jest.spyOn(logger, 'warn').mockImplementation(() => undefined);
    const [watch, closing] = [new InitWatch(logger, 1), new InitWatch(logger, 1)];
    closing.sends('closing');
    closing.end();
    for (const queue of ['first', 'second']) watch.sends(queue);
    await eventually(() => expect(warn).toHaveBeenCalled());
    expect(warn.mock.calls.map(([line]) => line)).toEqual([expect.stringMatching(/^Queue "first" was used/)]);
  });
});

it('a test that forgot override() reads of Redis in what its logger shows, which is errors alone', async () => {
  const shown: string[] = [];
  const write = jest.spyOn(process.stderr, 'write').mockImplementation((text) => shown.push(String(text)) > 0);
  const root = DelayQueueModule.forRoot({ connection: 'redis://127.0.0.1:1', connectTimeout: '60s' });
  const app = (await Test.createTestingModule({ imports: [root] }).compile()).createNestApplication();
  const boot = app.init().catch(() => undefined);
  await eventually(() => expect(shown.join('')).not.toBe(''));
  await app.close();
  await boot;
  write.mockRestore();
  expect(shown.join('')).toContain(
    'Redis at 127.0.0.1:1 is not reachable (connect ECONNREFUSED 127.0.0.1:1). Retrying; jobs wait. ' +
      'A test needs none with DelayQueueTestingModule.override(builder) before compile().',
  );
});

describe('a cron expression without a zone, in a process whose clock is not UTC', () => {
  function zone(name: string, offsets: readonly number[]) {
    let at = 0;
    jest.spyOn(Date.prototype, 'getTimezoneOffset').mockImplementation(() => offsets[at++ % offsets.length]!);
    const options = Intl.DateTimeFormat().resolvedOptions();
    jest.spyOn(Intl.DateTimeFormat.prototype, 'resolvedOptions').mockReturnValue({ ...options, timeZone: name });
  }
  const warnings = async (timeZone?: string) => {
    const beginner = new Beginner();
    const repeat = { cron: '0 9 * * *', ...(timeZone && { timeZone }) };
    const app = await beginner.start({
      providers: [handlers('A', 'd.q', { repeat }), handlers('B', 'd.r', { repeat })],
    });
    await app.get(DelayQueueProducer).schedule('d.s', 'acme', repeat, {});
    await beginner.close();
    return beginner.warnings;
  };

  it.each([
    ['east of it', 'Europe/Berlin', [-60, -120]],
    ['that is UTC in winter alone', 'Europe/London', [0, -60]],
  ])('is told of once: %s', async (_, name, offsets) => {
    zone(name, offsets);
    expect(await warnings()).toEqual([
      `@OnDelayed("d.q", { repeat: { timeZone } }) on A.run: none is given, so cron "0 9 * * *" goes by UTC, and not by ${name}, the zone of this process. Give \`timeZone\`; 'UTC' says that it is meant, and this is not said. Said once.`,
    ]);
  });

  it('is not told of where one is given, or the process has UTC', async () => {
    zone('Europe/Berlin', [-60, -120]);
    expect(await warnings('UTC')).toEqual([]);
    jest.restoreAllMocks();
    zone('Etc/UTC', [0]);
    expect(await warnings()).toEqual([]);
  });
});

describe('what was made for requests', () => {
  const dead = (producer: DelayQueueProducer, queue: string) =>
    eventually(async () => expect(await producer.get(queue, 'A')).toMatchObject({ state: 'dead' }));

  @Injectable({ scope: Scope.REQUEST })
  class Tenant {
    readonly name: string;
    constructor(@Inject(REQUEST) request: { headers: Record<string, string>; payload: { discard?: boolean } }) {
      if (request.payload.discard) throw new DiscardJob('pointless');
      this.name = request.headers['x-tenant']!;
    }
  }
  @Injectable()
  class PerJob {
    constructor(@Inject(Tenant) readonly tenant: Tenant) {}
    @OnDelayed('scoped', { attempts: 1 }) run(): void {}
  }

  it('a provider that reads a request is told of once, with what it gets in a job', async () => {
    const beginner = new Beginner();
    const producer = await beginner.producer({}, { providers: [Tenant, PerJob] });
    await producer.enqueue('scoped', { discard: true }, { id: 'A' });
    await dead(producer, 'scoped');
    expect(beginner.warnings.join()).not.toContain('A job is no request');
    await producer.enqueue('scoped', {}, { id: 'A' });
    await producer.enqueue('scoped', {}, { id: 'B' });
    await eventually(async () => expect(await producer.get('scoped', 'B')).toMatchObject({ state: 'dead' }));
    await dead(producer, 'scoped');
    await beginner.close();
    expect(beginner.warnings.filter((line) => line.includes('A job is no request'))).toEqual([
      'What is request-scoped for PerJob.run failed before a handler of queue "scoped": TypeError: Cannot read properties of undefined ' +
        "(reading 'x-tenant'). A job is no request: REQUEST is a DelayQueueRequest there, with `payload` and `job`. Said once.",
    ]);
  });

  it('a guard and a filter that are made anew for each job are told of once, too', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class GuardAnew {
      canActivate(): boolean {
        throw new TypeError('no headers');
      }
    }
    @Catch()
    @Injectable({ scope: Scope.REQUEST })
    class FilterAnew {
      catch(): void {
        throw new TypeError('no response');
      }
    }
    const anew = handlerClass('anew', () => undefined, { attempts: 1 });
    UseGuards(GuardAnew)(anew);
    UseFilters(FilterAnew)(anew);
    const beginner = new Beginner();
    const producer = await beginner.producer({}, { providers: [anew] });
    for (const id of ['B', 'A']) await producer.enqueue('anew', {}, { id });
    await eventually(async () => expect(await producer.get('anew', 'B')).toMatchObject({ state: 'dead' }));
    await dead(producer, 'anew');
    await beginner.close();
    const told = beginner.warnings.filter((line) => line.includes('A job is no request'));
    expect(told.map((line) => line.split(' failed ')[0])).toEqual(['Guard GuardAnew', 'An exception filter']);
  });

  it('an interceptor that reads a request is named, and one that fails behind the handler is not said to be of requests', async () => {
    class Quiet {
      intercept(_: unknown, next: { handle(): unknown }): unknown {
        return next.handle();
      }
    }
    class UrlInterceptor {
      intercept(
        context: { switchToHttp(): { getRequest(): { raw: { url: string } } } },
        next: { handle(): unknown },
      ): unknown {
        return context.switchToHttp().getRequest().raw.url ? next.handle() : undefined;
      }
    }
    class Late {
      async intercept(_: unknown, next: { handle(): { toPromise(): Promise<{ length: number }> } }): Promise<unknown> {
        return (await next.handle().toPromise()).length;
      }
    }
    const beginner = new Beginner();
    const early = handlerClass('early', () => undefined, { attempts: 1 });
    UseInterceptors(new Quiet() as never, new UrlInterceptor() as never)(early);
    const late = handlerClass('late', () => undefined, { attempts: 1 });
    UseInterceptors(new Late() as never)(late);
    const producer = await beginner.producer({}, { providers: [early, late] });
    for (const queue of ['early', 'late']) await producer.enqueue(queue, {}, { id: 'A' });
    for (const queue of ['early', 'late']) await dead(producer, queue);
    await beginner.close();
    expect(beginner.warnings.filter((line) => line.includes('A job is no request'))).toEqual([
      'Interceptor UrlInterceptor failed before a handler of queue "early": TypeError: Cannot read properties of undefined ' +
        "(reading 'url'). A job is no request: let the interceptor return next.handle() if isDelayQueueContext(context), or, if it is " +
        "global, leave it out of jobs by globalEnhancers: 'pipes'. Said once.",
    ]);
  });
});
