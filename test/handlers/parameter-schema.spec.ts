import { afterEach, describe, expect, it } from '@jest/globals';
import { Body, Catch, type ExceptionFilter, StandardSchemaValidationPipe, UseFilters, UsePipes } from '@nestjs/common';
import { Batch, BatchJob } from '../../lib/handlers/batch-job.js';
import { JobPayload } from '../../lib/handlers/job-params.decorator.js';
import { OnDelayed } from '../../lib/handlers/on-delayed.decorator.js';
import type { StandardSchema } from '../../lib/job/schema.js';
import { type Handling, handling } from './handling.js';

let open: Handling | undefined;
const start = async (...args: Parameters<typeof handling>) => (open = await handling(...args));
const log: unknown[] = [];

afterEach(async () => {
  await open?.app.close();
  open = undefined;
  log.length = 0;
});

/** Takes text of digits, gives a BigInt: run on its own output it would refuse it. */
function digits(field?: string, answer = <T>(value: T): T | Promise<T> => value): StandardSchema<any, any> {
  return {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate(given) {
        const value: unknown = field === undefined ? given : (given as Record<string, unknown>)[field];
        if (value === 'down') throw new Error('look-up failed');
        if (typeof value !== 'string' || !/^\d+$/.test(value)) {
          return answer({ issues: [{ message: 'expected digits', path: field === undefined ? [] : [field] }] });
        }
        return answer({ value: field === undefined ? BigInt(value) : { [field]: BigInt(value) } });
      },
    },
  };
}

const FACTS = {
  id: 'x',
  queue: 'a',
  attempt: 1,
  maxAttempts: 10,
  snoozes: 0,
  dueAt: 0,
  enqueuedAt: 0,
  latenessMs: 0,
  context: {},
};

const later = <T>(value: T) => Promise.resolve(value);
const invalid = (message: string) => ({
  kind: 'invalid',
  error: expect.objectContaining({ code: 'ERR_DQ_SCHEMA', message: `Queue "a": ${message}` }),
});

describe.each([
  ['synchronous', undefined],
  ['asynchronous', later],
])('@JobPayload with a %s schema', (_, answer) => {
  it('gives the output to the pipes and the parameter, and refuses without a word of the payload', async () => {
    class Handlers {
      @OnDelayed('a')
      run(
        @JobPayload({ schema: digits('n', answer), pipes: [{ transform: ({ n }) => [n, typeof n] }] }) n: unknown,
        @JobPayload() raw: unknown,
      ) {
        log.push(n, raw);
      }
    }
    const { run } = await start({ providers: [Handlers] });
    expect(await run('a', { n: '5' })).toEqual({ kind: 'completed' });
    expect(log).toEqual([[5n, 'bigint'], { n: '5' }]);
    expect(await run('a', { n: 'secret' })).toEqual(invalid('payload.n: expected digits'));
    expect(log).toHaveLength(2);
  });

  it('checks a property alone', async () => {
    class Handlers {
      @OnDelayed('a')
      run(@JobPayload('n', { schema: digits(undefined, answer) }) n: unknown) {
        log.push(n);
      }
    }
    const { run } = await start({ providers: [Handlers] });
    expect(await run('a', { n: '7' })).toEqual({ kind: 'completed' });
    expect(log).toEqual([7n]);
    expect(await run('a', {})).toEqual(invalid('payload.n: expected digits'));
  });

  it('checks each payload of a batch', async () => {
    class Handlers {
      @OnDelayed('a', { batch: { size: 2 } })
      run(@JobPayload({ schema: digits('n', answer) }) payloads: unknown) {
        log.push(payloads);
      }
    }
    const { handlers } = await start({ providers: [Handlers] });
    const batchOf = (...ns: string[]) =>
      new Batch(
        'a',
        ns.map((n) => new BatchJob({ ...FACTS, payload: { n } })),
      );
    expect(await handlers[0]!.invokeBatch!(batchOf('1', '2'))).toEqual({ kind: 'completed' });
    expect(log).toEqual([[{ n: 1n }, { n: 2n }]]);
    expect(await handlers[0]!.invokeBatch!(batchOf('1', 'x'))).toEqual(invalid('payload.n: expected digits'));
  });
});

describe('a schema of @JobPayload', () => {
  it("is not run a second time by Nest's own pipe, which still sees that of @Body", async () => {
    @UsePipes(new StandardSchemaValidationPipe())
    class Handlers {
      @OnDelayed('a')
      ours(@JobPayload({ schema: digits('n') }) payload: unknown) {
        log.push(payload);
      }

      @OnDelayed('b')
      nests(@Body({ schema: digits('n') }) payload: unknown) {
        log.push(payload);
      }
    }
    const { run } = await start({ providers: [Handlers] });
    expect(await run('a', { n: '1' })).toEqual({ kind: 'completed' });
    expect(await run('b', { n: '2' })).toEqual({ kind: 'completed' });
    expect(log).toEqual([{ n: 1n }, { n: 2n }]);
    expect(await run('b', { n: 'x' })).toMatchObject({ kind: 'invalid' });
  });

  it('that fails itself is a failure like others, and a filter may handle a refusal', async () => {
    @Catch()
    class Filter implements ExceptionFilter {
      catch() {}
    }
    class Handlers {
      @OnDelayed('a')
      run(@JobPayload({ schema: digits('n') }) _payload: unknown) {}

      @UseFilters(new Filter())
      @OnDelayed('b')
      filtered(@JobPayload({ schema: digits('n') }) _payload: unknown) {}
    }
    const { run } = await start({ providers: [Handlers] });
    const message = 'Queue "a": the schema of the payload threw Error: look-up failed';
    const failed = { kind: 'failed', error: { message, cause: { message: 'look-up failed' } } };
    expect(await run('a', { n: 'down' })).toMatchObject(failed);
    expect(await run('b', { n: 'x' })).toMatchObject({ kind: 'completed' });
  });

  it('must be one', () => {
    const code = 'ERR_DQ_INVALID_OPTION';
    const refused = (options: object) => () => JobPayload(options)({ run() {} }, 'run', 0);
    expect(refused({ schema: { parse() {} } })).toThrow(expect.objectContaining({ code }));
    expect(refused({ schema: { parse() {} } })).toThrow('is not a Standard Schema');
    expect(refused({ shema: 1 })).toThrow('unknown option "shema". Known: schema, pipes.');
  });
});
