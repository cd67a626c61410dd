import { Injectable, Module } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import { defineQueue, DelayQueue, DelayQueueModule, InjectQueue } from '../../../lib/index.js';
import type { DelayQueueRootOptions, PayloadCodec, StandardSchema } from '../../../lib/index.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const amount: StandardSchema<{ amount: number }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate(value) {
      const { amount } = value as { amount?: unknown };
      if (typeof amount === 'number') return { value: { amount } };
      return { issues: [{ message: 'not a number', path: ['amount'] }] };
    },
  },
};
const typed = defineQueue('update.typed', { schema: amount });

@Injectable()
class Amounts {
  constructor(@InjectQueue(typed) readonly queue: DelayQueue<{ amount: number }>) {}
}

@Module({ imports: [DelayQueueModule.forFeature([typed])], providers: [Amounts], exports: [Amounts] })
class AmountsModule {}

/** Never the same twice, as an encrypting one. */
const salted: PayloadCodec = {
  name: 'salted',
  encode: (payload) => Buffer.from(`${Math.random()} ${JSON.stringify(payload)}`),
  decode: (data) => JSON.parse(data.toString().slice(data.toString().indexOf(' ') + 1)),
};

describe('update()', () => {
  it('gave a waiting job a new payload only together with a new due time: now it keeps the one it has', async () => {
    const { queue, producer, bring, run } = await holding(here);
    await bring('a', 'delayed');
    const { dueAt } = (await producer.get(queue, 'a'))!;
    expect(await producer.update(queue, 'a', { n: 1 })).toEqual({
      id: 'a',
      queue,
      outcome: 'updated',
      state: 'delayed',
      dueAt,
    });
    expect(await producer.get(queue, 'a')).toMatchObject({ state: 'delayed', dueAt, payload: { n: 1 } });
    const options = { id: 'a', onDuplicate: 'replace', dueAt: 'keep' } as const;
    expect(await producer.enqueue(queue, { n: 2 }, options)).toMatchObject({ outcome: 'replaced', dueAt });
    // Without it a replacement means what every enqueue without a delay means.
    await producer.enqueue(queue, { n: 3 }, { id: 'a', onDuplicate: 'replace' });
    expect((await run(1)).job.payload).toEqual({ n: 3 });
    expect(await producer.update(queue, 'a', {})).toMatchObject({ outcome: 'running', state: 'running' });
    expect(await producer.update(queue, 'b', {})).toEqual({ id: 'b', queue, outcome: 'notFound', state: undefined });
  });

  it.each<[string, DelayQueueRootOptions]>([
    ['plain', {}],
    ['compressed', { compressAbove: 100 }],
    ['encoded by a codec', { codec: [salted, 'json'] }],
  ])('keeps what the enqueue said beside a payload that is %s', async (_, options) => {
    const { queue, producer, bring, run } = await holding(here, {}, { ...options });
    await bring('other', 'delayed');
    const said = { attempts: 7, timeout: '5s', context: { tenant: 't1' } } as const;
    await producer.enqueue(queue, 'x'.repeat(2_000), { id: 'a', delay: '1h', ...said });
    for (const payload of ['small', 'y'.repeat(3_000), { n: 1 }]) {
      expect(await producer.update(queue, 'a', payload)).toMatchObject({ outcome: 'updated' });
      const snapshot = await producer.get(queue, 'a');
      expect(snapshot).toMatchObject({ payload, context: { tenant: 't1' }, maxAttempts: 7, state: 'delayed' });
    }
    await producer.runNow(queue, 'a');
    const { job, end } = await run(1);
    expect(job).toMatchObject({ payload: { n: 1 }, context: { tenant: 't1' }, maxAttempts: 7 });
    end();
  });

  it('is lost to a replacement that comes meanwhile, and never mixes the two', async () => {
    const { queue, producer, bring } = await holding(here);
    await bring('a', 'delayed');
    const calls = Array.from({ length: 40 }, (_, n) =>
      n % 2 === 0
        ? producer.update(queue, 'a', { update: n })
        : producer.enqueue(queue, { replace: n }, { id: 'a', onDuplicate: 'replace', delay: '1h', attempts: n }),
    );
    await Promise.all(calls);
    const { payload, maxAttempts } = (await producer.get(queue, 'a'))!;
    // Whatever came last: options are those of a replacement, and a replacement's payload comes with its own.
    expect(maxAttempts! % 2).toBe(1);
    expect([maxAttempts, undefined]).toContain((payload as { replace?: number }).replace);
  });

  it('checks the payload as enqueue does, before anything is sent', async () => {
    const { app, producer } = await here.start({ imports: [AmountsModule], options: { maxPayloadBytes: 1_000 } });
    const { queue } = app.get(Amounts, { strict: false });
    await queue.enqueue({ amount: 1 }, { id: 'a', delay: '1h' });
    expect(await queue.update('a', { amount: 2 })).toMatchObject({ outcome: 'updated', state: 'delayed' });
    for (const refused of [queue.update('a', { amount: '3' } as never), producer.update('update.typed', 'a', {})]) {
      await expect(refused).rejects.toMatchObject({ code: 'ERR_DQ_SCHEMA', issues: [{ path: 'payload.amount' }] });
    }
    await expect(producer.update('other', 'a', 'x'.repeat(2_000))).rejects.toMatchObject({
      code: 'ERR_DQ_PAYLOAD_TOO_LARGE',
    });
    await expect(producer.update('other', 'a', { n: 1n })).rejects.toMatchObject({ code: 'ERR_DQ_PAYLOAD' });
    await expect(producer.update('other', 'a{b}', 1)).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_ID' });
    await expect(producer.update('', 'a', 1)).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_QUEUE' });
    expect(await queue.get('a')).toMatchObject({ payload: { amount: 2 } });
  });
});

describe("dueAt: 'keep'", () => {
  it('is refused where nothing is replaced, and where it is no due time', async () => {
    const { producer } = await here.start();
    const code = 'ERR_DQ_INVALID_OPTION';
    await expect(producer.enqueue('q', 1, { id: 'a', dueAt: 'keep' })).rejects.toMatchObject({ code });
    await expect(producer.enqueue('q', 1, { id: 'a', onDuplicate: 'reschedule', dueAt: 'keep' })).rejects.toMatchObject(
      { code },
    );
    await expect(
      producer.enqueue('q', 1, { id: 'a', onDuplicate: 'replace', dueAt: new Date() as never }),
    ).rejects.toThrow('`at`');
  });

  it('does not put a debounced job off, and holds for no job that has to be made', async () => {
    const profile = defineQueue<{ user: string; n: number }>('update.profile', {
      id: ({ user }) => user,
      debounce: { wait: '1h', maxWait: '2h' },
    });
    const { producer } = await here.start();
    const first = await producer.enqueue(profile, { user: 'u', n: 1 }, { dueAt: 'keep' });
    expect(first).toMatchObject({ outcome: 'created', state: 'delayed' });
    const second = await producer.enqueue(profile, { user: 'u', n: 2 }, { delay: '90m', dueAt: 'keep' });
    expect(second).toMatchObject({ outcome: 'replaced', dueAt: first.dueAt });
    await eventually(async () =>
      expect(await producer.get(profile, 'u')).toMatchObject({ payload: { n: 2 }, dueAt: first.dueAt }),
    );
  });
});
