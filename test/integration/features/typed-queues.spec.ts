import { Inject, Injectable, Module } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import {
  currentJob,
  defineQueue,
  DelayQueue,
  DelayQueueModule,
  DelayQueueProducer,
  getQueueToken,
  InjectQueue,
} from '../../../lib/index.js';
import type { ContextProvider } from '../../../lib/index.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { World } from '../../helpers/world.js';

const mail = defineQueue<{ to: string }>('mail.send', { attempts: 3, delay: '1h' });

@Injectable()
class Mailer {
  constructor(@InjectQueue(mail) readonly queue: DelayQueue<{ to: string }>) {}
}

@Module({ imports: [DelayQueueModule.forFeature([mail])], providers: [Mailer], exports: [Mailer] })
class MailModule {}

describe('forFeature', () => {
  it('gives a typed handle whose calls reach the queue, with the defaults of its definition', async () => {
    const world = await World.open();
    const { app, inspector, close } = await createApp(world, { imports: [MailModule] });
    const { queue } = app.get(Mailer, { strict: false });

    const { id, state } = await queue.enqueue({ to: 'a@b.example' });
    expect(state).toBe('delayed');
    expect(await queue.get(id)).toMatchObject({ payload: { to: 'a@b.example' }, state: 'delayed' });
    expect((await queue.enqueueMany([{ payload: { to: 'c@d.example' } }])).map(({ outcome }) => outcome)).toEqual([
      'created',
    ]);
    expect(await inspector.counts(mail)).toMatchObject({ delayed: 2 });
    expect(await queue.runNow(id)).toMatchObject({ outcome: 'rescheduled' });
    expect(await queue.reschedule(id, { delay: '2h' })).toMatchObject({ outcome: 'rescheduled' });
    expect(await queue.cancel(id)).toMatchObject({ outcome: 'cancelled' });
    await close();
    await world.close();
  });

  it('lets the definition hold for a handler and a producer that name the queue as text', async () => {
    const world = await World.open();
    const attempts: number[] = [];
    const handler = handlerClass('mail.send', (_, job) => void attempts.push(job.maxAttempts));
    const options = { strictQueues: true };
    const { producer, close } = await createApp(world, { imports: [MailModule], providers: [handler], options });

    await producer.enqueue('mail.send', { to: 'a@b.example' }, { delay: 0 });
    await eventually(() => expect(attempts).toEqual([3]));
    expect(await producer.enqueue('mail.send', { to: 'a@b.example' })).toMatchObject({ state: 'delayed' });
    await expect(producer.enqueue('mail.sned', {})).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_QUEUE' });
    await close();
    await world.close();
  });

  it('fails at boot for an instance that nobody declares, and for two definitions of one queue', async () => {
    const world = await World.open();
    const elsewhere = createApp(world, { imports: [DelayQueueModule.forFeature([mail], 'eu')] });
    await expect(elsewhere).rejects.toMatchObject({ code: 'ERR_DQ_UNKNOWN_INSTANCE' });
    const other = DelayQueueModule.forFeature([defineQueue('mail.send', { attempts: 9 })]);
    await expect(createApp(world, { imports: [MailModule, other] })).rejects.toMatchObject({
      code: 'ERR_DQ_INVALID_OPTION',
    });
    await world.close();
  });

  it('has a token for custom providers', () => {
    expect(getQueueToken(mail)).toBe(getQueueToken('mail.send'));
    expect(getQueueToken(mail, 'eu')).not.toBe(getQueueToken(mail));
  });
});

describe('context', () => {
  it('reaches the handler and what it awaits, and is merged key by key into jobs made there', async () => {
    const world = await World.open();
    const seen: Record<string, unknown>[] = [];

    @Injectable()
    class Deep {
      constructor(@Inject(DelayQueueProducer) readonly producer: DelayQueueProducer) {}
    }
    let producer: DelayQueueProducer | undefined;
    const handler = handlerClass('chain', async (payload: { next?: object }) => {
      await new Promise((resolve) => setImmediate(resolve));
      seen.push({ ...currentJob()?.context });
      if (payload.next) await producer!.enqueue('chain', {}, payload.next);
    });
    const { app, close } = await createApp(world, { providers: [handler, Deep] });
    producer = app.get(Deep).producer;

    expect(currentJob()).toBeUndefined();
    await producer.enqueue('chain', { next: { context: { b: '3' } } }, { context: { a: '1', b: '2' } });
    await eventually(() => expect(seen).toHaveLength(2));
    await producer.enqueue('chain', { next: { context: null } }, { context: { a: '1' } });
    await eventually(() => expect(seen).toHaveLength(4));
    expect(seen).toEqual([{ a: '1', b: '2' }, { a: '1', b: '3' }, { a: '1' }, {}]);
    await close();
    await world.close();
  });

  it('is captured and restored by a contextProvider', async () => {
    const world = await World.open();
    let current: string | undefined = 'request-1';
    const seen: (string | undefined)[] = [];
    const contextProvider: ContextProvider = {
      capture: () => (current ? { requestId: current } : undefined),
      run(context, next) {
        current = `${context['requestId']} again`;
        return next();
      },
    };
    const handler = handlerClass('traced', () => void seen.push(current));
    const { producer, close } = await createApp(world, { providers: [handler], options: { contextProvider } });

    const { id } = await producer.enqueue('traced', {}, { delay: '1h' });
    expect((await producer.get('traced', id))?.context).toEqual({ requestId: 'request-1' });
    current = undefined;
    await producer.runNow('traced', id);
    await eventually(() => expect(seen).toEqual(['request-1 again']));
    await close();
    await world.close();
  });
});
