import { describe, expect, it } from '@jest/globals';
import { BadRequestException, UnprocessableEntityException } from '@nestjs/common';
import { PayloadError } from '../../lib/index.js';
import {
  decodeError,
  describeError,
  describeRefusal,
  encodeFailure,
  stackOf,
  summarizeError,
  summarizeRefusal,
} from '../../lib/job/error-record.js';

const SECRET = 'secret-4711';

const hasThrowingGetter = () => ({
  get before(): string {
    throw new Error('no');
  },
  of: 'bobby',
});

describe('An error', () => {
  const refused = new Error('connect ECONNREFUSED 127.0.0.1:5432');
  const failed = new TypeError('fetch failed', { cause: new Error('the pool', { cause: refused }) });

  it('keeps the chain of its causes, each with its stack', () => {
    expect(describeError(failed)).toMatchObject({
      name: 'TypeError',
      message: 'fetch failed',
      cause: {
        message: 'the pool',
        cause: { name: 'Error', message: refused.message, stack: expect.stringContaining('error-record.spec') },
      },
    });
    expect(summarizeError(failed)).toBe(
      'TypeError: fetch failed, caused by Error: the pool, caused by Error: connect ECONNREFUSED 127.0.0.1:5432',
    );
    const stack = stackOf(describeError(failed))!;
    expect(stack).toMatch(/^TypeError: fetch failed\n {4}at /);
    expect(stack).toMatch(/\n {2}\[cause\]: Error: the pool\n/);
    expect(stack).toMatch(/\n {4}\[cause\]: Error: connect ECONNREFUSED/);
  });

  it('keeps the errors of an AggregateError, five of them', () => {
    const errors = Array.from({ length: 9 }, (_, n) => new Error(`no ${n}`));
    const described = describeError(new AggregateError(errors));
    expect(described.errors!.map(({ message }) => message)).toEqual(['no 0', 'no 1', 'no 2', 'no 3', 'no 4']);
    expect(summarizeError(new AggregateError(errors, 'none'))).toBe(
      'AggregateError: none [Error: no 0; Error: no 1; Error: no 2]',
    );
  });

  it('that is its own cause is shown once', () => {
    const error = new Error('a');
    error.cause = new Error('b', { cause: error });
    expect(describeError(error)).toMatchObject({ message: 'a', cause: { message: 'b' } });
    expect(describeError(error).cause!.cause).toBeUndefined();
  });

  it('is cut in depth, number and bytes, and so is what is kept in short', () => {
    let chain = new Error('x'.repeat(100_000));
    for (let depth = 0; depth < 100; depth++) {
      chain = new AggregateError([chain, chain, new Error('y'.repeat(9_000))], 'z'.repeat(9_000), { cause: chain });
    }
    const [whole, brief] = encodeFailure(chain).split('\n') as [string, string];
    expect(whole.length).toBeLessThan(20_000);
    expect(brief.length).toBeLessThan(2_000);
    expect(summarizeError(chain).length).toBeLessThan(1_500);
  });

  it('whose constructor set its name has a stack that begins with it', () => {
    class Odd extends Error {
      constructor() {
        super('no');
        this.name = 'OddError';
      }
    }
    expect(describeError(new Odd()).stack).toMatch(/^OddError: no\n/);
  });

  it('with a long message keeps the lines of its stack', () => {
    const { stack } = describeError(new Error('x'.repeat(100_000)));
    expect(stack!.length).toBeLessThan(4_000);
    expect(stack).toMatch(/^Error: x{490,}\.\.\.\n +at .*error-record\.spec/);
  });

  it('of 100,000 line breaks is described in one pass over them', () => {
    const before = process.cpuUsage();
    const [whole] = encodeFailure(new Error('\n'.repeat(100_000))).split('\n') as [string];
    expect((JSON.parse(whole) as { stack: string }).stack).toMatch(/\n +at .*error-record/);
    // With a pass for each of them it was 25 s.
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(2);
  });

  it('is described although its cause and its list cannot be looked at', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const error = Object.defineProperty(new Error('a', { cause: proxy }), 'errors', {
      get: () => {
        throw new Error('no');
      },
    });
    expect(describeError(error)).toMatchObject({ message: 'a', cause: { name: 'object' } });
  });

  it('of ours whose cause may quote a payload keeps it to itself', () => {
    const cause = new SyntaxError(`Unexpected token in ${SECRET}`);
    const error = new Error('outer', { cause: new PayloadError('Queue "a": codec "b" failed.', { cause }) });
    expect(encodeFailure(error)).toContain('codec');
    expect(encodeFailure(error)).not.toContain(SECRET);
    expect(summarizeError(error)).not.toContain(SECRET);
  });

  it('is shown by nothing but name, message, stack and what lies behind it', () => {
    const error = Object.assign(new Error('Request failed'), { config: { headers: { authorization: SECRET } } });
    expect(encodeFailure(error) + stackOf(describeError(error))).not.toContain(SECRET);
  });
});

describe('What is thrown and no error', () => {
  it.each([
    ['a string', 'string: a string'],
    [{ code: 42, why: { deep: true } }, 'object: { code: 42, why: { deep: true } }'],
    [{ message: 'told', code: 7 }, "object: { message: 'told', code: 7 }"],
    [undefined, 'undefined: throw an Error, which says what failed and where'],
    [null, 'object: null'],
    [Symbol('s'), 'symbol: Symbol(s)'],
    [[1, 2], 'object: [ 1, 2 ]'],
  ])('is told by its content: %p', (thrown, line) => {
    expect(summarizeError(thrown)).toBe(line);
  });

  it('is cut', () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`key${n}`, 'v'.repeat(1_000)]));
    expect(describeError(many).message.length).toBeLessThan(4_200);
    expect(summarizeError(many).length).toBeLessThan(300);
  });
});

it('What is thrown is described although the payload holds itself many times', () => {
  const circle: Record<string, unknown> = {};
  let reads = 0;
  const get = () => {
    if (++reads > 1_000) throw new Error('walked through again and again'); // 16 to the power of 10 reads
    return circle;
  };
  for (const key of 'abcdefghijklmnop') Object.defineProperty(circle, key, { get, enumerable: true });
  const payload = { circle, text: SECRET };
  expect(describeError(`no ${SECRET}`, [payload]).message).toBe('no [payload.text]');
});

it.each<[string, unknown, object, string]>([
  ['a usual name of a property', { code: 7 }, { kind: 'code' }, 'object: { code: 7 }'],
  ['the same word as a value', { code: 'code' }, { kind: 'code' }, "object: { code: '[payload.kind]' }"],
  ['another name, which may be data', { bobby: 1 }, { user: 'bobby' }, 'object: { [payload.user]: 1 }'],
  ['a word of a text', 'fetch failed', { status: 'failed' }, 'string: fetch [payload.status]'],
  ['words of what stands in their place', 'code kind', { kind: 'code', of: 'kind' }, 'string: [payload] [payload.of]'],
  ['a key that may be data', 'is bobby', { users: { 'a@b.example': 'bobby' } }, 'string: is [payload.users]'],
  [
    'the name of a payload',
    { name: 'Bobby Tables' },
    { name: 'Bobby Tables' },
    "[payload.name]: { name: '[payload.name]' }",
  ],
  ['what only inspect() escapes', { why: '\x01\'"`' }, { a: '\x01\'"`' }, "object: { why: '[payload.a]' }"],
  ['a value beside a getter that throws', 'is bobby', hasThrowingGetter(), 'string: is [payload.of]'],
  ['a value of a Map', 'is bobby', { of: new Map([['x', 'bobby']]) }, 'string: is [payload.of]'],
])('A payload hides its values in what is thrown, by their paths: %s', (_, thrown, payload, line) => {
  expect(summarizeError(thrown, [payload])).toBe(line);
});

describe('A value of the payload is left out as well where the text is cut within it', () => {
  const email = 'bobby.tables@example.org';

  it.each([190, 490, 1_015, 2_040, 4_090, 8_180])('in an error of code that looks at payloads, at %i', (at) => {
    const text = '.'.repeat(at) + email;
    const error = new RangeError(text, { cause: new AggregateError([new Error(text)], text) });
    error.name = text;
    expect(summarizeRefusal(error, { email })).not.toContain('bob');
    expect(JSON.stringify(describeRefusal(error, { email }))).not.toContain('bob');
    expect(describeRefusal(error, { email }).stack).toContain('error-record.spec');
  });

  it('in an error whose value has more than one line', () => {
    const error = new Error('no street: 5 Elm Street\n12345 Springfield');
    expect(summarizeRefusal(error, { to: '5 Elm Street\n12345 Springfield' })).toBe('Error: no street: [payload.to]');
  });

  it.each([190, 490, 4_090])('in a text of an object that is thrown, at %i', (at) => {
    const thrown = { why: '.'.repeat(at) + email, list: ['.'.repeat(at) + email] };
    expect(summarizeError(thrown, [{ email }])).not.toContain('bob');
    expect(describeError(thrown, [{ email }]).message).not.toContain('bob');
  });

  it('and the texts of an object that is thrown stay short enough for what comes after them', () => {
    const thrown = { body: 'x'.repeat(10_000), code: 7 };
    expect(describeError(thrown).message).toBe(`{ body: '${'x'.repeat(199)}..., code: 7 }`);
  });
});

describe('The failure of a validation', () => {
  it('keeps what a ValidationPipe objects to', () => {
    const error = new BadRequestException(['amount must not be less than 1', 'currency must be a string']);
    const message = 'Bad Request Exception: amount must not be less than 1; currency must be a string';
    expect(describeError(error)).toMatchObject({ name: 'BadRequestException', message });
    expect(summarizeError(error)).toBe(`BadRequestException: ${message}`);
    expect(JSON.parse(encodeFailure(error).split('\n')[1]!)).toMatchObject({ message });
  });

  it('keeps the constraints of raw errors, and no value', () => {
    const target = { amount: SECRET };
    const constraints = { isInt: 'amount must be an integer number' };
    const error = new UnprocessableEntityException([{ target, value: SECRET, property: 'amount', constraints }]);
    expect(describeError(error).message).toBe('Unprocessable Entity Exception: amount must be an integer number');
    expect(encodeFailure(error)).not.toContain(SECRET);
  });

  it('keeps the paths and messages of issues', () => {
    const issues = [{ code: 'too_small', path: ['items', 0, 'price'], message: 'Too small', received: SECRET }];
    const error = new BadRequestException({ statusCode: 400, message: 'Validation failed', errors: issues });
    expect(describeError(error).message).toBe('Validation failed: items.0.price: Too small');
  });
});

describe('The stored errors of a job', () => {
  it('are read whatever is stored', () => {
    const [whole, brief] = encodeFailure(new Error('second')).split('\n');
    const stored = `retry\n${whole}\n${brief}\n{"message":5}\nnonsense\n[]`;
    expect(decodeError(stored)).toMatchObject({
      reason: 'retry',
      error: { message: 'second' },
      attempts: [{ name: 'Error', message: '' }, { name: 'Error', message: '' }, { message: 'second' }],
    });
    expect(decodeError('')).toEqual({ reason: '', error: undefined, attempts: [] });
  });
});

it('an error that was thrown could end a line of the log, or drive the terminal that shows it', () => {
  const error = Object.assign(new Error('first\nsecond \x1b[2J\0'), { name: 'Odd\nName' });
  expect(summarizeError(error)).toBe('Odd Name: first second [2J ');
});

it('Of a batch with more values than can be looked for nothing is told of what is no error', () => {
  const payloads = Array.from({ length: 60 }, (_, n) => Array.from({ length: 1_000 }, (__, m) => `value-${n}-${m}`));
  expect(summarizeError('bad: value-59-1', payloads)).toBe('string: [too many payloads to leave out their values]');
  expect(summarizeError(new Error('bad'), payloads)).toBe('Error: bad');
});
