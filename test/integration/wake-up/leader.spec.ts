import { expect, it } from '@jest/globals';
import { DelayQueueConsumer } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
/** Well before the role of a leader that says nothing runs out, which takes 3 to 6 s. */
const SOON_MS = 2_000;

const stored = (queue: string) => here.world.read(queue);

it('a process that stopped while its jobs went on kept the role of the leader: what became due started late elsewhere', async () => {
  let end!: () => void;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const settings = () => ({
    providers: [handlerClass('stopping', () => ended, { concurrency: 2 })],
    options: { drainTimeout: '20s' } as const,
  });
  const first = await here.start(settings());
  await first.producer.enqueue('stopping', {});
  await eventually(async () => expect(Object.keys((await stored('stopping')).running)).toHaveLength(1));
  const { idle } = await stored('stopping');
  const [name] = Object.keys(idle) as [string];
  expect((await stored('stopping')).meta['leader']).toMatch(name);
  await here.start(settings());
  await eventually(async () => expect(Object.keys((await stored('stopping')).idle)).toHaveLength(2));
  const closing = first.app.close();
  await eventually(async () => {
    const after = await stored('stopping');
    expect(after.idle).not.toHaveProperty([name]);
    expect(after.meta['leader']).not.toMatch(name);
  }, SOON_MS);
  expect(Object.keys((await stored('stopping')).running)).toHaveLength(1);
  end();
  await closing;
});

it('a pull() that was over kept the role of the leader, and its place among those that are woken', async () => {
  const { app } = await here.start();
  expect(await app.get(DelayQueueConsumer).pull('pulled', { wait: 200 })).toEqual([]);
  await eventually(async () => {
    const { idle, meta } = await stored('pulled');
    expect({ idle, leader: meta['leader'] }).toEqual({ idle: {}, leader: '' });
  }, SOON_MS);
});

it('a pull() that did not wait took the role of the leader: those that wait elsewhere started what became due late', async () => {
  const { app } = await here.start();
  expect(await app.get(DelayQueueConsumer).pull('polled')).toEqual([]);
  const { idle, meta } = await stored('polled');
  expect(idle).toEqual({});
  expect(meta['leader']).toBeUndefined();
});
