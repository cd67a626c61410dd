import { describe, expect, it } from '@jest/globals';
import { SlotPool } from '../../lib/worker/slot-pool.js';
import { eventually } from '../helpers/eventually.js';
import type { Reservation, SlotUser } from '../../lib/worker/slot-pool.js';

const SIZE = 5;

/** A shard whose jobs have not begun, as far as the pool knows it. */
function shard(pool: SlotPool) {
  const of = { held: 0, woken: 0 };
  const user: SlotUser = {
    wake: () => void of.woken++,
    wantsJobs: () => true,
    batchSlots: (asked) => Math.ceil((of.held + asked) / SIZE),
  };
  pool.join(user);
  return {
    of,
    user,
    ask(jobs: number, at = performance.now()): Reservation {
      const reservation = { user, slots: jobs, at, held: true };
      pool.reserve(reservation);
      return reservation;
    },
    answered(reservation: Reservation, jobs: number) {
      const room = pool.answered(reservation, jobs);
      of.held += room;
      return room;
    },
  };
}

describe('Slots that hold batches', () => {
  it('are taken for as many batches as the jobs make that were asked for, and may be filled up by their shard only', () => {
    const pool = new SlotPool(2, true);
    const [first, other] = [shard(pool), shard(pool)];
    const asked = first.ask(6);
    expect([pool.batchesOf(first.user), pool.batchesFor(other.user), pool.freeFor(other.user)]).toEqual([2, 0, 0]);
    expect(first.answered(asked, 1)).toBe(1);
    expect([pool.batchesOf(first.user), pool.batchesFor(other.user)]).toEqual([2, 1]);
    const theirs = other.ask(5);
    expect([pool.batchesOf(first.user), pool.batchesFor(first.user)]).toEqual([1, 1]);
    first.answered(first.ask(4), 4);
    expect(pool.freeFor(first.user)).toBe(0);
    other.answered(theirs, 0);
    expect(pool.freeFor(first.user)).toBe(1);
  });

  it('that were given to others, because a step was not answered, bring no more jobs than there are slots for', async () => {
    const pool = new SlotPool(1, true);
    const [silent, other] = [shard(pool), shard(pool)];
    const asked = silent.ask(5, performance.now() - 2_000);
    pool.wait(other.user);
    await eventually(() => expect(other.of.woken).toBe(1));
    const theirs = other.ask(5);
    expect(silent.answered(asked, 5)).toBe(0);
    other.answered(theirs, 0);
    const again = silent.ask(5, performance.now() - 2_000);
    pool.wait(other.user);
    await eventually(() => expect(other.of.woken).toBe(2));
    expect(silent.answered(again, 5)).toBe(5);
  });

  it('wake the shard that has waited longest when one is free, and none while there is none', async () => {
    const pool = new SlotPool(1, true);
    const [first, second, third] = [shard(pool), shard(pool), shard(pool)];
    const asked = first.ask(5);
    pool.wait(third.user);
    pool.wait(second.user);
    pool.freed();
    await new Promise(setImmediate);
    expect([second.of.woken, third.of.woken]).toEqual([0, 0]);
    third.user.wake = () => void (third.of.woken++, third.ask(5));
    first.answered(asked, 0);
    await new Promise(setImmediate);
    expect([second.of.woken, third.of.woken]).toEqual([0, 1]);
    pool.leave(second.user);
  });
});
