import { beforeEach, describe, expect, it } from '@jest/globals';
import { LayoutError, StoredDataError } from '../../lib/index.js';
import { SCRIPT_NAMES } from '../../lib/lua/scripts.js';
import { scheduleKeys } from '../../lib/redis/keys.js';
import type { ScriptName } from '../../lib/lua/scripts.js';
import type { Settlement } from '../../lib/worker/settlement.js';
import { Busy } from './busy.js';
import { TestSession } from './peer.js';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';
import { difference, StoredBytes } from './stored-bytes.js';
import type { Bytes } from './stored-bytes.js';

const here = shards();
let shard: Shard;
let busy: Busy;
let stored: StoredBytes;
beforeEach(async () => {
  shard = here.fresh();
  busy = await Busy.on(shard);
  stored = new StoredBytes(shard, [busy.session.key, busy.peer.session.key]);
});

/** What it was refused with; undefined when it was not. */
const refusalOf = (script: ScriptName) =>
  busy.calls[script]().then(
    () => undefined,
    (error: Error) => error.message,
  );

const READS_ONLY: readonly ScriptName[] = [
  'get',
  'list',
  'counts',
  'timeline',
  'select',
  'moveOut',
  'schedules',
  'schedulesOut',
  'waitingOccurrences',
];
/** It removes keys that hold nothing; these do. */
const DOES_NOT_SUIT: readonly ScriptName[] = ['endShard'];

/** What only serves waking must not fail a script. */
const withoutWakeUps = (keys: readonly string[]) =>
  keys.filter((key) => !['idle', 'changed'].some((name) => key === shard.key(name)));

/** Gives each key in turn a wrong type. @returns what the call did wrong, which else writes `written` */
async function wrongsOf(
  { keys }: Shard,
  bytes: StoredBytes,
  sound: Bytes,
  session: string,
  call: () => Promise<void>,
  written: readonly string[],
): Promise<string[]> {
  const wrongs: string[] = [];
  for (const key of [...keys.fixed, ...scheduleKeys(keys.fixed), session]) {
    await bytes.restore(sound);
    await here.world.redis.unlink(key);
    await here.world.redis.lpush(key, 'not what it should be');
    const before = await bytes.read();

    const refusal = await call().then(
      () => undefined,
      (error: Error) => error.message,
    );

    const changed = difference(before, await bytes.read());
    if (refusal === undefined) {
      // A script that does not need the key may go on, as long as it leaves it alone.
      if (changed.includes(key) || written.includes(key)) wrongs.push(`it went on and wrote ${key}`);
    } else {
      if (!refusal.includes('WRONGTYPE')) wrongs.push(`${key}: ${refusal}`);
      if (changed.length > 0) wrongs.push(`it was stopped by ${key} after it had written ${changed.join(', ')}`);
    }
  }
  await bytes.restore(sound);
  return wrongs;
}

describe('a key of a wrong type stops a script before it has written anything', () => {
  it.each(SCRIPT_NAMES)('%s', async (script) => {
    await shard.meta({ paused: script === 'pause' ? 1 : 0 });
    const sound = await stored.read();
    expect(await refusalOf(script)).toBeUndefined();
    const written = withoutWakeUps(difference(sound, await stored.read()));
    expect(written.length > 0).toBe(![...READS_ONLY, ...DOES_NOT_SUIT].includes(script));

    const session = script === 'step' ? busy.peer.session.key : busy.session.key;
    const call = async () => void (await busy.calls[script]());
    expect(await wrongsOf(shard, stored, sound, session, call, written)).toEqual([]);
  });

  it('and is reported as damaged data, not as an outage', async () => {
    const sound = await stored.read();
    await here.world.redis.set(shard.key('quarantine'), 'not a sorted set');
    await expect(shard.producer.enqueue(shard.queue, 1, { id: 'A' })).rejects.toThrow(StoredDataError);
    await expect(shard.inspector.counts(shard.queue)).rejects.toThrow(StoredDataError);
    await stored.restore(sound);
  });
});

describe('a key of a wrong type stops also a call that reads only what it needs', () => {
  const COMPLETE: Settlement = { verb: 'complete' };
  let peer: Peer;
  let session: TestSession;
  let claim: number;
  let bytes: StoredBytes;
  beforeEach(async () => {
    shard = here.fresh();
    peer = shard.peer();
    session = new TestSession(shard);
    bytes = new StoredBytes(shard, [peer.session.key, session.key]);
    await shard.fill('A', 'B', 'C');
    claim = await peer.take('A', { hasFreeSlots: true });
    // Told to nobody yet, so that whatever leaves it must wake somebody.
    await shard.meta({ wokenAt: 0, leader: '' });
    await here.world.redis.zadd(shard.key('idle'), (await shard.now()) + 60_000, 'somebody');
  });
  const withoutRecord = () => here.world.redis.hdel(shard.key('jobs'), 'B');
  const nothingDue = () => Promise.all(['B', 'C'].map((id) => shard.producer.cancel(shard.queue, id)));

  const CALLS: Record<string, { before?: () => Promise<unknown>; call: () => Promise<unknown> }> = {
    'a step that completes a job': { call: () => peer.settle(claim, 'A', COMPLETE) },
    'a step that completes a job and claims one': {
      call: () => peer.step({ settle: [[claim, 'A', COMPLETE]], limit: 1 }),
    },
    'a step that claims a job': { call: () => peer.claim(1) },
    'a step that claims and finds an index without a record': { before: withoutRecord, call: () => peer.claim(2) },
    'a step that finds nothing and enters idle': {
      before: nothingDue,
      call: () => peer.claim(1, { hasFreeSlots: true, refreshIdle: true }),
    },
    'an enqueue of jobs whose ids nobody else has': {
      call: () => session.call('enqueue', [0, 'nd0', 'new', '\n1', `nd${HOUR}`, 'more', '\n1']),
    },
    'an enqueue of the first job': {
      before: nothingDue,
      call: () => session.call('enqueue', [0, 'nd0', 'new', '\n1']),
    },
  };

  it.each(Object.keys(CALLS))('%s', async (name) => {
    const { before, call } = CALLS[name]!;
    await before?.();
    const sound = await bytes.read();
    const again = async () => void (await call());
    await again();
    const written = withoutWakeUps(difference(sound, await bytes.read()));
    expect(written).not.toEqual([]);
    const own = name.startsWith('an enqueue') ? session.key : peer.session.key;
    expect(await wrongsOf(shard, bytes, sound, own, again, written)).toEqual([]);
    await again(); // Leaves no index without a record.
  });

  it('and had settled nothing, so that all of it is done when it is sent again', async () => {
    await withoutRecord();
    await here.world.redis.set(shard.key('dead'), 'not a sorted set');
    const settle = [[claim, 'A', COMPLETE] as const, [claim, 'stranger', COMPLETE] as const];
    await expect(peer.step({ settle, limit: 2 })).rejects.toThrow('WRONGTYPE');
    await here.world.redis.unlink(shard.key('dead'));
    expect(await peer.again()).toMatchObject({ lost: ['stranger'], jobs: [{ id: 'C' }] });
    expect(await shard.see('A')).toEqual({ state: 'none' });
  });
});

describe('a shard whose rules this version does not know is refused by every script', () => {
  describe.each([
    ['a newer layout', { layout: 3 }, 'layout 3 is newer'],
    ['a needed feature', { needs: 'rateLimit' }, '"rateLimit"'],
  ])('%s', (_, meta, why) => {
    it.each(SCRIPT_NAMES)('%s', async (script) => {
      await shard.meta(meta);
      const before = await stored.read();
      const refusal = await refusalOf(script);
      expect(refusal).toContain('DQLAYOUT');
      expect(refusal).toContain(why);
      expect(difference(before, await stored.read())).toEqual([]);
    });

    it('with a typed error that waiting does not cure', async () => {
      await shard.meta(meta);
      const { producer, inspector, queue } = shard;
      for (const call of [
        () => producer.enqueue(queue, 1),
        () => producer.cancel(queue, 'plain'),
        () => producer.get(queue, 'plain'),
        () => inspector.counts(queue),
        () => inspector.pause(queue),
      ]) {
        const error = await call().catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(LayoutError);
        expect(error).toMatchObject({ retryable: false });
      }
    });
  });

  it('this layout, written by the first enqueue, is not', async () => {
    const fresh = here.fresh();
    await fresh.fill('A');
    expect((await fresh.read()).meta).toMatchObject({ layout: '2' });
    await fresh.meta({ needs: '' });
    expect(await fresh.peer().claim(1)).toMatchObject({ jobs: [{ id: 'A' }] });
  });
});
