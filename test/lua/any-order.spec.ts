import { describe, expect, it } from '@jest/globals';
import { Crowd, numbers } from './crowd.js';
import { shards } from './shards.js';

const here = shards();

describe('calls in any order', () => {
  it.each(Array.from({ length: 12 }, (_, n) => n + 1))(
    'keep each job in one place, and run or report what was accepted (seed %i)',
    async (seed) => {
      const shard = here.fresh();
      const crowd = new Crowd(shard, numbers(seed));
      for (let n = 0; n < 120; n++) {
        await crowd.act();
        expect({ problems: await shard.problems(), after: crowd.log }).toMatchObject({ problems: [] });
      }
      await crowd.drain();
      expect({ owed: [...crowd.owed], log: crowd.log }).toMatchObject({ owed: [] });
      expect((await shard.read()).jobs).toEqual({});
    },
  );
});
