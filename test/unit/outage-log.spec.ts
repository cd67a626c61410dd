import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { DelayQueueLogger } from '../../lib/delay-queue.logger.js';
import { OutageLog } from '../../lib/redis/outage-log.js';
import { performance } from '../../lib/time-and-randomness.js';
import { eventually } from '../helpers/eventually.js';

const MINUTE_MS = 300;

function watched(minuteMs = MINUTE_MS) {
  const lines: string[] = [];
  const logger = {
    warn: (line: string) => void lines.push(`warn ${line}`),
    log: (line: string) => void lines.push(`log ${line}`),
  };
  const outages = new OutageLog(logger as unknown as DelayQueueLogger, 'redis:6379', minuteMs);
  return { lines, outages };
}

const LOST = 'warn Redis at redis:6379 is not reachable (read ECONNRESET). Retrying; jobs wait.';
const BACK = 'log Redis at redis:6379 is back after 3 ms.';
const lose = (outages: OutageLog, times: number) => {
  for (let n = 0; n < times; n++) {
    outages.begins('is not reachable (read ECONNRESET)', false);
    outages.ends('3 ms');
  }
};

afterEach(() => void jest.restoreAllMocks());

describe('A connection that comes and goes', () => {
  it('is logged five times within a minute, and then as a sum', async () => {
    const { lines, outages } = watched();
    lose(outages, 40);
    expect(lines).toEqual(Array.from({ length: 5 }, () => [LOST, BACK]).flat());
    lines.length = 0;
    await eventually(() => expect(lines).toHaveLength(1));
    expect(lines).toEqual([
      'warn Redis at redis:6379 comes and goes: 40 times within a minute, the last time because it is not reachable (read ECONNRESET).',
    ]);
    lose(outages, 1);
    expect(lines.slice(1)).toEqual([LOST, BACK]);
  });

  it('is counted anew once its sum is told, also where the timer fires before the minute is over', async () => {
    const { lines, outages } = watched(20);
    jest.spyOn(performance, 'now').mockReturnValue(1_000);
    lose(outages, 6);
    lines.length = 0;
    await eventually(() => expect(lines).toHaveLength(1));
    lose(outages, 1);
    expect(lines.slice(1)).toEqual([LOST, BACK]);
  });

  it('has its sum told first, where the next outage comes before a timer that is late', () => {
    const { lines, outages } = watched(60_000);
    const clock = jest.spyOn(performance, 'now').mockReturnValue(1_000);
    lose(outages, 7);
    lines.length = 0;
    clock.mockReturnValue(61_000);
    lose(outages, 1);
    expect(lines).toEqual([expect.stringContaining('comes and goes: 7 times within a minute'), LOST, BACK]);
    outages.stop();
  });

  it('and stays away has a line, and one when it is back', async () => {
    const { lines, outages } = watched();
    lose(outages, 5);
    outages.begins('is not reachable (ECONNREFUSED)', false);
    lines.length = 0;
    await eventually(() => expect(lines).toHaveLength(1));
    outages.ends('3 ms');
    expect(lines).toEqual([
      'warn Redis at redis:6379 comes and goes: 6 times within a minute, and is still away because it is not reachable (ECONNREFUSED).',
      BACK,
    ]);
  });

  it('and is refused has the line of the refusal, and one when it is back', () => {
    const { lines, outages } = watched(60_000);
    lose(outages, 5);
    outages.begins('is not reachable (ECONNREFUSED)', false);
    outages.loggedOtherwise();
    lines.length = 0;
    outages.ends('3 ms');
    expect(lines).toEqual([BACK]);
    outages.stop();
  });

  it('says nothing after its end', async () => {
    const { lines, outages } = watched(20);
    lose(outages, 6);
    const told = lines.length;
    outages.stop();
    const { lines: others, outages: other } = watched(20);
    lose(other, 6);
    await eventually(() => expect(others).toHaveLength(11));
    expect(lines).toHaveLength(told);
  });
});
