import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { InvalidOptionError, SchemaError } from '../../lib/index.js';
import { applySchema } from '../../lib/job/schema.js';
import type { StandardSchema } from '../../lib/job/schema.js';

const schemaOf = (answer: unknown): StandardSchema => ({
  '~standard': { version: 1, vendor: 'test', validate: () => answer as { value: unknown } },
});

function refusal(message: string, input: unknown, path: PropertyKey[] = []): string {
  try {
    applySchema(schemaOf({ issues: [{ message, path }] }), input, 'q');
    return 'accepted';
  } catch (error) {
    return (error as SchemaError).message;
  }
}

describe('A schema', () => {
  it("that answers with another realm's promise, or with a thenable, is waited for", async () => {
    const foreign: unknown = runInNewContext('Promise.resolve({ value: 5 })');
    expect(await applySchema(schemaOf(foreign), {}, 'q')).toBe(5);
    // oxlint-disable-next-line unicorn/no-thenable
    const thenable = { then: (done: (result: unknown) => void) => done({ issues: [{ message: 'no' }] }) };
    await expect(applySchema(schemaOf(thenable), {}, 'q')).rejects.toBeInstanceOf(SchemaError);
  });

  it.each([[undefined], [null], [5], [{}]])(
    'that answers with %p is refused, and nothing is taken for its output',
    (answer) => {
      expect(() => applySchema(schemaOf(answer), {}, 'q')).toThrow(InvalidOptionError);
    },
  );

  const thrower = () => {
    throw new Error('of the schema');
  };
  it.each<[string, unknown]>([
    ['issues that are text', { issues: 'no' }],
    ['issues that are an object', { issues: { message: 'no' } }],
    ['issues that are true', { issues: true }],
    ['an issue that is null', { issues: [null] }],
    ['an issue that is text', { issues: ['no'] }],
    ['an issue whose message throws', { issues: [Object.defineProperty({}, 'message', { get: thrower })] }],
    ['a message without a text', { issues: [{ message: Object.create(null) }] }],
    ['a path that is no array', { issues: [{ message: 'no', path: 5 }] }],
    ['null in a path', { issues: [{ message: 'no', path: [null] }] }],
    [
      'a path whose parts throw',
      { issues: [{ message: 'no', path: [Object.defineProperty({}, 'key', { get: thrower })] }] },
    ],
    ['a path whose keys have no text', { issues: [{ message: 'no', path: [{ key: { toString: thrower } }] }] }],
  ])(
    'that answers with %s gave a TypeError of nobody: it is told as what is wrong, of which queue',
    async (_, answer) => {
      const expected = expect.objectContaining({
        code: 'ERR_DQ_INVALID_OPTION',
        message: expect.stringMatching(/^Queue "q": the answer of the schema is malformed: /),
      });
      expect(() => applySchema(schemaOf(answer), { name: 'Bob' }, 'q')).toThrow(expected as unknown as Error);
      await expect(applySchema(schemaOf(Promise.resolve(answer)), {}, 'q')).rejects.toEqual(expected);
    },
  );

  it('may leave out a path, or write its keys in both ways', () => {
    const issues = [{ message: 'a' }, { message: 'b', path: ['x', { key: 0 }, { key: Symbol('s') }] }];
    expect(() => applySchema(schemaOf({ issues }), {}, 'q')).toThrow(
      expect.objectContaining({
        issues: [
          { message: 'a', path: 'payload' },
          { message: 'b', path: 'payload.x[0].Symbol(s)' },
        ],
      }) as unknown as Error,
    );
  });

  it.each<[string, unknown, PropertyKey[], string]>([
    [
      'Expected number but received "secret-4711"',
      { card: 'secret-4711' },
      ['card'],
      'Expected number but received "[payload.card]"',
    ],
    ['Expected string but received 42', { pin: 42 }, ['pin'], 'Expected string but received [payload.pin]'],
    ['must be at least 18 (was 7)', { age: 7 }, ['age'], 'must be at least 18 (was [payload.age])'],
    ['must be a number (was "ab")', { code: 'ab' }, ['code'], 'must be a number (was "[payload.code]")'],
    ['must be an email (was "a\\"bcd")', { mail: 'a"bcd' }, ['mail'], 'must be an email (was "[payload.mail]")'],
    [
      'secret-4711 and 1234 do not match',
      { a: { b: ['secret-4711'] }, pin: 1234 },
      [],
      '[payload.a.b[0]] and [payload.pin] do not match',
    ],
    ['must have 10 characters', { age: 1, name: 'Bob' }, ['name'], 'must have 10 characters'],
  ])('whose message quotes the payload is shown without that: %s', (message, input, path, expected) => {
    expect(refusal(message, input, path).endsWith(`: ${expected}`)).toBe(true);
  });
});
