import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Injectable, Scope } from '@nestjs/common';
import { ClientProxy } from '@nestjs/microservices';
import { concat, EMPTY, NEVER, Observable, of, throwError } from 'rxjs';
import { RelayError } from '../../lib/delay-queue.errors.js';
import type { DelayedJob } from '../../lib/job/delayed-job.js';
import { relayClass } from '../helpers/relaying.js';
import { aJob, handling } from './handling.js';
import { boot, CLIENT, fake, kafka, mqtt, nats, PAYLOAD, QUEUE, redis, relayed, rmq, tcp } from './relayed.js';
import type { Given } from './relayed.js';

/** A client that somebody has built on that of Nest. */
class SlowlyConnecting extends ClientProxy {
  readonly sent: unknown[] = [];
  connecting = 0;
  connected: () => void = () => undefined;
  readonly #connection = new Promise<void>((resolve) => (this.connected = resolve));
  connect(): Promise<void> {
    this.connecting++;
    return this.#connection;
  }
  publish(packet: unknown, done: (answer: object) => void): () => void {
    this.sent.push(packet);
    done({ isDisposed: true });
    return () => undefined;
  }
  async dispatchEvent(packet: unknown): Promise<any> {
    this.sent.push(packet);
  }
  close(): void {}
  unwrap(): any {}
}

describe('at boot', () => {
  it.each([
    ['RabbitMQ', rmq],
    ['Kafka', kafka],
    ['MQTT', mqtt],
  ])('a client of %s needs no `confirm`', async (_, client) => {
    await expect(boot(client())).resolves.toBeDefined();
  });

  it.each([
    ['TCP', tcp],
    ['NATS', nats],
    ['Redis', redis],
    ['Kafka', () => kafka({ acks: 0 })],
  ])('a client of %s that proves nothing is refused without `confirm`', async (name, client) => {
    await expect(boot(client())).rejects.toThrow(
      `@RelayDelayed on Orders.expired: confirm: the ${name} client "${CLIENT}" proves nothing by itself`,
    );
    await expect(boot(client(), { confirm: 'broker' })).rejects.toThrow("cannot prove 'broker'");
    await expect(boot(client(), { confirm: 'reply' })).resolves.toBeDefined();
    await expect(boot(client(), { confirm: 'none' })).resolves.toBeDefined();
  });

  it('a client of somebody else is refused without `confirm`, and believed with it', async () => {
    await expect(boot(fake())).rejects.toThrow('what its emit() proves is unknown');
    await expect(boot(fake(), { confirm: 'broker' })).resolves.toBeDefined();
  });

  it.each<[string, unknown, Given, string]>([
    ['no client', { emit: () => of(1) }, {}, 'is no client of @nestjs/microservices'],
    ['a word for `confirm` that there is not', rmq(), { confirm: 'ack' as 'broker' }, 'is not one of'],
    ['no pattern', rmq(), { pattern: '' }, 'is no pattern'],
    ['a batch', rmq(), { batch: { size: 2 } } as Given, 'one message for each job'],
    ['a misspelt option', rmq(), { confrim: 'reply' } as Given, 'unknown option "confrim". The nearest known one is "confirm"'], // prettier-ignore
  ])('%s is refused', async (_, client, given, said) => {
    await expect(boot(client, given)).rejects.toThrow(`@RelayDelayed on Orders.expired: `);
    await expect(boot(client, given)).rejects.toThrow(said);
  });

  it('a client of another copy of the package is refused: its messages would lose their options', async () => {
    class ClientRMQ {
      emit = () => of(1);
      send = () => of(1);
    }
    await expect(boot(new ClientRMQ(), { confirm: 'broker' })).rejects.toThrow('another copy of @nestjs/microservices');
  });

  it('a class that is made for each job is refused, and one that Nest has not constructed', async () => {
    const perJob = relayClass(QUEUE);
    Injectable({ scope: Scope.REQUEST })(perJob);
    const client = { provide: CLIENT, useValue: rmq() };
    await expect(handling({ providers: [perJob, client] })).rejects.toThrow('made anew for each job');
    const ByFactory = relayClass(QUEUE);
    const factory = { provide: ByFactory, useFactory: () => new ByFactory() };
    await expect(handling({ providers: [factory, client] })).rejects.toThrow('has not injected');
  });

  it('a provider that gives null is named, because Nest injects nothing then', async () => {
    const client = { provide: CLIENT, useValue: null };
    await expect(handling({ providers: [relayClass(QUEUE), client] })).rejects.toThrow(
      `Nest has not injected "${CLIENT}". Either its provider gives null or undefined`,
    );
  });

  it('Nest itself names a client that nobody provides', async () => {
    await expect(handling({ providers: [relayClass(QUEUE)] })).rejects.toThrow(CLIENT);
  });

  it('a token that is not there yet is refused where the decorator stands', () => {
    expect(() => relayClass(QUEUE, { client: undefined })).toThrow('look for a circular import');
  });
});

const IS_PROMISE = new TypeError('emit() of the client returned a promise. Make it an Observable by from() of rxjs');

describe('a confirmation', () => {
  it.each([
    ['a text, as RabbitMQ has it', 'Error: Connection lost. Trying to reconnect...'],
    ['an object, as a receiver answers it', { status: 'error', message: 'Internal server error' }],
    ['an error', new Error('ECONNREFUSED')],
  ])('that fails with %s fails the attempt with an error that says which client', async (_, cause) => {
    const client = fake(() => throwError(() => cause));
    const outcome = (await relayed(client, { confirm: 'reply' })) as { kind: string; error: RelayError };
    expect(outcome.kind).toBe('failed');
    expect(outcome.error).toBeInstanceOf(RelayError);
    expect(outcome.error).toMatchObject({ code: 'ERR_DQ_RELAY', queue: QUEUE, id: 'job-1', retryable: true, cause });
    expect(outcome.error.message).toBe(
      'Client "ORDERS_CLIENT" did not confirm the message for job "job-1" of queue "order.expired".',
    );
  });

  it.each<[string, () => unknown, unknown]>([
    ['throws at once', () => [][0]!['emit'], expect.any(TypeError)],
    ['throws when it is waited for', () => new Observable(() => [][0]!['emit']), expect.any(TypeError)],
    [
      'fails after a value',
      () =>
        concat(
          of(1),
          throwError(() => 'late'),
        ),
      'late',
    ],
    ['is a promise', async () => 1, IS_PROMISE],
    ['is a promise that rejects', async () => [][0]!['emit'], IS_PROMISE],
    ['is nothing', () => undefined, new TypeError('emit() of the client returned no Observable')],
  ])('that %s fails the attempt as well', async (_, emit, cause) => {
    expect(await relayed({ ...fake(), emit }, { confirm: 'none' })).toMatchObject({
      kind: 'failed',
      error: { code: 'ERR_DQ_RELAY', cause },
    });
    await turn(); // A rejection that nobody hears of ends the process in the turn after it.
  });

  it('without a value is one: a receiver may answer with nothing', async () => {
    expect(await relayed(fake(() => EMPTY), { confirm: 'reply' })).toEqual({ kind: 'completed' }); // prettier-ignore
  });

  it('is waited for until it is there', async () => {
    let confirm: () => void = () => undefined;
    const client = fake(() => new Observable((observer) => (confirm = () => observer.complete())));
    let ended = false;
    const running = relayed(client, { confirm: 'broker' }).finally(() => (ended = true));
    while (client.sent.length === 0) await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(ended).toBe(false);
    confirm();
    expect(await running).toEqual({ kind: 'completed' });
  });

  it('is no longer waited for when the run is over, and nothing is sent after that', async () => {
    let listening = 0;
    const client = fake(
      () =>
        new Observable(() => {
          listening++;
          return () => listening--;
        }),
    );
    const { handlers } = await boot(client, { confirm: 'reply' });
    const job = aJob({ queue: QUEUE, payload: PAYLOAD });
    const running = handlers[0]!.invoke(job);
    while (client.sent.length === 0) await new Promise(setImmediate);
    expect(listening).toBe(1);
    const reason = new Error('timeout');
    job.abort(reason);
    expect(await running).toEqual({ kind: 'failed', error: reason });
    expect(listening).toBe(0);
    expect(await handlers[0]!.invoke(job)).toEqual({ kind: 'released', unbegun: true });
    expect(client.sent).toHaveLength(1);
    const slow = async (_: unknown, { signal }: DelayedJob) => signal.aborted || ended.abort(reason);
    const ended = aJob({ queue: QUEUE, payload: PAYLOAD });
    const meanwhile = await boot(client, { confirm: 'reply' }, slow);
    expect(await meanwhile.handlers[0]!.invoke(ended)).toEqual({ kind: 'failed', error: reason });
    expect(client.sent).toHaveLength(1);
  });

  it.each<[string, Given]>([
    ['emit()', { confirm: 'none' }],
    ['send()', { confirm: 'reply' }],
  ])(
    'that could not be asked for in time, for want of a connection, is not asked for later by %s',
    async (_, given) => {
      const client = new SlowlyConnecting();
      const { handlers } = await boot(client, given);
      const job = aJob({ queue: QUEUE, payload: PAYLOAD });
      const running = handlers[0]!.invoke(job);
      while (client.connecting === 0) await new Promise(setImmediate);
      job.abort(new Error('timeout'));
      expect(await running).toMatchObject({ kind: 'failed', error: { message: 'timeout' } });
      client.connected();
      for (let n = 0; n < 10; n++) await new Promise(setImmediate);
      expect(client.sent).toEqual([]);
      expect(await handlers[0]!.invoke(aJob({ queue: QUEUE, payload: PAYLOAD }))).toEqual({ kind: 'completed' });
      expect(client.sent).toHaveLength(1);
    },
  );

  it('always has a limit, ten seconds unless another one is given', async () => {
    const silent = fake(() => NEVER);
    const limits = async (given: Given) => (await boot(silent, { confirm: 'none', ...given })).handlers[0]!.options;
    expect(await limits({})).toMatchObject({ timeout: 10_000 });
    expect(await limits({ timeout: '2s' })).toMatchObject({ timeout: '2s' });
  });
});
