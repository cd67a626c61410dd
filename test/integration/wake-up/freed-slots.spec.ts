import { expect, it } from '@jest/globals';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
/** Well before a worker reads again without being told, which it does every 5 s. */
const SOON_MS = 2_500;

it('a slot that was freed by a run whose lease was known to be lost stayed empty until the next re-read', async () => {
  const started: string[] = [];
  const handle = async (_: unknown, { id, signal }: DelayedJob) => {
    started.push(id);
    if (id === 'lost') await new Promise((resolve) => signal.addEventListener('abort', resolve));
  };
  const { producer } = await here.start({
    providers: [handlerClass('slot', handle, { concurrency: 1, lease: '15s' })],
  });
  await producer.enqueue('slot', {}, { id: 'lost' });
  await eventually(() => expect(started).toEqual(['lost']));
  await producer.enqueue('slot', {}, { id: 'next' });
  // As if another process had taken it back and run it; a heartbeat, one in 5 s, tells of it.
  await here.world.redis.zrem(here.world.key('slot', 'running'), 'lost');
  await here.world.redis.hdel(here.world.key('slot', 'jobs'), 'lost');
  await eventually(() => expect(started).toEqual(['lost', 'next']), 5_000 + SOON_MS);
});

it('a worker that two claims together had filled was counted among those that wait', async () => {
  let end!: () => void;
  const ended = new Promise<void>((resolve) => (end = resolve));
  // Three claims fill it, of 200 jobs at most, and the last two are out together.
  const { producer, inspector } = await here.start({
    providers: [handlerClass('full', () => ended, { concurrency: 600 })],
  });
  await inspector.pause('full');
  await producer.enqueueMany(
    'full',
    Array.from({ length: 600 }, () => ({ payload: 1 })),
  );
  await inspector.resume('full');
  const stored = () => here.world.read('full');
  await eventually(async () => expect(Object.keys((await stored()).running)).toHaveLength(600));
  await eventually(async () => expect((await stored()).idle).toEqual({}), SOON_MS);
  expect((await stored()).meta['leader']).toBe('');
  end();
});

it('a worker that had worked off a backlog with jobs claimed ahead took itself for one of those that are woken, and was none', async () => {
  const queue = 'ahead';
  let ran = 0;
  const { producer } = await here.start({ providers: [handlerClass(queue, () => void ran++, { concurrency: 1 })] });
  for (let round = 1; round <= 20; round++) {
    await producer.enqueueMany(
      queue,
      Array.from({ length: 30 }, () => ({ payload: 1 })),
    );
    await eventually(() => expect(ran).toBe(30 * round), SOON_MS);
    await eventually(async () => expect(Object.keys((await here.world.read(queue)).idle)).toHaveLength(1), SOON_MS);
  }
}, 60_000);
