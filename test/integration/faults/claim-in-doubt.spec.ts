import { describe, expect, it, jest } from '@jest/globals';
import { DelayQueueRegistry } from '../../../lib/index.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld();
const end = endingWithEachTest();

describe('A worker that stops while it does not know what its last claim has brought', () => {
  it.each(['comes back', 'stays away'])(
    'hands these jobs back, and waits no longer for a Redis that %s',
    async (then) => {
      const queue = `doubt-${then.split(' ')[0]}`;
      const { producer, inspector } = await here.start({ options: { consume: false } });
      const proxy = end(await Proxy.before(here.world.url));
      const options = { connection: proxy.url, commandTimeout: 2_000 };
      const { app } = await here.start({ options });
      const registry = app.get(DelayQueueRegistry);
      const handle = jest.fn();
      let stopped: Promise<boolean> | undefined;
      let isAway = false;
      proxy.judge = (direction, chunk) => {
        if (isAway) return 'cut';
        if (stopped || direction !== 'reply' || !chunk.includes('what-was-claimed')) return 'pass';
        isAway = then === 'stays away';
        stopped = registry.unregister(queue);
        return 'cut';
      };
      registry.register(queue, handle, { lease: '5m' });
      await producer.enqueue(queue, 'what-was-claimed', { id: 'a' });
      await eventually(() => expect(stopped).toBeDefined());
      const cutAt = performance.now();
      expect(await stopped).toBe(true);
      if (then === 'comes back') {
        expect(await inspector.counts(queue)).toMatchObject({ due: 1, running: 0 });
        expect((await here.world.read(queue)).attempts).toEqual({});
      } else {
        expect(performance.now() - cutAt).toBeGreaterThan(1_900);
        expect(await inspector.counts(queue)).toMatchObject({ due: 0, running: 1 });
        isAway = false;
      }
      expect(handle).not.toHaveBeenCalled();
    },
  );
});
