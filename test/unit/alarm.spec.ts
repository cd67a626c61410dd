import { describe, expect, it, jest } from '@jest/globals';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { performance as clock } from '../../lib/time-and-randomness.js';
import { Alarm } from '../../lib/worker/alarm.js';

const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

/** An alarm for `at`, and what became of it when another one, set later and for a millisecond from then, has rung. */
async function rungBeforeAnother(at: number): Promise<boolean> {
  let rung = false;
  const alarm = new Alarm(() => {
    rung = true;
  });
  alarm.set(at);
  for (let n = 0; n < 5; n++) {
    await new Promise<void>((resolve) => {
      new Alarm(resolve).set(performance.now() + 1);
    });
  }
  alarm.clear();
  return rung;
}

describe('an alarm', () => {
  it.each([2 ** 31 + 10_000, 2 ** 40])(
    'beyond what a timer holds, in %d ms, does not ring at once, nor look again and again',
    async (ms) => {
      let rung = 0;
      const looks = jest.spyOn(clock, 'now');
      const alarm = new Alarm(() => rung++);
      alarm.set(performance.now() + ms);
      for (let n = 0; n < 5; n++) await sleep(2);
      alarm.clear();
      const { length } = looks.mock.calls;
      looks.mockRestore();
      expect([rung, length]).toEqual([0, 1]);
    },
  );

  it('never rings before its moment, and is set again where a timer of Node ends before it', async () => {
    for (let n = 0; n < 40; n++) {
      const at = performance.now() + n / 9;
      const rungAt = await new Promise<number>((resolve) => {
        new Alarm(() => resolve(performance.now())).set(at);
      });
      expect(rungAt).toBeGreaterThanOrEqual(at);
    }
  });

  it('that is cleared, or set to another moment, in the last part of its wait does not ring', async () => {
    let rung = 0;
    const alarm = new Alarm(() => rung++);
    alarm.set(performance.now() + 0.2);
    alarm.clear();
    alarm.set(performance.now() + 0.2);
    alarm.set(performance.now() + 2 ** 31);
    await new Promise<void>((resolve) => {
      new Alarm(resolve).set(performance.now() + 3);
    });
    alarm.clear();
    expect(rung).toBe(0);
  });

  it('that is set to the same moment again, which has passed meanwhile, rings once and leaves no timer', async () => {
    let rung = 0;
    const alarm = new Alarm(() => rung++);
    const before = timers();
    await new Promise<void>((resolve) => {
      // In such a turn an immediate waits for the next one, while answers may come.
      setImmediate(() => {
        const at = performance.now() + 0.2;
        alarm.set(at);
        alarm.set(at + 60_000);
        while (performance.now() < at);
        alarm.set(at);
        resolve();
      });
    });
    while (rung === 0) await sleep(1);
    await sleep(5);
    expect([rung, timers() - before]).toEqual([1, 0]);
  });

  it('in the past rings', async () => {
    expect(await rungBeforeAnother(performance.now() - 1)).toBe(true);
  });

  it('that is never to ring does not', async () => {
    expect(await rungBeforeAnother(Infinity)).toBe(false);
  });
});
