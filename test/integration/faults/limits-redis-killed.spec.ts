import { expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { fixed, SnoozeJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

// On disk before it is answered: what Redis itself may lose is not what is asked here.
const here = inAWorld({ appendfsync: 'always' });

const KILLS = 20;
const GROUPS = 8;
const JOBS_OF_A_GROUP = 150;
/** So many more have started when Redis is killed again. */
const BETWEEN_KILLS = 50;

interface Numbered {
  readonly group: string;
  readonly n: number;
}

/** Sees each start, and notes whoever starts beside or before another one of its group. */
class Order {
  readonly violations: string[] = [];
  starts = 0;
  readonly #runs = new Map<string, number>();
  readonly #ended = new Map<string, number>();
  readonly #running = new Map<string, number>();

  /** @returns how often the job has started */
  start({ group, n }: Numbered): number {
    this.starts++;
    const running = this.#running.get(group);
    if (running !== undefined) this.violations.push(`${group}: ${n} started while ${running} ran`);
    const next = (this.#ended.get(group) ?? -1) + 1;
    if (n !== next) this.violations.push(`${group}: ${n} started when ${next} was next`);
    this.#running.set(group, n);
    const runs = (this.#runs.get(`${group}${n}`) ?? 0) + 1;
    this.#runs.set(`${group}${n}`, runs);
    return runs;
  }

  end({ group, n }: Numbered, isOver: boolean): void {
    this.#running.delete(group);
    if (isOver) this.#ended.set(group, n);
  }
}

it('groups of one whose retries block keep their order, however often Redis is killed in the middle', async () => {
  const order = new Order();
  const handle = async (payload: Numbered) => {
    const runs = order.start(payload);
    await sleep(3);
    const [fails, snoozes] = [payload.n % 3 === 0, payload.n % 5 === 1];
    order.end(payload, runs > 1 || !(fails || snoozes));
    if (runs === 1 && fails) throw new Error('the first attempt fails');
    if (runs === 1 && snoozes) throw new SnoozeJob(10);
  };
  const queue = 'killed';
  const options = { concurrency: 10, backoff: fixed(10), groups: { concurrency: 1, retries: 'block' } } as const;
  const [{ producer, inspector }] = await Promise.all(
    [1, 2].map(() => here.start({ providers: [handlerClass(queue, handle, options)] })),
  );
  await inspector.pause(queue);
  const at = (await here.world.now()) - 60_000;
  const jobs = Array.from({ length: GROUPS * JOBS_OF_A_GROUP }, (_, job) => {
    const [group, n] = [`g${job % GROUPS}`, Math.floor(job / GROUPS)];
    return { payload: { group, n }, group, at: at + n };
  });
  await producer.enqueueMany(queue, jobs);
  await inspector.resume(queue);
  for (let kills = 0; kills < KILLS; kills++) {
    const before = order.starts;
    await eventually(() => expect(order.starts).toBeGreaterThan(before + BETWEEN_KILLS), 60_000);
    await here.server.kill('SIGKILL');
    await here.server.restart();
  }
  await eventually(
    async () => expect(await inspector.totals(queue)).toMatchObject({ completed: jobs.length }),
    120_000,
  );
  expect(order.violations).toEqual([]);
  expect(await here.world.problems(queue)).toEqual([]);
});
