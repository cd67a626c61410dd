import { describe, expect, it } from '@jest/globals';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld({});

describe('SCRIPT FLUSH', () => {
  it('in a loop, at full load, is noticed by nobody', async () => {
    const starts = new Map<string, number>();
    const log: string[] = [];
    const handle = (_: unknown, { id }: DelayedJob) => void starts.set(id, (starts.get(id) ?? 0) + 1);
    const { producer, inspector } = await here.start({
      providers: [handlerClass('flush', handle, { concurrency: 50 })],
      log,
    });
    let flushes = 0;
    let loaded = true;
    const flushing = (async () => {
      for (; loaded; flushes++) await here.world.redis.script('FLUSH');
    })();
    const ids: string[] = [];
    for (let round = 0; round < 200; round++) {
      const results = await Promise.all(Array.from({ length: 10 }, (_, n) => producer.enqueue('flush', n)));
      ids.push(...results.map(({ id }) => id));
    }
    await eventually(async () => expect(await inspector.totals('flush')).toMatchObject({ completed: 2_000 }), 15_000);
    loaded = false;
    await flushing;

    expect(flushes).toBeGreaterThan(100);
    expect([...starts.keys()].sort()).toEqual(ids.sort());
    expect(new Set(starts.values())).toEqual(new Set([1]));
    expect(log.filter((line) => /^(warn|error) .*(script|step|reachable)/i.test(line))).toEqual([]);
  });
});
