import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { ConsoleLogger, Logger } from '@nestjs/common';
import { DiscardJob, fixed, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob, HandlerOptions } from '../../../lib/index.js';
import { logArguments } from '../../../lib/delay-queue.logger.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld();
const end = endingWithEachTest();
afterEach(() => {
  jest.restoreAllMocks();
  Logger.overrideLogger(false);
});

interface Line {
  level: string;
  message: string;
  context?: string;
  params?: Record<string, unknown>;
}

/** What Nest's own logger prints, as JSON. */
async function printing(queue: string, handle: (payload: any, job: DelayedJob) => unknown, options?: HandlerOptions) {
  const { producer, inspector } = await here.start({ providers: [handlerClass(queue, handle, options)] });
  const lines: Line[] = [];
  const take = (text: unknown) => {
    for (const line of String(text).trim().split('\n')) lines.push(JSON.parse(line) as Line);
    return true;
  };
  jest.spyOn(process.stdout, 'write').mockImplementation(take);
  jest.spyOn(process.stderr, 'write').mockImplementation(take);
  Logger.overrideLogger(new ConsoleLogger({ json: true }));
  const about = (id: string) => lines.filter(({ params }) => params?.['id'] === id);
  return { producer, inspector, lines, about };
}

describe('A line about a job', () => {
  it('has text for people and fields for programs: queue, id, attempt, lateness', async () => {
    const fail = (_: unknown, { attempt }: DelayedJob) => {
      throw new Error(`no luck ${attempt}`);
    };
    const { producer, about } = await printing('fields', fail, { attempts: 2, backoff: fixed(1) });
    await producer.enqueue('fields', { secret: 'of the payload' }, { id: 'a' });
    await eventually(() => expect(about('a')).toHaveLength(2));
    const params = (attempt: number) => ({ queue: 'fields', id: 'a', attempt, latenessMs: expect.any(Number) });
    expect(about('a')).toMatchObject([
      {
        level: 'warn',
        context: 'DelayQueue',
        message: 'Job "a" of queue "fields" attempt 1 of 2 failed, next in 1 ms: Error: no luck 1',
        params: params(1),
      },
      {
        level: 'error',
        context: 'DelayQueue',
        message: 'Job "a" of queue "fields" is now a dead letter (exhausted) after attempt 2 of 2: Error: no luck 2',
        params: params(2),
      },
    ]);
    expect(JSON.stringify(about('a'))).not.toContain('secret');
  });

  it('tells of each way to an end that somebody should know of, and of no other', async () => {
    const handle = (payload: string) => {
      if (payload === 'discard') throw new DiscardJob('pointless');
      if (payload === 'snooze') throw new SnoozeJob(1, { max: 1 });
    };
    const { producer, inspector, lines, about } = await printing('ends', handle);
    for (const id of ['ok', 'discard', 'snooze']) await producer.enqueue('ends', id, { id });
    const at = (await here.world.now()) - 5_000;
    await producer.enqueue('ends', 'late', { id: 'late', at, expiresIn: 1_000 });
    await eventually(async () =>
      expect(await inspector.totals('ends')).toMatchObject({ completed: 1, dead: 2, expired: 1 }),
    );
    const logged = (id: string) => about(id).map(({ level, message }) => `${level} ${message}`);
    expect(logged('discard')).toEqual([
      'warn Job "discard" of queue "ends" is now a dead letter (discarded) after attempt 1 of 10: pointless',
    ]);
    expect(about('discard')[0]).not.toHaveProperty('stack');
    expect(about('discard')[0]!.params).not.toHaveProperty('stack');
    expect(logged('snooze')).toEqual([expect.stringMatching(/: it was snoozed as often as SnoozeJob allowed$/)]);
    expect(logged('late')).toEqual([
      expect.stringMatching(/^warn .*"late".*expired \d(\.\d)? s before it could start\.$/),
    ]);
    expect(about('late')[0]!.params!['latenessMs']).toBeGreaterThanOrEqual(5_000);
    expect(logged('ok')).toEqual([]);
    expect(lines).toHaveLength(3);
  });

  it('never quotes a payload that cannot be decoded', async () => {
    const { producer, about } = await printing('broken', () => {});
    await producer.enqueue('broken', {}, { id: 'x', delay: '1h' });
    const key = here.world.key('broken', 'jobs');
    const envelope = (await here.world.redis.hget(key, 'x'))!;
    await here.world.redis.hset(key, 'x', envelope.replace('{}', '{"secret'));
    await producer.runNow('broken', 'x');
    await eventually(() => expect(about('x')).toHaveLength(1));
    expect(about('x')[0]!.message).toMatch(/cannot be decoded and is now a dead letter/);
    expect(JSON.stringify(about('x'))).not.toContain('secret');
  });

  it('is text alone where the logger of Nest has no fields', () => {
    expect(logArguments('text', 'warn', 'late', { queue: 'q' })).toEqual(['late']);
    expect(logArguments('fields', 'warn', 'late', { queue: 'q' })).toEqual(['late', { queue: 'q' }]);
  });
});

describe("Nest's console", () => {
  it('shows the stack of a failed attempt as lines, behind the fields; what it writes as JSON has a text', async () => {
    const fail = () => {
      throw new Error('no luck');
    };
    const { producer, about } = await printing('seen', fail, { attempts: 2, backoff: fixed('1h') });
    await producer.enqueue('seen', {}, { id: 'json' });
    await eventually(() => expect(about('json')).toHaveLength(1));
    expect(about('json')[0]!.params!['stack']).toMatch(/^Error: no luck\n {4}at /);
    let printed = '';
    jest.spyOn(process.stdout, 'write').mockImplementation((text) => (printed += String(text)) !== '');
    Logger.overrideLogger(new ConsoleLogger({ colors: false }));
    await producer.enqueue('seen', {}, { id: 'text' });
    await eventually(() => expect(printed).toContain('failed, next in'));
    expect(printed).toMatch(
      /next in 1 h: Error: no luck \{ queue: 'seen', id: 'text', attempt: 1, latenessMs: \d+, stack: \n *Error: no luck\n +at .*\n +at /,
    );
  });

  it('of a class of the application gets a text, whatever that does with it', async () => {
    const stacks: unknown[] = [];
    class Shipping extends ConsoleLogger {
      override warn(_message: unknown, ...given: unknown[]): void {
        stacks.push((given[0] as Record<string, unknown>)['stack']);
      }
    }
    const fail = () => {
      throw new Error('no luck');
    };
    const { producer, queue } = await oneHandler(here, fail, { attempts: 2, backoff: fixed('1h') });
    Logger.overrideLogger(new Shipping());
    await producer.enqueue(queue, {}, { id: 'a' });
    await eventually(() => expect(stacks).toEqual([expect.stringMatching(/^Error: no luck\n {4}at /)]));
  });
});

describe('The logger of nestjs-pino', () => {
  /** As its `call()` hands over to pino: an object that comes first is merged, whatever follows the text is dropped. */
  class PinoLike {
    readonly lines: Record<string, unknown>[] = [];
    readonly contextName = 'context';
    readonly logger = { assign: () => undefined };
    log = this.#method('info');
    warn = this.#method('warn');
    error = this.#method('error');

    #method(level: string) {
      return (message: unknown, ...params: unknown[]) => {
        const context = params.pop();
        const [fields, msg] = typeof message === 'object' ? [message, params[0]] : [{}, message];
        this.lines.push({ level, context, ...fields, msg });
      };
    }
  }

  it('gets the fields first, and the error as err', async () => {
    const fail = () => {
      throw new Error('no luck', { cause: new Error('no net') });
    };
    const { producer, becomes, queue } = await oneHandler(here, fail, { attempts: 2, backoff: fixed(0) });
    const pino = new PinoLike();
    Logger.overrideLogger(pino);
    await producer.enqueue(queue, {}, { id: 'a' });
    await becomes('a', { state: 'dead' });
    await eventually(() => expect(pino.lines).toHaveLength(2));
    const cause = expect.objectContaining({ message: 'no net' });
    const err = expect.objectContaining({ message: 'no luck', stack: expect.stringMatching(/\n +at /), cause });
    const fields = { context: 'DelayQueue', queue, id: 'a', latenessMs: expect.any(Number), err };
    expect(pino.lines).toEqual([
      { level: 'warn', attempt: 1, ...fields, msg: expect.stringMatching(/attempt 1 of 2 failed, next in 0 ms/) },
      { level: 'error', attempt: 2, ...fields, msg: expect.stringMatching(/is now a dead letter/) },
    ]);
  });
});

describe('A shutdown', () => {
  const start = async (queue: string, handle: (payload: any, job: DelayedJob) => unknown, drainTimeout: string) => {
    const log: string[] = [];
    const app = await here.start({ providers: [handlerClass(queue, handle)], options: { drainTimeout }, log });
    const logged = () => log.filter((line) => line.includes('Shutting down'));
    return { ...app, logged };
  };

  it('says for how many handlers it waits, until when, and what it handed back', async () => {
    let started = 0;
    const untilAborted = (_: unknown, { signal }: DelayedJob) => {
      started++;
      return new Promise((resolve) => signal.addEventListener('abort', resolve));
    };
    const { producer, close, logged } = await start('stopping', untilAborted, '50ms');
    for (const id of ['a', 'b']) await producer.enqueue('stopping', {}, { id });
    await eventually(() => expect(started).toBe(2));
    await close();
    expect(logged()).toEqual([
      expect.stringMatching(
        /^log Shutting down: waiting for 2 handlers \("stopping" 2\), until \d{4}-\S+Z \(50 ms\)\./,
      ),
      expect.stringMatching(/^warn Shutting down: 2 jobs handed back, no attempt used, .* \("stopping" 2\)\./),
    ]);
  });

  it('that has nothing to wait for says nothing, and one whose handlers end says that it waits', async () => {
    const idle = await start('stopping-idle', () => undefined, '1s');
    await idle.close();
    expect(idle.logged()).toEqual([]);
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    let isRunning = false;
    const busy = await start('stopping-busy', () => ((isRunning = true), ended), '20s');
    await busy.producer.enqueue('stopping-busy', {});
    await eventually(() => expect(isRunning).toBe(true));
    const closed = busy.close();
    await eventually(() => expect(busy.logged()).toHaveLength(1));
    end();
    await closed;
    expect(busy.logged()).toEqual([expect.stringMatching(/waiting for 1 handler \("stopping-busy" 1\), .*\(20 s\)\./)]);
  });
});

describe('A shutdown while Redis is away', () => {
  /** With jobs that run, on a connection that can be cut. */
  const running = async (queue: string, handle: (job: DelayedJob) => unknown, drainTimeout: string) => {
    const proxy = end(await Proxy.before(here.world.url));
    const log: string[] = [];
    let started = 0;
    const handlers = handlerClass(queue, (_, job) => (started++, handle(job)));
    const options = { connection: proxy.url, drainTimeout, commandTimeout: '300ms' };
    const { producer, close } = await here.start({ providers: [handlers], options, log });
    for (const id of ['a', 'b']) await producer.enqueue(queue, {}, { id });
    await eventually(() => expect(started).toBe(2));
    return {
      close,
      cut: () => {
        proxy.judge = () => 'cut';
        proxy.cut();
      },
      logged: (part: string) => log.filter((line) => line.includes(part)),
    };
  };

  it('says what Redis has not confirmed, and not that it was handed back', async () => {
    const { close, cut, logged } = await running(
      'gone-first',
      ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
      '50ms',
    );
    cut();
    await eventually(() => expect(logged('is not reachable')).toHaveLength(1));
    await close();
    expect(logged('had not confirmed')).toEqual([
      expect.stringMatching(
        /^warn Queue "gone-first": stopped while Redis had not confirmed how 2 jobs ended\. What it has not heard of runs again/,
      ),
    ]);
    expect(logged('handed back')).toEqual([]);
  });

  it('and goes away only then says that the application is ending, instead of that it tries again', async () => {
    let finish!: () => void;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    const { close, cut, logged } = await running('gone-then', () => finished, '20s');
    const closed = close();
    await eventually(() => expect(logged('Shutting down: waiting')).toHaveLength(1));
    cut();
    await eventually(() => expect(logged('is not reachable')).toHaveLength(1));
    finish();
    await closed;
    expect(logged('is not reachable')).toEqual([
      expect.stringMatching(/^warn Redis at .* is not reachable .*\)\. The application is ending\. DelayQueue$/),
    ]);
    expect(logged('had not confirmed how 2 jobs ended')).toHaveLength(1);
  });
});

describe('An outage', () => {
  it('is one line, and its end another, however often connecting fails meanwhile', async () => {
    const proxy = end(await Proxy.before(here.world.url));
    const log: string[] = [];
    await here.start({ providers: [handlerClass('out', () => {})], options: { connection: proxy.url }, log });
    const before = proxy.connections;
    const booted = log.length;
    proxy.judge = () => 'cut';
    proxy.cut();
    await eventually(() => expect(proxy.connections).toBeGreaterThanOrEqual(before + 6));
    proxy.judge = () => 'pass';
    await eventually(() => expect(log.slice(booted)).toHaveLength(2));
    expect(log.slice(booted)).toEqual([
      expect.stringMatching(/^warn Redis at .* is not reachable .* Retrying; jobs wait\. DelayQueue$/),
      expect.stringMatching(/^log Redis at .* is back after \d+(\.\d)? m?s\. DelayQueue$/),
    ]);
  });
});
