import { describe, expect, it } from '@jest/globals';
import { DelayQueueHealth } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

describe('A process leaves jobs alone that it has no handler for', () => {
  it('and they wait, uncharged, for one that has', async () => {
    const known: unknown[] = [];
    const { producer } = await here.start({ providers: [handlerClass('known', (n) => known.push(n))] });
    const { id } = await producer.enqueue('later', 'precious', { attempts: 1 });
    const before = await here.world.read('later');
    for (let n = 0; n < 50; n++) await producer.enqueue('known', n);
    await eventually(() => expect(known).toHaveLength(50));

    expect(await here.world.read('later')).toEqual(before);
    expect(await producer.get('later', id)).toMatchObject({ state: 'due', attempts: 0 });
    const runs: unknown[] = [];
    await here.start({ providers: [handlerClass('later', (payload, { attempt }) => runs.push([payload, attempt]))] });
    await eventually(() => expect(runs).toEqual([['precious', 1]]));
  });

  it('nor does it run jobs of queues that `consume` leaves out', async () => {
    const runs: string[] = [];
    const providers = ['here', 'elsewhere'].map((queue) => handlerClass(queue, () => runs.push(queue)));
    const { producer } = await here.start({ providers, options: { consume: ['here'] } });
    await producer.enqueue('elsewhere', {});
    await producer.enqueue('here', {});
    await eventually(() => expect(runs).toEqual(['here']));
    expect((await here.world.read('elsewhere')).meta).not.toHaveProperty('seenAt');

    await here.start({ providers, options: { consume: ['elsewhere'] } });
    await eventually(() => expect(runs).toEqual(['here', 'elsewhere']));
  });

  it('and health names queues whose due jobs nobody claims', async () => {
    const { app, producer } = await here.start({ providers: [handlerClass('handled', () => undefined)] });
    await producer.enqueue('orphaned', {});
    await eventually(async () => {
      const { status, orphans } = await app.get(DelayQueueHealth).check();
      expect({ status, orphans }).toEqual({ status: 'degraded', orphans: ['orphaned'] });
    });
  });
});
