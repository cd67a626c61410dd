import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayQueueProducer, fixed } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';

const here = inAWorld();

/** A busy machine takes minutes, an idle one a quarter of one. */
const LIMIT_MS = 900_000;
const RACES = Number(process.env['SIGNAL_RACES'] ?? 20_000);
const ROUND = 10_000;
/** If one side wins less often, the races show little about the other. */
const ENOUGH = 1_000;
const MOST_WAITING = 500;
/** How near to its due time an event comes: half of them hit the moment. */
const NEAR_MS = 4;

describe('An event against its deadline', () => {
  it(
    'runs each of many jobs once, and with the payload that the answer promised',
    async () => {
      const ran = new Map<string, string[]>();
      const note = (payload: string, { id }: DelayedJob) => void ran.set(id, [...(ran.get(id) ?? []), payload]);
      const queue = 'raced';
      // Each shard has calls of its own on the way; and on a busy machine they may take their time.
      const options = { queues: { [queue]: { shards: 4 } }, commandTimeout: '60s' };
      const app = await here.start({ options, providers: [handlerClass(queue, note, { concurrency: 200 })] });
      const wrong: string[] = [];
      const won = { event: 0, deadline: 0 };
      let spreadMs = 500;
      for (let raced = ROUND; raced <= RACES || Math.min(won.event, won.deadline) < ENOUGH; raced += ROUND) {
        ran.clear();
        const before = { ...won };
        const answers = await race(app.producer, queue, spreadMs);
        await eventually(
          async () => expect(await app.inspector.totals(queue)).toMatchObject({ completed: raced }),
          60_000,
        );
        await eventually(async () => expect(await app.inspector.counts(queue)).toMatchObject({ due: 0, running: 0 }));
        for (const [id, outcome] of answers) {
          const winner = outcome === 'signalled' ? 'event' : 'deadline';
          if (ran.get(id)?.join() !== winner) wrong.push(`${id}: ${outcome}, but ran for ${ran.get(id)?.join()}`);
          won[winner]++;
        }
        // On a busy machine all jobs may be due before the first event is sent, or all events before the first job runs.
        if (Math.min(won.event - before.event, won.deadline - before.deadline) < ENOUGH) spreadMs *= 2;
      }
      expect(wrong).toEqual([]);
    },
    LIMIT_MS,
  );

  it('is not signalled after its run, and makes no second one', async () => {
    const { producer, queue, runs } = await oneHandler(here, () => undefined);
    await producer.enqueue(queue, 'deadline', { id: 'A' });
    await eventually(async () => expect(await producer.get(queue, 'A')).toBeUndefined());
    expect(await producer.signal(queue, 'A', 'event')).toMatchObject({ outcome: 'notFound' });
    expect(await here.world.read(queue)).toMatchObject({ jobs: {}, due: {} });
    expect(runs).toHaveLength(1);
  });

  it('is checked like any payload, before anything is sent', async () => {
    const { producer, queue } = await oneHandler(here, () => undefined);
    await expect(producer.signal(queue, 'A', { lost: 1n } as never)).rejects.toThrow('payload.lost');
    await expect(producer.signal(queue, '', 1 as never)).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_ID' });
  });
});

/** Sends each event near the moment at which its job is due, or up to `spreadMs` before or after it, so that either wins. */
async function race(producer: DelayQueueProducer, queue: string, spreadMs: number): Promise<[string, string][]> {
  const from = Date.now() + spreadMs;
  const jobs = Array.from({ length: ROUND }, (_, n) => ({ id: `job-${n}`, at: from + (n * spreadMs) / ROUND }));
  await producer.enqueueMany(
    queue,
    jobs.map((job) => ({ ...job, payload: 'deadline' })),
  );
  const apart = (n: number) => (2 * Math.random() - 1) * (n % 2 === 0 ? NEAR_MS : spreadMs);
  const events = jobs.map(({ id, at }, n) => ({ id, at: at + apart(n) })).toSorted((a, b) => b.at - a.at);
  const answers: Promise<[id: string, outcome: string]>[] = [];
  while (events.length > 0) {
    while (events.length > 0 && events.at(-1)!.at <= Date.now()) {
      const { id } = events.pop()!;
      answers.push(producer.signal(queue, id, 'event').then(({ outcome }) => [id, outcome]));
      // On a busy machine more of them would wait for longer than a call may.
      if (answers.length % MOST_WAITING === 0) await Promise.all(answers);
    }
    await sleep(1);
  }
  return Promise.all(answers);
}

describe('A chain', () => {
  const chained = async (queue: string, options: object, fails: (job: DelayedJob) => boolean) => {
    const followed: string[] = [];
    const first = async (_: unknown, job: DelayedJob) => {
      await app.producer.enqueue(`${queue}.next`, {}, { id: `${job.id}:next`, ...options });
      await eventually(() => expect(followed.length).toBeGreaterThan(0)); // the worst case: the follow-up is done first
      await eventually(async () => expect(await app.producer.get(`${queue}.next`, `${job.id}:next`)).toBeUndefined());
      if (fails(job)) throw new Error('after the follow-up was made');
    };
    const next = (_: unknown, { id }: DelayedJob) => void followed.push(id);
    const providers = [handlerClass(queue, first, { backoff: fixed(1) }), handlerClass(`${queue}.next`, next)];
    const app = await here.start({ providers });
    await app.producer.enqueue(queue, {}, { id: 'A' });
    await eventually(async () => expect(await app.inspector.totals(queue)).toMatchObject({ completed: 1 }));
    await eventually(async () =>
      expect(await app.inspector.counts(`${queue}.next`)).toMatchObject({ due: 0, running: 0 }),
    );
    return followed;
  };
  const twice = ({ attempt }: DelayedJob) => attempt < 3;

  it('has one follow-up, however often the step before it is repeated', async () => {
    expect(await chained('chained', { uniqueFor: '7d' }, twice)).toEqual(['A:next']);
  });

  it('would have several without a time in which its id is unique', async () => {
    expect(await chained('loose', {}, twice)).toEqual(['A:next', 'A:next', 'A:next']);
  });
});
