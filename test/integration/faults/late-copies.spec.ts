import { describe, expect, it } from '@jest/globals';
import { connect } from 'node:net';
import { DelayQueueConsumer, UnavailableError } from '../../../lib/index.js';
import type { ScriptName } from '../../../lib/lua/scripts.js';
import { MemoryStore } from '../../../lib/memory/memory.store.js';
import { VirtualClock } from '../../../lib/testing/virtual-clock.js';
import { createApp } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';
import { callsOf } from '../../helpers/script-calls.js';
import { World } from '../../helpers/world.js';

/** Of its own: what was held back goes to it without a word of introduction. */
const here = inAWorld({});

/** Holds back the next call of a script, or the n-th, and cuts its connection. @returns what lets the server have it after all */
function holdBack(
  proxy: Proxy,
  script: ScriptName,
  nth = 1,
): { arrived: () => boolean; deliver: () => Promise<string> } {
  const isCalled = callsOf(script);
  let held: Buffer | undefined;
  let calls = 0;
  proxy.judge = (direction, chunk) => {
    if (held || direction === 'reply' || !isCalled(chunk) || ++calls < nth) return 'pass';
    held = chunk;
    return 'cut';
  };
  const deliver = () =>
    new Promise<string>((resolve, reject) => {
      const { hostname, port } = new URL(here.server.url);
      const socket = connect(Number(port), hostname, () => socket.write(held!));
      socket.on('error', reject);
      socket.once('data', (reply) => {
        socket.destroy();
        resolve(reply.toString());
      });
    });
  return { arrived: () => held !== undefined, deliver };
}

async function behindAProxy() {
  const proxy = await Proxy.before(here.server.url);
  const app = await createApp(here.world, { options: { connection: proxy.url } });
  // The scripts are known by their hashes from now on, and the server's clock as well.
  const consumer = app.app.get(DelayQueueConsumer);
  const close = async () => {
    await app.close();
    await proxy.close();
  };
  return { ...app, consumer, proxy, close };
}

async function warmUp({ producer, consumer }: Awaited<ReturnType<typeof behindAProxy>>, queue: string): Promise<void> {
  await producer.enqueue(queue, 'first');
  const [job] = await eventually(async () => {
    const jobs = await consumer.pull(queue);
    expect(jobs).toHaveLength(1);
    return jobs;
  });
  await job!.complete();
  expect(await consumer.pull(queue)).toEqual([]);
}

describe('a copy of a step that arrives when its resend was answered', () => {
  it('claims nothing for nobody, although the step had found nothing', async () => {
    const worker = await behindAProxy();
    const other = await here.start();
    await warmUp(worker, 'late');
    const copy = holdBack(worker.proxy, 'step');
    expect(await worker.consumer.pull('late')).toEqual([]);
    expect(copy.arrived()).toBe(true);

    await other.producer.enqueue('late', {}, { id: 'A', attempts: 1 });
    await copy.deliver();
    expect(await other.producer.get('late', 'A')).toMatchObject({ state: 'due', attempts: 0 });
    expect(await here.world.read('late')).toMatchObject({ running: {}, leases: {} });
    await worker.close();
  });

  it('claims nothing either when its process has left', async () => {
    const worker = await behindAProxy();
    const other = await here.start();
    await warmUp(worker, 'left');
    const copy = holdBack(worker.proxy, 'step');
    expect(await worker.consumer.pull('left')).toEqual([]);
    await worker.close();

    await other.producer.enqueue('left', {}, { id: 'A', attempts: 1 });
    expect(await copy.deliver()).toMatch(/DQSTALE/);
    expect(await other.producer.get('left', 'A')).toMatchObject({ state: 'due', attempts: 0 });
  });
});

describe('a copy of an enqueue that arrives when its resend was answered', () => {
  it('makes no second job when its process has left and the first one has run', async () => {
    const worker = await behindAProxy();
    const other = await here.start();
    await warmUp(worker, 'twice');
    const copy = holdBack(worker.proxy, 'enqueue');
    await worker.producer.enqueue('twice', {}, { id: 'A' });
    expect(copy.arrived()).toBe(true);
    expect(await worker.consumer.take('twice')).toEqual([{}]);
    await worker.close();

    expect(await copy.deliver()).toMatch(/DQSTALE/);
    expect(await other.producer.get('twice', 'A')).toBeUndefined();
  });
});

describe('a copy of a pause that arrives late', () => {
  it('does not stop a queue that was resumed since, by whomever', async () => {
    const gaveUp = await behindAProxy();
    const other = await here.start();
    await warmUp(gaveUp, 'paused');
    await gaveUp.inspector.resume('paused'); // The script is known by its hash.
    const copy = holdBack(gaveUp.proxy, 'pause', 2);
    await expect(gaveUp.inspector.pause('paused')).rejects.toThrow(UnavailableError);
    await other.inspector.resume('paused');
    expect(await copy.deliver()).toMatch(/0/);
    expect(await other.inspector.counts('paused')).toMatchObject({ paused: false });
    await other.inspector.pause('paused');
    expect(await other.inspector.counts('paused')).toMatchObject({ paused: true });
    await gaveUp.close();
  });

  it('does not refuse what is published since', async () => {
    const gaveUp = await behindAProxy();
    const other = await here.start();
    await warmUp(gaveUp, 'published');
    await gaveUp.inspector.resumePublishing('published');
    const copy = holdBack(gaveUp.proxy, 'pausePublishing', 2);
    await expect(gaveUp.inspector.pausePublishing('published')).rejects.toThrow(UnavailableError);
    await other.inspector.resumePublishing('published');
    await copy.deliver();
    await expect(other.producer.enqueue('published', {})).resolves.toMatchObject({ outcome: 'created' });
    await gaveUp.close();
  });
});

it.each([
  ['ahead', 2 * 3_600_000],
  ['back', -2 * 3_600_000],
])('a clock of the server that jumps %s costs no call: whoever is refused as late asks again', async (_, jump) => {
  const world = await World.open('memory://');
  const app = await createApp(world, { options: { connection: world.url } });
  const store = MemoryStore.named(world.url);
  const consumer = app.app.get(DelayQueueConsumer);
  await app.producer.enqueue('jumps', 1);
  const [before] = await consumer.pull('jumps');
  store.clock = new VirtualClock(store.clock.now() + jump);
  await before!.complete();
  await app.producer.enqueue('jumps', 2, { at: 0 });
  const [after] = await eventually(async () => {
    const jobs = await consumer.pull('jumps');
    expect(jobs).toHaveLength(1);
    return jobs;
  });
  await after!.complete();
  expect(await app.inspector.totals('jumps')).toMatchObject({ completed: 2 });
  await app.close();
  await world.close();
});

describe.each([
  ['resume', 'pause'],
  ['resumePublishing', 'pausePublishing'],
] as const)('a %s', (resume, pause) => {
  async function onAClock() {
    const world = await World.open('memory://');
    const { inspector, close } = await createApp(world, { options: { connection: world.url } });
    const store = MemoryStore.named(world.url);
    await inspector[resume]('slips'); // Whatever is asked of a server once was asked.
    const start = store.clock.now();
    /** The next calls find these times, one each, in ms from now; the last one remains. */
    const finds = (...times: number[]) => {
      store.clock = { now: () => start + (times.length > 1 ? times.shift()! : times[0]!) };
    };
    const isPaused = async () => {
      const { paused, publishingPaused } = await inspector.counts('slips');
      return paused || publishingPaused;
    };
    return { inspector, finds, isPaused, close: () => close().then(() => world.close()) };
  }

  it(`ends a ${pause}, although the clock of the server has slipped back since`, async () => {
    const { inspector, finds, isPaused, close } = await onAClock();
    finds(1_000);
    await inspector[pause]('slips');
    expect(await isPaused()).toBe(true);
    // When it arrives, the time of the pause has come again.
    finds(990, 1_010);
    await inspector[resume]('slips');
    expect(await isPaused()).toBe(false);
    await close();
  });
});

it('a process whose calls all got their answers leaves nothing behind', async () => {
  const worker = await behindAProxy();
  await warmUp(worker, 'clean');
  await worker.close();
  expect(await here.world.redis.keys(`${here.world.key('clean', 'session')}*`)).toEqual([]);
});
