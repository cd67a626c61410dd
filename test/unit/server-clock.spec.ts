import { describe, expect, it } from '@jest/globals';
import { ServerClock } from '../../lib/redis/server-clock.js';

const ARRIVAL_MS = 5_000;
const HOUR = 3_600_000;

describe('what a process knows of the clock of a server', () => {
  it('is nothing before the first answer', () => {
    expect(new ServerClock(ARRIVAL_MS).stamp()).toBe('');
  });

  it('is the time in the last answer and what has passed since, never more', async () => {
    const clock = new ServerClock(ARRIVAL_MS);
    const [serverTime, since] = [1_700_000_000_000, performance.now()];
    clock.learn(serverTime);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const [, sent, arrival] = clock.stamp().split(' ').map(Number);
    expect(sent).toBeGreaterThanOrEqual(serverTime + 19);
    expect(sent).toBeLessThanOrEqual(serverTime + performance.now() - since);
    expect(arrival).toBe(2 * ARRIVAL_MS);
  });

  it('follows the clock when that is set, either way', () => {
    const clock = new ServerClock(ARRIVAL_MS);
    clock.learn(1_700_000_000_000);
    expect(clock.learn(1_700_000_000_001)).toBe(false);
    for (const jump of [HOUR, -HOUR]) {
      expect(clock.learn(1_700_000_000_000 + jump)).toBe(true);
      expect(Number(clock.stamp().split(' ')[1]) - jump).toBeLessThan(1_700_000_001_000);
    }
  });
});
