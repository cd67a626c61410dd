import { expect, it } from '@jest/globals';
import { visitorOf } from '../../../lib/dashboard/access.js';
import { PrivateParts } from '../../../lib/dashboard/private-parts.js';

const PATIENCE_MS = 5;
const never = () => new Promise<never>(() => undefined);

it('an access that never answers lets nobody in, and keeps no request', async () => {
  const told: unknown[] = [];
  const asked = visitorOf(never, (thrown) => told.push(thrown), PATIENCE_MS);
  await expect(asked).rejects.toMatchObject({ status: 500, code: 'DASHBOARD_ACCESS_FAILED' });
  expect(told).toEqual([new Error('it did not answer within 5 ms')]);
});

it('a function of payloads that never answers hides them, and keeps no list', async () => {
  const told: unknown[] = [];
  const parts = new PrivateParts(never, 'show', (_, thrown) => told.push(thrown), PATIENCE_MS);
  const job = { instance: 'default', queue: 'q', id: 'A' };
  expect(await parts.decoded({ secret: 'tiger' }, job)).toMatchObject({ kind: 'hidden' });
  expect(told).toHaveLength(1);
});
