import { expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

it('two queues of one process that got a job each at the same moment ran more than their concurrency', async () => {
  const queues = ['left', 'right'];
  const running: Record<string, number> = { left: 0, right: 0 };
  const most: Record<string, number> = { left: 0, right: 0 };
  const handle = (queue: string) => async () => {
    most[queue] = Math.max(most[queue]!, ++running[queue]!);
    await sleep(5);
    running[queue]!--;
  };
  const { producer, inspector } = await here.start({
    providers: queues.map((queue) => handlerClass(queue, handle(queue), { concurrency: 1 })),
  });
  for (let round = 1; round <= 10; round++) {
    await Promise.all(queues.map((queue) => producer.enqueueMany(queue, [{ payload: 1 }, { payload: 2 }])));
    await eventually(async () => {
      for (const queue of queues) expect((await inspector.totals(queue)).completed).toBe(2 * round);
    });
  }
  expect(most).toEqual({ left: 1, right: 1 });
});
