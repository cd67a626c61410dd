import { describe, expect, it, jest } from '@jest/globals';
import { DelayQueueRegistry } from '../../../lib/index.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld();
const end = endingWithEachTest();

/** A worker whose handler is unregistered in the moment in which the answer to its claim is lost. */
async function stoppedInDoubt(queue: string, staysAway: boolean) {
  const { producer, inspector } = await here.start({ options: { consume: false } });
  const proxy = end(await Proxy.before(here.world.url));
  const { app } = await here.start({ options: { connection: proxy.url, commandTimeout: 2_000 } });
  const registry = app.get(DelayQueueRegistry);
  const handle = jest.fn();
  const stopping = { at: 0, over: undefined as Promise<boolean> | undefined };
  let isAway = false;
  proxy.judge = (direction, chunk) => {
    if (isAway) return 'cut';
    if (stopping.over || direction !== 'reply' || !chunk.includes('what-was-claimed')) return 'pass';
    isAway = staysAway;
    stopping.at = performance.now();
    stopping.over = registry.unregister(queue);
    return 'cut';
  };
  registry.register(queue, handle, { lease: '5m' });
  await producer.enqueue(queue, 'what-was-claimed', { id: 'a' });
  await eventually(() => expect(stopping.over).toBeDefined());
  expect(await stopping.over).toBe(true);
  const tookMs = performance.now() - stopping.at;
  isAway = false;
  expect(handle).not.toHaveBeenCalled();
  return { tookMs, counts: await inspector.counts(queue) };
}

describe('A worker that stops while it does not know what its last claim has brought', () => {
  it('asks, and hands these jobs back', async () => {
    const { counts } = await stoppedInDoubt('doubt-soon', false);
    expect(counts).toMatchObject({ due: 1, running: 0 });
    expect((await here.world.read('doubt-soon')).attempts).toEqual({});
  });

  it('asks as long as another job of it runs, and hands these jobs back', async () => {
    const queue = 'doubt-beside-another';
    const { producer } = await here.start({ options: { consume: false } });
    const proxy = end(await Proxy.before(here.world.url));
    const { app } = await here.start({ options: { connection: proxy.url, commandTimeout: 500 } });
    const registry = app.get(DelayQueueRegistry);
    const ran: unknown[] = [];
    let finish!: () => void;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    let [isAway, over] = [false, undefined as Promise<boolean> | undefined];
    proxy.judge = (direction, chunk) => {
      if (isAway) return 'cut';
      if (over || direction !== 'reply' || !chunk.includes('what-was-claimed')) return 'pass';
      isAway = true;
      over = registry.unregister(queue);
      return 'cut';
    };
    const handle = (payload: unknown) => finished.then(() => void ran.push(payload));
    registry.register(queue, handle, { lease: '5m', concurrency: 2 });
    await producer.enqueue(queue, 'first', { id: 'a' });
    await eventually(async () => expect((await here.world.read(queue)).running).toHaveProperty('a'));
    await producer.enqueue(queue, 'what-was-claimed', { id: 'b' });
    await eventually(() => expect(over).toBeDefined());
    const since = performance.now();
    await eventually(() => expect(performance.now() - since).toBeGreaterThan(1_500));
    isAway = false;
    await eventually(async () => expect((await here.world.read(queue)).due).toHaveProperty('b'));
    finish();
    expect(await over).toBe(true);
    expect(ran).toEqual(['first']);
    expect(await here.world.read(queue)).toMatchObject({ running: {}, attempts: {} });
  });

  it('asks for no longer than `commandTimeout` when Redis stays away', async () => {
    const { tookMs, counts } = await stoppedInDoubt('doubt-away', true);
    expect(tookMs).toBeGreaterThan(1_900);
    expect(counts).toMatchObject({ due: 0, running: 1 });
  });
});
