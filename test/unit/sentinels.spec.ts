import { describe, expect, it } from '@jest/globals';
import { createClient } from '../../lib/redis/redis.client.js';

const SENTINELS = { sentinels: [{ host: 'sentinel.invalid', port: 26_379 }], name: 'jobs' };
const detects = (connection: Parameters<typeof createClient>[0]) =>
  (createClient(connection, 'default', 'test').options as { failoverDetector?: boolean }).failoverDetector;

describe('a client of Sentinels', () => {
  it('leaves a master that was replaced at once, not when that is demoted ten seconds later', () => {
    expect(detects(SENTINELS)).toBe(true);
  });

  it('does not when the application says so, and no other client does', () => {
    expect(detects({ ...SENTINELS, failoverDetector: false })).toBe(false);
    expect(detects({ host: 'redis.invalid' })).toBe(false);
  });
});
