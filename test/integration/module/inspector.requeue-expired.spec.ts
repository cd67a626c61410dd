import { expect, it } from '@jest/globals';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';
import { eventually } from '../../helpers/eventually.js';

const here = inAWorld();

it('a job that had expired and was requeued expired again at once', async () => {
  const { producer, inspector, queue, runs, becomes } = await oneHandler(here, () => undefined);
  const at = new Date((await here.world.now()) - 60_000);
  await producer.enqueue(queue, {}, { id: 'A', at, expiresIn: '30s', keepExpired: true });
  await becomes('A', { state: 'dead', deadReason: 'expired' });
  expect(await inspector.requeueDead(queue, ['A'])).toEqual({ requeued: 1, remaining: 0 });
  await eventually(() => expect(runs.map(({ id }) => id)).toEqual(['A']));
  await eventually(async () => expect(await here.world.read(queue)).toMatchObject({ jobs: {}, dead: {} }));
});
