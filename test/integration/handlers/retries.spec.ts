import { describe, expect, it } from '@jest/globals';
import { exponential, fixed, steps } from '../../../lib/index.js';
import type { HandlerOptions } from '../../../lib/index.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';

const here = inAWorld();

describe('the backoff', () => {
  it.each<[string, HandlerOptions['backoff'], number[]]>([
    ['exponential()', exponential('1h', { factor: 3, max: '5h' }), [1, 3, 5, 5]],
    ['fixed()', fixed('2h'), [2, 2, 2]],
    ['steps(), of which the last repeats', steps(['1h', '4h']), [1, 4, 4]],
    ['a function of attempt and error', (attempt, error) => `${attempt * Number((error as Error).message)}h`, [7, 14]],
  ])('may be %s', async (_, backoff, hours) => {
    const fail = () => Promise.reject(new Error('7'));
    const { queue, producer, becomes, hoursUntilDue } = await oneHandler(here, fail, { backoff });
    const { id } = await producer.enqueue(queue, {});
    for (const [index, expected] of hours.entries()) {
      await becomes(id, { state: 'delayed', attempts: index + 1 });
      expect(await hoursUntilDue(id)).toBeCloseTo(expected, 1);
      await producer.runNow(queue, id);
    }
  });

  it('is about a second at first when nothing is said', async () => {
    const { queue, producer, becomes } = await oneHandler(here, () => Promise.reject(new Error('no')));
    const { id } = await producer.enqueue(queue, {});
    const { dueAt, enqueuedAt } = await becomes(id, { state: 'delayed', attempts: 1, maxAttempts: 10 });
    expect(dueAt.getTime() - enqueuedAt.getTime()).toBeGreaterThanOrEqual(800);
    expect(dueAt.getTime() - (await here.world.now())).toBeLessThanOrEqual(1_200);
  });

  it('that throws or makes no sense is a minute', async () => {
    const fail = () => Promise.reject(new Error('no'));
    const { queue, producer, becomes, hoursUntilDue } = await oneHandler(here, fail, { backoff: () => 'soon' });
    const { id } = await producer.enqueue(queue, {});
    await becomes(id, { state: 'delayed', attempts: 1 });
    expect(await hoursUntilDue(id)).toBeCloseTo(1 / 60, 2);
  });
});

describe('retryIf', () => {
  it('that says no makes a dead letter of the first failure', async () => {
    const seen: unknown[] = [];
    const error = new Error('hopeless');
    const { queue, producer, becomes, runs } = await oneHandler(here, () => Promise.reject(error), {
      retryIf: (...args) => {
        seen.push(args);
        return false;
      },
    });
    const { id } = await producer.enqueue(queue, {});
    const dead = await becomes(id, { state: 'dead', deadReason: 'discarded', attempts: 1 });
    expect(dead.lastError).toMatchObject({ message: 'hopeless' });
    expect(seen).toEqual([[error, runs[0]]]);
  });

  it('that throws loses nothing: the job is retried', async () => {
    const { queue, producer, becomes } = await oneHandler(here, () => Promise.reject(new Error('no')), {
      backoff: fixed('1h'),
      retryIf: () => {
        throw new Error('a bug');
      },
    });
    const { id } = await producer.enqueue(queue, {});
    const { lastError } = await becomes(id, { state: 'delayed', attempts: 1 });
    expect(lastError).toMatchObject({ message: 'no' });
  });

  it.each<[string, unknown]>([
    ['0', 0],
    ["''", ''],
    ['NaN', Number.NaN],
    ['undefined', undefined],
    ['null', null],
    ['1', 1],
    ['text', 'secret-4711'],
    ['a promise', Promise.resolve(false)],
  ])(
    'that answers %s gave no answer, and may have discarded the job: it is retried, which is told once',
    async (_, answer) => {
      const log: string[] = [];
      const { queue, producer, becomes } = await oneHandler(
        here,
        () => Promise.reject(new Error('no')),
        { backoff: fixed('1h'), retryIf: () => answer as boolean },
        log,
      );
      for (const id of ['a', 'b']) {
        await producer.enqueue(queue, {}, { id });
        await becomes(id, { state: 'delayed', attempts: 1 });
      }
      const logged = log.filter((line) => line.includes(`retryIf of queue "${queue}"`));
      expect(logged).toHaveLength(1);
      expect(logged[0]).toMatch(/^warn .* no boolean.* retried/);
      expect(logged[0]).not.toContain('secret-4711');
    },
  );
});
