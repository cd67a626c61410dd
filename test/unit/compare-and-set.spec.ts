import { describe, expect, it } from '@jest/globals';
import { StoredDataError, UnavailableError } from '../../lib/delay-queue.errors.js';
import { AGAIN, CompareAndSet } from '../../lib/instance/compare-and-set.js';

const of = (id: string) => ({ call: 'pauseSchedule', queue: 'q', id });

describe('changes by compare and set', () => {
  it('take turns in one process for the same id, and do not wait for other ids', async () => {
    const changes = new CompareAndSet(1_000);
    const order: string[] = [];
    let goOn = () => {};
    const held = new Promise<void>((resolve) => (goOn = resolve));
    const first = changes.run(of('a'), async () => {
      await held;
      order.push('first');
    });
    const second = changes.run(of('a'), async () => void order.push('second'));
    await changes.run(of('b'), async () => void order.push('other'));
    goOn();
    await Promise.all([first, second]);
    expect(order).toEqual(['other', 'first', 'second']);
  });

  it('go on after one that failed', async () => {
    const changes = new CompareAndSet(1_000);
    const failed = changes.run(of('a'), () => Promise.reject(new StoredDataError('no')));
    const next = changes.run(of('a'), () => Promise.resolve(2));
    await expect(failed).rejects.toThrow('no');
    expect(await next).toBe(2);
  });

  it('fail together, without a try, when Redis is away for the one before: not one deadline after the other', async () => {
    const changes = new CompareAndSet(0);
    const failed = changes.run(of('a'), () => Promise.reject(new UnavailableError('away')));
    let tries = 0;
    const others = Array.from({ length: 5 }, () => changes.run(of('a'), async () => ++tries));
    await expect(failed).rejects.toThrow('away');
    for (const other of others) {
      await expect(other).rejects.toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', maybeAccepted: false, id: 'a' });
      await expect(other).rejects.toThrow(/^pauseSchedule\("q", "a"\): .*Nothing was changed; try again\.$/);
    }
    expect(tries).toBe(0);
    expect(await changes.run(of('a'), async () => ++tries)).toBe(1);
  });

  it('are tried again while others are first, and name the call when they never get through', async () => {
    const changes = new CompareAndSet(1_000, 5);
    let tries = 0;
    expect(await changes.run(of('a'), async () => (++tries < 5 ? AGAIN : tries))).toBe(5);
    const lost = changes.run(of('a'), () => Promise.resolve(AGAIN));
    await expect(lost).rejects.toThrow(/^pauseSchedule\("q", "a"\): .*5 times.*Nothing was changed; try again\.$/);
  });
});
