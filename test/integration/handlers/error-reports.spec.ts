import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { BadRequestException, ConsoleLogger, Logger, UseGuards, UsePipes, ValidationPipe } from '@nestjs/common';
import type { CanActivate } from '@nestjs/common';
import { IsInt, Min } from 'class-validator';
import { defineQueue, DiscardJob, fixed, JobPayload, OnDelayed, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';

const here = inAWorld();
afterEach(() => {
  jest.restoreAllMocks();
  Logger.overrideLogger(false);
});

/** What a logger is called with, level first. */
function calls(): unknown[][] {
  const logged: unknown[][] = [];
  const method =
    (level: string) =>
    (...args: unknown[]) =>
      void logged.push([level, ...args]);
  Logger.overrideLogger({ log: method('log'), warn: method('warn'), error: method('error') });
  return logged;
}

function unreachable(): never {
  throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED 127.0.0.1:5432') });
}

describe('What a handler threw', () => {
  it('is shown with its cause and its stack, in the log and in lastError', async () => {
    const { producer, queue, becomes } = await oneHandler(here, unreachable, { attempts: 2, backoff: fixed(0) });
    const logged = calls();
    await producer.enqueue(queue, {}, { id: 'a' });
    const { lastError } = await becomes('a', { state: 'dead' });
    expect(lastError).toMatchObject({
      name: 'TypeError',
      message: 'fetch failed',
      stack: expect.stringContaining('error-reports.spec'),
      cause: { name: 'Error', message: 'connect ECONNREFUSED 127.0.0.1:5432' },
    });
    const line = /fetch failed, caused by Error: connect ECONNREFUSED 127\.0\.0\.1:5432$/;
    const stack = expect.stringMatching(
      /^TypeError: fetch failed\n +at .*error-reports\.spec[^]*\[cause\]: Error: connect/,
    );
    const about = expect.objectContaining({ queue, id: 'a' });
    await eventually(() => expect(logged).toHaveLength(2));
    expect(logged).toEqual([
      ['warn', expect.stringMatching(line), expect.objectContaining({ id: 'a', stack }), 'DelayQueue'],
      ['error', expect.stringMatching(line), about, stack, 'DelayQueue'],
    ]);
  });

  it('is printed with its stack by the logger of Nest, as text and as JSON', async () => {
    const { producer, queue, becomes } = await oneHandler(here, unreachable, { attempts: 2, backoff: fixed(0) });
    const written: string[] = [];
    const take = (text: unknown) => written.push(String(text)) > 0;
    jest.spyOn(process.stdout, 'write').mockImplementation(take);
    jest.spyOn(process.stderr, 'write').mockImplementation(take);
    Logger.overrideLogger(new ConsoleLogger({ json: true }));
    await producer.enqueue(queue, {}, { id: 'json' });
    await becomes('json', { state: 'dead' });
    const [warning, error] = written.map((line) => JSON.parse(line) as { stack?: string; params: { stack?: string } });
    expect(warning!.params.stack).toMatch(/error-reports\.spec/);
    expect(error!.stack).toMatch(/error-reports\.spec/);
    written.length = 0;
    Logger.overrideLogger(new ConsoleLogger({ colors: false }));
    await producer.enqueue(queue, {}, { id: 'text' });
    await becomes('text', { state: 'dead' });
    expect(written.join('').match(/^ +at .*error-reports\.spec/gm)!.length).toBeGreaterThanOrEqual(2);
  });

  it.each<[string, unknown, string]>([
    ['an object', { code: 'E_LIMIT', retryAfter: 3 }, "object: { code: 'E_LIMIT', retryAfter: 3 }"],
    ['a string', 'no more seats', 'string: no more seats'],
  ])('is told by its content: %s', async (_, thrown, line) => {
    const handle = () => {
      throw thrown;
    };
    const { producer, queue, becomes } = await oneHandler(here, handle, { attempts: 1 });
    const logged = calls();
    await producer.enqueue(queue, {}, { id: 'a' });
    const { lastError } = await becomes('a', { state: 'dead' });
    expect(`${lastError!.name}: ${lastError!.message}`).toBe(line);
    await producer.enqueue(queue, {}, { id: 'b' });
    await becomes('b', { state: 'dead' });
    const remedy = '. Throw an Error, so that the stack is kept. Said once';
    await eventually(() => expect(logged).toHaveLength(2));
    expect(String(logged[0]![1]).endsWith(`${line}${remedy}`)).toBe(true);
    expect(String(logged[1]![1]).endsWith(line)).toBe(true);
  });

  it('of a guard is told without the half of a value where the text is cut', async () => {
    const email = 'bobby.tables@example.org';
    class Tenants implements CanActivate {
      canActivate(): boolean {
        throw new Error(`${'.'.repeat(190)}${email}`);
      }
    }
    const queue = 'error-guard';
    class Handlers {
      @UseGuards(new Tenants())
      @OnDelayed(queue, { attempts: 1 })
      run(): void {}
    }
    const { producer } = await here.start({ providers: [Handlers] });
    const logged = calls();
    await producer.enqueue(queue, { email }, { id: 'a' });
    const lines = () => logged.map((call) => String(call[1])).filter((line) => line.startsWith('Guard Tenants'));
    await eventually(() => expect(lines()).toHaveLength(1));
    expect(lines()[0]).toContain('failed before a handler of queue "error-guard": Error: ....');
    expect(lines()[0]).not.toContain('bob');
  });

  it('is kept of the last five attempts, with their times', async () => {
    const fail = (_: unknown, { attempt }: DelayedJob) => {
      throw new Error(`attempt ${attempt}`);
    };
    const { producer, queue, inspector, becomes } = await oneHandler(here, fail, { attempts: 7, backoff: fixed(1) });
    await producer.enqueue(queue, {}, { id: 'a' });
    const { errors, lastError } = await becomes('a', { state: 'dead', attempts: 7 });
    expect(errors!.map(({ message }) => message)).toEqual([3, 4, 5, 6, 7].map((n) => `attempt ${n}`));
    const times = errors!.map(({ at }) => at.getTime());
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(lastError).toMatchObject({ message: 'attempt 7', stack: expect.any(String) });
    await inspector.requeueDead(queue, ['a']);
    await becomes('a', { state: 'dead', attempts: 7 });
    const again = (await producer.get(queue, 'a'))!.errors!;
    expect(again.map(({ message }) => message)).toEqual([3, 4, 5, 6, 7].map((n) => `attempt ${n}`));
  });
});

class Payment {
  @IsInt()
  @Min(1)
  amount!: number;
}

describe('A payload that a ValidationPipe refuses', () => {
  it('is shown by its fields, in the log and in lastError', async () => {
    class Handlers {
      @OnDelayed('error-validation')
      @UsePipes(new ValidationPipe())
      pay(@JobPayload() { amount }: Payment) {
        return amount;
      }
    }
    const { producer } = await here.start({ providers: [Handlers] });
    const logged = calls();
    await producer.enqueue('error-validation', { amount: -7_411 }, { id: 'a' });
    const job = await eventually(async () => {
      const found = await producer.get('error-validation', 'a');
      expect(found).toMatchObject({ state: 'dead', deadReason: 'invalid' });
      return found!;
    });
    const { name } = BadRequestException;
    expect(job.lastError).toMatchObject({ name, message: 'Bad Request Exception: amount must not be less than 1' });
    await eventually(() =>
      expect(String(logged[0]?.[1])).toMatch(/Bad Request Exception: amount must not be less than 1$/),
    );
    expect(JSON.stringify([logged, job.lastError, job.errors])).not.toContain('7411');
  });
});

describe('A DiscardJob', () => {
  it('is shown with the line that threw it in the dead letter, and in the log by its reason alone', async () => {
    function givesUp(): never {
      throw new DiscardJob('no such customer');
    }
    const { producer, queue, becomes } = await oneHandler(here, givesUp);
    const logged = calls();
    await producer.enqueue(queue, {}, { id: 'a' });
    const { lastError } = await becomes('a', { state: 'dead', deadReason: 'discarded' });
    expect(lastError).toMatchObject({ name: 'DiscardJob', message: 'no such customer' });
    const stack = /^DiscardJob: no such customer\n +at givesUp \(.*error-reports\.spec/;
    expect(lastError!.stack).toMatch(stack);
    await eventually(() => expect(logged).toHaveLength(1));
    expect(logged[0]!.slice(0, 2)).toEqual(['warn', expect.stringMatching(/\(discarded\).*: no such customer$/)]);
    expect(JSON.stringify(logged)).not.toContain('givesUp');
  });

  it('of a batch is shown with the line that called discard()', async () => {
    const handle = (_: unknown, jobs: any) => jobs[0].discard('no such customer');
    const { producer, queue, becomes } = await oneHandler(here, handle, { batch: { size: 2, wait: 0 } });
    await producer.enqueue(queue, {}, { id: 'a' });
    const { lastError } = await becomes('a', { state: 'dead', deadReason: 'discarded' });
    expect(lastError!.stack).toMatch(/error-reports\.spec/);
  });
});

describe('A schema', () => {
  const amounts = defineQueue<{ amount: number }>('error-schema', {
    schema: {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value) => {
          const { amount } = value as { amount: unknown };
          if (typeof amount === 'number') return { value: { amount } };
          return { issues: [{ message: `Expected number but received ${JSON.stringify(amount)}`, path: ['amount'] }] };
        },
      },
    },
  });

  it('that quotes what it refuses is shown without that, in the log and in the dead letter', async () => {
    const { producer } = await here.start({ providers: [handlerClass(amounts as never, () => undefined)] });
    const logged = calls();
    await producer.enqueue(amounts, { amount: 1 }, { id: 'a', delay: '1h' });
    const key = here.world.key('error-schema', 'jobs');
    const stored = (await here.world.redis.hget(key, 'a'))!;
    await here.world.redis.hset(key, 'a', stored.replace('{"amount":1}', '{"amount":"secret-4711"}'));
    await producer.runNow(amounts, 'a');
    const job = await eventually(async () => {
      const found = await producer.get('error-schema' as never, 'a');
      expect(found).toMatchObject({ state: 'dead', deadReason: 'invalid' });
      return found!;
    });
    expect(job.lastError!.message).toContain('payload.amount: Expected number but received');
    await eventually(() => expect(logged).toHaveLength(1));
    expect(JSON.stringify([logged, job.lastError, job.errors])).not.toContain('secret-4711');
  });

  it('is asked about the payload of a SnoozeJob', async () => {
    const handle = () => {
      throw new SnoozeJob('1h', { payload: { amount: 'none' } });
    };
    const settings = { backoff: fixed('1h') };
    const { producer } = await here.start({ providers: [handlerClass(amounts as never, handle, settings)] });
    await producer.enqueue(amounts, { amount: 1 }, { id: 'b' });
    await eventually(async () =>
      expect(await producer.get(amounts, 'b')).toMatchObject({
        state: 'delayed',
        attempts: 1,
        payload: { amount: 1 },
        lastError: { name: 'SchemaError' },
      }),
    );
  });
});
