import { describe, expect, it } from '@jest/globals';
import { StoredDataError } from '../../lib/index.js';
import { decodeEnvelope } from '../../lib/job/envelope.js';

describe('a stored header with fields of other types', () => {
  const sealed = (fields: object) => `1-${','.repeat(14)}${JSON.stringify(fields)}\n{}`;

  it.each([{ c: 5 }, { c: ['a'] }, { c: { user: 5 } }, { a: -5 }, { a: 0.5 }, { a: 'x' }, { t: -1 }, { t: '1s' }])(
    'reached handlers: %j',
    (fields) => expect(() => decodeEnvelope(sealed(fields))).toThrow(StoredDataError),
  );

  it.each([null, -1, 'text', { traceparent: 5 }])('kept no job from running when it was only the trace: %j', (w) => {
    expect(decodeEnvelope(sealed({ w })).header.trace).toBeUndefined();
  });
});
