import { describe, expect, it } from '@jest/globals';
import { Payloads } from '../../lib/job/payloads.js';
import { parseSnapshot } from '../../lib/redis/job-snapshot.js';

describe('get() and list() of a job', () => {
  const payloads = new Payloads({ codec: ['json'], compressAbove: undefined, maxPayloadBytes: 1_000 });
  const snapshot = (attempts: string, error: string) =>
    parseSnapshot('id', 'mail', ['x', '1', attempts, error, ''], 10, payloads);

  it('threw when its stored error was of other types', () => {
    const error = { name: 5, message: {}, stack: [], at: { toString: 1, valueOf: 1 } };
    const { lastError } = snapshot('', `exhausted\n${JSON.stringify(error)}`);
    expect(lastError).toEqual({ name: 'Error', message: '', at: expect.any(Date) });
    expect(lastError!.at.getTime()).toBeNaN();
  });

  it.each(['-1 -1 -1', '1e999', '0.5'])('reported attempts that are no number of attempts: %s', (attempts) => {
    expect(snapshot(attempts, '').attempts).toBe(0);
  });
});
