import { describe, expect, it } from '@jest/globals';
import { parseDurability, waitTimeout } from '../../lib/job/durability.js';
import { fsyncProblem } from '../../lib/redis/server-check.js';
import type { ServerFacts } from '../../lib/redis/server-check.js';

const FIELD = 'enqueue("mail", { durability })';

describe('durability', () => {
  it('is one of three', () => {
    expect(parseDurability('async', FIELD)).toBe('async');
    expect(parseDurability('fsync', FIELD)).toEqual({ replicas: 0, timeoutMs: undefined });
    expect(parseDurability({ replicas: 2 }, FIELD)).toEqual({ replicas: 2, timeoutMs: undefined });
    expect(parseDurability({ replicas: 1, timeout: '2s' }, FIELD)).toEqual({ replicas: 1, timeoutMs: 2_000 });
  });

  it.each<[unknown, string]>([
    ['sync', `${FIELD}: "sync" is not one of 'async', 'fsync'`],
    [true, `${FIELD}: true is neither 'async', 'fsync' nor { replicas, timeout }`],
    [1, 'is neither'],
    [null, 'is neither'],
    [{}, '`replicas` is missing'],
    [{ replicas: 0 }, `${FIELD}.replicas: 0 is not a whole number from 1 to 100`],
    [{ replicas: 1.5 }, `${FIELD}.replicas: 1.5`],
    [{ replicas: 1, timeout: 0 }, `${FIELD}.timeout: 0 is too short`],
    [{ replicas: 1, timeout: 'x' }, `${FIELD}.timeout: "x"`],
    [{ replica: 1 }, 'unknown option "replica". The nearest known one is "replicas"'],
  ])('is not %p', (value, message) => {
    expect(() => parseDurability(value, FIELD)).toThrow(message);
  });

  it('is waited for no longer than a command may take', () => {
    const wait = (timeoutMs: number | undefined, commandTimeoutMs: number) =>
      waitTimeout({ replicas: 1, timeoutMs }, commandTimeoutMs, FIELD);
    expect(wait(undefined, 5_000)).toBe(1_000);
    expect(wait(undefined, 301)).toBe(151);
    expect(wait(5_000, 5_000)).toBe(5_000);
    expect([1, 99, 100, 101, 1_001].map((ms) => wait(ms, 5_000))).toEqual([1, 99, 100, 110, 1_100]);
    expect(wait(4_999, 4_999)).toBe(4_999);
    expect(() => wait(5_001, 5_000)).toThrow(`${FIELD}.timeout: 5001 ms is longer than commandTimeout (5000 ms)`);
  });
});

describe("'fsync'", () => {
  it('outlasts the second between two syncs of `appendfsync everysec`', () => {
    const wait = (commandTimeoutMs: number) => waitTimeout({ replicas: 0, timeoutMs: undefined }, commandTimeoutMs, FIELD); // prettier-ignore
    expect(wait(5_000)).toBe(3_000);
    expect(wait(500)).toBe(500);
  });

  const problem = (version: string, appendOnly = true) => fsyncProblem({ version, appendOnly } as ServerFacts);

  it('needs Redis 7.2 or Valkey, with an append-only file', () => {
    for (const version of ['7.2.0', '7.4.1', '8.0.0', '10.0.0', 'valkey 7.2.5', 'valkey 8.1.0', '']) {
      expect(problem(version)).toBeUndefined();
      expect(problem(version, false)).toContain('writes no append-only file');
    }
    for (const version of ['6.2.14', '7.0.15']) {
      expect(problem(version)).toContain(`is version ${version}; durability 'fsync' needs Redis 7.2 or Valkey`);
    }
  });
});
