import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { Module } from '@nestjs/common';
import { ClientsModule, Transport } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { Observable, of, throwError } from 'rxjs';
import { freePort } from '../../../tools/free-port.mjs';
import { DelayQueueProducer, fixed } from '../../../lib/index.js';
import { RELAY_HEADERS } from '../../../lib/relay/index.js';
import { DelayQueueHarness, DelayQueueTestingModule } from '../../../lib/testing/index.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { RelayReceiver } from '../../helpers/relay-receiver.js';
import { CLIENT, PATTERN, relayClass, startRelay, underLoad } from '../../helpers/relaying.js';

const here = inAWorld();
const end = endingWithEachTest();

const tcp = (port: number) => ({ transport: Transport.TCP, options: { host: '127.0.0.1', port } }) as const;

async function receiving(port: number): Promise<RelayReceiver> {
  return end(await RelayReceiver.start({ microservice: tcp(port), pattern: PATTERN, answers: true }));
}

/** Takes every connection and all that comes, and never answers. */
async function silence(): Promise<number> {
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  end({
    close: () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  });
  return (server.address() as AddressInfo).port;
}

describe("A relay by TCP that waits for 'reply'", () => {
  it('loses nothing while its receiver is killed and started again under load', async () => {
    const port = await freePort();
    const receiver = await receiving(port);
    const settings = { confirm: 'reply', timeout: '5s', backoff: fixed('200ms') } as const;
    const app = await startRelay(here, { queue: 'killed', by: tcp(port), ...settings });
    const kill = () => receiver.restart();
    const { lost } = await underLoad({ app, queue: 'killed', receiver, jobs: 600 }, [kill, kill]);
    expect(lost).toEqual([]);
  });

  it('tells the receiver the id of the job, beside the message', async () => {
    const port = await freePort();
    const receiver = await receiving(port);
    const { producer } = await startRelay(here, { queue: 'told', by: tcp(port), confirm: 'reply' });
    await producer.enqueue('told', {}, { id: 'A' });
    await eventually(() => expect(receiver.received).toHaveLength(1));
    expect(receiver.received[0]!.metadata).toMatchObject({
      [RELAY_HEADERS.id]: 'A',
      [RELAY_HEADERS.queue]: 'told',
      [RELAY_HEADERS.attempt]: '1',
    });
  });

  it('tries again when nobody handles the pattern, and says so in the errors of the job', async () => {
    const port = await freePort();
    await receiving(port);
    const by = tcp(port);
    const { producer } = await startRelay(here, { queue: 'nobody', by, confirm: 'reply', pattern: 'other', attempts: 2, backoff: fixed(1) }); // prettier-ignore
    await producer.enqueue('nobody', {}, { id: 'A' });
    await eventually(async () =>
      expect(await producer.get('nobody', 'A')).toMatchObject({ state: 'dead', attempts: 2 }),
    );
    const { lastError } = (await producer.get('nobody', 'A'))!;
    expect(lastError).toMatchObject({ name: 'RelayError', cause: { message: expect.stringContaining('no matching message handler') } }); // prettier-ignore
  });

  it('does not wait for ever: after the timeout the attempt has failed', async () => {
    const by = tcp(await silence());
    const { producer } = await startRelay(here, {
      queue: 'silent',
      by,
      confirm: 'reply',
      timeout: 50,
      attempts: 1,
    });
    await producer.enqueue('silent', {}, { id: 'A' });
    await eventually(async () =>
      expect(await producer.get('silent', 'A')).toMatchObject({
        state: 'dead',
        lastError: { name: 'HandlerTimeoutError' },
      }),
    );
  });
});

describe("A relay by TCP that waits for 'none'", () => {
  it('is done although nobody has handled the message', async () => {
    const by = tcp(await silence());
    const { producer, inspector } = await startRelay(here, { queue: 'unproved', by, confirm: 'none' });
    await producer.enqueue('unproved', {}, { id: 'A' });
    await eventually(async () => expect(await inspector.totals('unproved')).toMatchObject({ completed: 1 }));
  });
});

describe('An application with a relay', () => {
  it.each([
    [{}, `@RelayDelayed on Orders.expired: confirm: the TCP client "${CLIENT}" proves nothing by itself`],
    [{ confirm: 'reply', atempts: 3 }, 'Orders.expired: { ... }: unknown option "atempts"'],
    [{ confirm: 'reply', timeout: -1 }, '@RelayDelayed on Orders.expired: { timeout }'],
  ])('is refused at boot with %j', async (given, said) => {
    const booting = startRelay(here, { queue: 'refused', by: tcp(1), ...(given as object) });
    await expect(booting).rejects.toThrow(said);
  });

  it('waits at its end for what is on its way, and then lets Nest close the client', async () => {
    const story: string[] = [];
    let confirm = () => undefined as void;
    const client = {
      emit: () =>
        new Observable((observer) => {
          story.push('sent');
          confirm = () => observer.complete();
        }),
      send: () => of(),
      onModuleDestroy: () => story.push('ending'),
      onApplicationShutdown: () => story.push('closed'),
    };
    const providers = [{ provide: CLIENT, useValue: client }, relayClass('last', { confirm: 'broker' })];
    const { producer, close } = await here.start({ providers, options: { drainTimeout: '1h' } });
    await producer.enqueue('last', {});
    await eventually(() => expect(story).toEqual(['sent']));
    const closing = close();
    for (let n = 0; n < 10; n++) await new Promise(setImmediate);
    story.push('confirmed');
    confirm();
    await closing;
    expect(story).toEqual(['sent', 'confirmed', 'ending', 'closed']);
    expect(await here.world.read('last')).toMatchObject({ jobs: {}, meta: { completed: '1' } });
  });

  it('is tested without a broker', async () => {
    @Module({
      imports: [ClientsModule.register([{ name: CLIENT, ...tcp(1) }]), DelayQueueTestingModule.forTest()],
      providers: [relayClass('order.expired', { confirm: 'broker' })],
    })
    class AppModule {}
    const sent: unknown[] = [];
    const client = { emit: (_: unknown, message: unknown) => of(sent.push(message)), send: () => of() };
    const builder = Test.createTestingModule({ imports: [AppModule] });
    builder.overrideProvider('ORDERS_CLIENT').useValue(client);
    const app = end(await (await builder.compile()).init());
    const jobs = DelayQueueHarness.of(app);
    await app.get(DelayQueueProducer).enqueue('order.expired', { orderId: 'o1' }, { delay: '3h' });
    await jobs.advance('2h');
    expect(sent).toEqual([]);
    client.emit = () => throwError(() => new Error('the broker is away'));
    await jobs.advance('1h');
    client.emit = (_, message) => of(sent.push(message));
    await jobs.advance('1h');
    expect(sent).toEqual([{ orderId: 'o1' }]);
    expect(jobs.runs('order.expired')).toMatchObject([{ completed: false }, { completed: true }]);
  });
});
