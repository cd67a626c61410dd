import { describe, expect, it } from '@jest/globals';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

/** Runs what waits in `queue`, and tells the payloads in the order of their starts. */
async function startsOf(queue: string, count: number, concurrency: number): Promise<number[]> {
  const started: number[] = [];
  const handle = (payload: number) => void started.push(payload);
  await here.start({ providers: [handlerClass(queue, handle, { concurrency })] });
  await eventually(() => expect(started).toHaveLength(count));
  return started;
}

const shuffled = (count: number) => Array.from({ length: count }, (_, n) => (n * 37) % count);
const inOrder = (count: number) => Array.from({ length: count }, (_, n) => n);

describe('Due jobs start in the order in which they came due', () => {
  it.each([1, 7, 100])('whatever the order of enqueueing, at concurrency %i', async (concurrency) => {
    const { producer } = await here.start({ options: { consume: false } });
    const now = await here.world.now();
    for (const n of shuffled(100)) await producer.enqueue(`c${concurrency}`, n, { at: now - 1_000 + n });
    expect(await startsOf(`c${concurrency}`, 100, concurrency)).toEqual(inOrder(100));
  });

  it('and in the order of insertion when they are due in the same millisecond', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    const at = (await here.world.now()) - 1_000;
    for (const n of inOrder(30)) await producer.enqueue('same', n, { at });
    await producer.enqueueMany(
      'same',
      inOrder(300)
        .slice(30)
        .map((payload) => ({ payload, at })),
    );
    expect(await startsOf('same', 300, 40)).toEqual(inOrder(300));
  });

  it('also when the one due first was made so by hand', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    const at = (await here.world.now()) + 3_600_000;
    const ids: string[] = [];
    for (const n of inOrder(3)) ids.push((await producer.enqueue('moved', n, { at: at + n })).id);
    for (const [index, ago] of [
      [2, 30],
      [0, 20],
      [1, 10],
    ] as const) {
      await producer.reschedule('moved', ids[index]!, { at: (await here.world.now()) - ago * 1_000 });
    }
    expect(await startsOf('moved', 3, 1)).toEqual([2, 0, 1]);
  });
});
