import { describe, expect, it } from '@jest/globals';
import { performance } from 'node:perf_hooks';
import { Alarm } from '../../lib/worker/alarm.js';

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
  it('beyond what a timer holds does not ring at once', async () => {
    expect(await rungBeforeAnother(performance.now() + 2 ** 31 + 10_000)).toBe(false);
    expect(await rungBeforeAnother(performance.now() + 2 ** 40)).toBe(false);
  });

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

  it('in the past rings', async () => {
    expect(await rungBeforeAnother(performance.now() - 1)).toBe(true);
  });

  it('that is never to ring does not', async () => {
    expect(await rungBeforeAnother(Infinity)).toBe(false);
  });
});
