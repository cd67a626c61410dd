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

  it.each<[string, unknown, PropertyKey[], string]>([
    [
      'Expected number but received "secret-4711"',
      { card: 'secret-4711' },
      ['card'],
      'Expected number but received "[value]"',
    ],
    ['Expected string but received 42', { pin: 42 }, ['pin'], 'Expected string but received [value]'],
    ['must be at least 18 (was 7)', { age: 7 }, ['age'], 'must be at least 18 (was [value])'],
    ['must be a number (was "ab")', { code: 'ab' }, ['code'], 'must be a number (was "[value]")'],
    ['must be an email (was "a\\"bcd")', { mail: 'a"bcd' }, ['mail'], 'must be an email (was "[value]")'],
    [
      'secret-4711 and 1234 do not match',
      { a: { b: ['secret-4711'] }, pin: 1234 },
      [],
      '[value] and [value] do not match',
    ],
    ['must have 10 characters', { age: 1, name: 'Bob' }, ['name'], 'must have 10 characters'],
  ])('whose message quotes the payload is told without that: %s', (message, input, path, told) => {
    expect(refusal(message, input, path).endsWith(`: ${told}`)).toBe(true);
  });
});
