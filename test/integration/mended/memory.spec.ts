import 'reflect-metadata';
import { expect, it } from '@jest/globals';
import { createApp } from '../../helpers/app.js';
import type { World } from '../../helpers/world.js';

it('memory:// was asked again and again for copies that it never has, and then for the same call once more', async () => {
  const { producer, inspector, close } = await createApp({ url: 'memory://', prefix: 'dq' } as World, {
    options: { consume: false },
  });
  try {
    for (const durability of [{ replicas: 1 }, 'fsync'] as const) {
      const refused = { code: 'ERR_DQ_UNSAFE_SERVER', retryable: false };
      await expect(producer.enqueue('q', 1, { durability })).rejects.toMatchObject(refused);
      await expect(producer.enqueueMany('q', [{ payload: 1 }, { payload: 2, durability }])).rejects.toMatchObject(
        refused,
      );
    }
    expect(await inspector.counts('q')).toMatchObject({ due: 0 });
  } finally {
    await close();
  }
});
