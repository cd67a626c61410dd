import 'reflect-metadata';
import { expect, it } from '@jest/globals';
import { createApp } from '../../helpers/app.js';
import type { World } from '../../helpers/world.js';

it('memory:// was asked again and again for copies that it never has, and then for the same call once more', async () => {
  const { producer, inspector, close } = await createApp({ connection: 'memory://', prefix: 'dq' } as World, {
    options: { consume: false },
  });
  try {
    for (const durability of [{ replicas: 1 }, 'fsync'] as const) {
      const reached = { outcome: 'created', durability: durability === 'fsync' ? { fsync: true } : durability };
      expect(await producer.enqueue('q', 1, { durability })).toMatchObject(reached);
      const [plain, durable] = await producer.enqueueMany('q', [{ payload: 1 }, { payload: 2, durability }]);
      expect(plain).not.toHaveProperty('durability');
      expect(durable).toMatchObject(reached);
    }
    expect(await inspector.counts('q')).toMatchObject({ due: 6 });
  } finally {
    await close();
  }
});
