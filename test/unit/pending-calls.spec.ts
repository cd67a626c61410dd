import { describe, expect, it } from '@jest/globals';
import type { Call, Failure } from '../../lib/producer/call.js';
import { PendingCalls } from '../../lib/producer/pending-calls.js';
import type { ShardStore } from '../../lib/redis/shard-store.js';

const store = { queue: 'mail', connection: { isClosed: false, address: 'redis:6379', refusal: undefined } };

/** What a call is told that is still waiting when its time is over. */
function toldWhenLate(answered: boolean): string {
  const pending = new PendingCalls(store as unknown as ShardStore, 3_600_000);
  let failure: Failure | undefined;
  const reject = (late: Failure) => void (failure = late);
  const call: Call = {
    script: 'cancel',
    args: [],
    bytes: 1,
    deadline: 0,
    settled: false,
    resolve: () => undefined,
    reject,
  };
  pending.admit(call);
  pending.push(call, false);
  if (answered) pending.answered();
  pending.refuseExpired(() => true);
  return failure!('a').message;
}

describe('a call that was not sent in time', () => {
  it('because others took all of it says so, and what to do', () => {
    expect(toldWhenLate(true)).toBe(
      'Redis at redis:6379 was busy for 3600000 ms with calls that this process had made before (queue "mail"): ' +
        'cancel of "a" was not sent. Repeat it, and make fewer at a time.',
    );
  });

  it('because Redis does not answer says that', () => {
    expect(toldWhenLate(false)).toBe(
      'Redis at redis:6379 did not answer for 3600000 ms (queue "mail"): cancel of "a" was not sent. Call again once Redis answers.',
    );
  });
});
