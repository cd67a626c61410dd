import { expect, it } from '@jest/globals';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';
import { callsOf } from '../../helpers/script-calls.js';
import { WorkerProcess } from '../../helpers/worker-process.js';

const here = inAWorld();
const endWithTest = endingWithEachTest();
const HOUR = 3_600_000;
let queues = 0;
const fresh = () => `killed-${queues++}`;

/** Keys that are no session of a producer or a worker: those go by themselves. */
const keys = async (queue: string) => (await here.world.keys(queue)).filter((name) => !name.startsWith('session:'));

const SHARDS = 4;
const NAME = SHARDS + 1; // after the shards, what says how many these are; after that, the name
it.each([1, 2, SHARDS, NAME])(
  'a removal whose process was killed half-way, after %i of its steps, is finished by the next one; the queue is named until then',
  async (step) => {
    const queue = fresh();
    const { producer, inspector } = await here.start({ options: { queues: { [queue]: { shards: SHARDS } } } });
    await producer.enqueueMany(
      queue,
      Array.from({ length: 1_000 }, (_, n) => ({ payload: n, delay: HOUR })),
    );
    const shards = Array.from({ length: SHARDS }, (_, n) => `${queue}:${n}`);
    const left = async () => (await Promise.all(shards.map(keys))).filter((names) => names.length > 0).length;
    expect(await left()).toBe(SHARDS);

    const proxy = endWithTest(await Proxy.before(here.world.url));
    const options = { consume: false, connection: proxy.url };
    const worker = endWithTest(await WorkerProcess.start(here.world, { queue: fresh(), options }));
    const ends = callsOf('endShard');
    const isStep = (direction: string, chunk: Buffer) =>
      direction === 'request' && (ends(chunk) || /srem/i.test(chunk.toString('latin1')));
    // The driver sends the text of a script once per connection: from here on its hash.
    let isWarm = false;
    proxy.judge = (direction, chunk) => ((isWarm ||= isStep(direction, chunk)), 'pass');
    worker.remove(fresh());
    await eventually(() => expect(isWarm).toBe(true));
    let steps = 0;
    proxy.judge = (direction, chunk) => {
      if (isStep(direction, chunk)) steps++;
      return steps > step ? 'swallow' : 'pass';
    };
    worker.remove(queue);
    await eventually(() => expect(steps).toBeGreaterThan(step));
    await worker.kill();
    expect(await left()).toBe(Math.max(0, SHARDS - step));
    expect(await inspector.queues()).toContain(queue);

    // By a process that does not know of the shards, as well.
    const { inspector: again } = await here.start({ options: { consume: false } });
    await again.remove(queue, { force: true });
    expect([await left(), await keys(queue)]).toEqual([0, []]);
    expect(await again.queues()).not.toContain(queue);
    expect(await again.remove(queue)).toEqual({ removed: 0 });
  },
);
