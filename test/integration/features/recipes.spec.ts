import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayQueueProducer, fixed } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';

const here = inAWorld();

/** A busy machine takes minutes, an idle one a third of one. */
const LIMIT_MS = 900_000;
const ROUNDS = 10;
const RACES = 10_000;
/** Of one round. */
const WINDOW_MS = 1_000;
const MOST_WAITING = 500;
/** How far from its due time an event comes: half of them hit the moment; of the others some come too early or too late on any machine. */
const JITTER_MS = [4, WINDOW_MS] as const;

describe('An event against its deadline', () => {
  it(
    'runs each of 100,000 jobs once, and with the payload that the answer promised',
    async () => {
      const ran = new Map<string, string[]>();
      const note = (payload: string, { id }: DelayedJob) => void ran.set(id, [...(ran.get(id) ?? []), payload]);
      const queue = 'raced';
      // Each shard has calls of its own on the way; and on a busy machine they may take their time.
      const options = { queues: { [queue]: { shards: 16 } }, commandTimeout: '60s' };
      const app = await here.start({ options, providers: [handlerClass(queue, note, { concurrency: 50 })] });
      const wrong: string[] = [];
      let [events, deadlines] = [0, 0];
      for (let round = 0; round < ROUNDS; round++) {
        ran.clear();
        const answers = await race(app.producer, queue);
        const completed = (round + 1) * RACES;
        await eventually(async () => expect(await app.inspector.totals(queue)).toMatchObject({ completed }), 60_000);
        await eventually(async () => expect(await app.inspector.counts(queue)).toMatchObject({ due: 0, running: 0 }));
        for (const [id, outcome] of answers) {
          const promised = outcome === 'signalled' ? 'event' : 'deadline';
          if (ran.get(id)?.join() !== promised) wrong.push(`${id}: ${outcome}, but ran for ${ran.get(id)?.join()}`);
          if (promised === 'event') events++;
          else deadlines++;
        }
      }
      expect(wrong).toEqual([]);
      expect(events + deadlines).toBe(ROUNDS * RACES);
      // Both came first often enough for this to show something.
      expect(Math.min(events, deadlines)).toBeGreaterThan(1_000);
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

/** Sends each event at about the moment at which its job is due. */
async function race(producer: DelayQueueProducer, queue: string): Promise<[id: string, outcome: string][]> {
  const from = Date.now() + WINDOW_MS;
  const jobs = Array.from({ length: RACES }, (_, n) => ({ id: `job-${n}`, at: from + (n * WINDOW_MS) / RACES }));
  await producer.enqueueMany(
    queue,
    jobs.map((job) => ({ ...job, payload: 'deadline' })),
  );
  const events = jobs.map(({ id, at }, n) => ({ id, at: at + (2 * Math.random() - 1) * JITTER_MS[n % 2]! }));
  events.sort((a, b) => a.at - b.at);
  const answers: Promise<[string, string]>[] = [];
  while (events.length > 0) {
    while (events.length > 0 && events[0]!.at <= Date.now()) {
      const { id } = events.shift()!;
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
