import { expect, it } from '@jest/globals';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';
import { secondCopy } from '../../helpers/second-copy.js';

const here = inAWorld();
const other = await secondCopy();

it('a SnoozeJob and a DiscardJob of another copy of the package are no failures', async () => {
  const { queue, producer, inspector, becomes } = await oneHandler(here, (payload) => {
    throw payload === 'later' ? new other.SnoozeJob('1h') : new other.DiscardJob('no use');
  });
  const later = await producer.enqueue(queue, 'later');
  const never = await producer.enqueue(queue, 'never');
  await becomes(later.id, { state: 'delayed', attempts: 0 });
  const dead = await becomes(never.id, { state: 'dead', deadReason: 'discarded' });
  expect(dead.lastError?.message).toBe('no use');
  expect(await inspector.totals(queue)).toMatchObject({ retried: 0, dead: 1 });
});

it('a codec that throws the UnknownCodecError of another copy has its job handed back, uncharged', async () => {
  const codec = {
    name: 'keys',
    encode: (payload: unknown) => Buffer.from(JSON.stringify(payload)),
    decode: (): unknown => {
      throw new other.UnknownCodecError('no key here');
    },
  };
  const runs: unknown[] = [];
  const queue = 'locked';
  const providers = [handlerClass(queue, (payload) => void runs.push(payload))];
  const { producer } = await here.start({ providers, options: { codec } });
  const { id } = await producer.enqueue(queue, 1);
  await eventually(async () => {
    const { attempts, due } = await here.world.read(queue);
    expect({ attempts, due: Object.keys(due) }).toEqual({ attempts: { [id]: '0 0 0 0' }, due: [id] });
    expect(due[id]).toBeGreaterThan((await here.world.now()) + 1_000);
  });
  expect(runs).toEqual([]);
});
