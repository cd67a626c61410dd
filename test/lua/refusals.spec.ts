import { beforeEach, describe, expect, it } from '@jest/globals';
import { LayoutError, StoredDataError } from '../../lib/index.js';
import { SCRIPT_NAMES } from '../../lib/lua/scripts.js';
import type { ScriptName } from '../../lib/lua/scripts.js';
import { Busy } from './busy.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';
import { difference, StoredBytes } from './stored-bytes.js';

const here = shards();
let shard: Shard;
let busy: Busy;
let stored: StoredBytes;
beforeEach(async () => {
  shard = here.fresh();
  busy = await Busy.on(shard);
  stored = new StoredBytes(shard, [busy.lane.key, busy.peer.lane.key]);
});

/** What it was refused with; undefined when it was not. */
const refusalOf = (script: ScriptName) =>
  busy.calls[script]().then(
    () => undefined,
    (error: Error) => error.message,
  );

const READS_ONLY: readonly ScriptName[] = ['get', 'list', 'counts', 'moveOut'];
/** It removes keys that hold nothing; these do. */
const DOES_NOT_SUIT: readonly ScriptName[] = ['endShard'];

describe('a key of a wrong type stops a script before it has written anything', () => {
  it.each(SCRIPT_NAMES)('%s', async (script) => {
    await shard.meta({ paused: script === 'pause' ? 1 : 0 });
    const sound = await stored.read();
    expect(await refusalOf(script)).toBeUndefined();
    const written = difference(sound, await stored.read());
    expect(written.length > 0).toBe(![...READS_ONLY, ...DOES_NOT_SUIT].includes(script));

    const lane = script === 'step' ? busy.peer.lane.key : busy.lane.key;
    const wrongs: string[] = [];
    for (const key of [...shard.keys.fixed, lane]) {
      await stored.restore(sound);
      await here.world.redis.unlink(key);
      await here.world.redis.lpush(key, 'not what it should be');
      const before = await stored.read();

      const refusal = await refusalOf(script);

      const changed = difference(before, await stored.read());
      if (refusal === undefined) {
        // A script that does not need the key may go on, as long as it leaves it alone.
        if (changed.includes(key) || written.includes(key)) wrongs.push(`it went on and wrote ${key}`);
      } else {
        if (!refusal.includes('WRONGTYPE')) wrongs.push(`${key}: ${refusal}`);
        if (changed.length > 0) wrongs.push(`it was stopped by ${key} after it had written ${changed.join(', ')}`);
      }
    }
    await stored.restore(sound);
    expect(wrongs).toEqual([]);
  });

  it('and is reported as damaged data, not as an outage', async () => {
    const sound = await stored.read();
    await here.world.redis.set(shard.key('suspects'), 'not a sorted set');
    await expect(shard.producer.enqueue(shard.queue, 1, { id: 'A' })).rejects.toThrow(StoredDataError);
    await expect(shard.inspector.counts(shard.queue)).rejects.toThrow(StoredDataError);
    await stored.restore(sound);
  });
});

describe('a shard whose rules this version does not know is refused by every script', () => {
  describe.each([
    ['a newer layout', { layout: 2 }, 'layout 2 is newer'],
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
    expect((await fresh.read()).meta).toMatchObject({ layout: '1' });
    await fresh.meta({ needs: '' });
    expect(await fresh.peer().claim(1)).toMatchObject({ jobs: [{ id: 'A' }] });
  });
});
