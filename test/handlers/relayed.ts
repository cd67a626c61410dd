import {
  ClientKafka,
  ClientMqtt,
  ClientNats,
  ClientRedis,
  ClientRMQ as RabbitClient,
  ClientTCP,
} from '@nestjs/microservices';
import type { Observable } from 'rxjs';
import { of } from 'rxjs';
import type { HandlerOutcome } from '../../lib/handlers/handler-outcome.js';
import type { DelayedJob } from '../../lib/job/delayed-job.js';
import type { RelayOptions } from '../../lib/relay/index.js';
import { CLIENT, PATTERN as QUEUE, relayClass } from '../helpers/relaying.js';
import { handling } from './handling.js';
import type { Handling } from './handling.js';

export { CLIENT, QUEUE };
export const PAYLOAD = { orderId: 'o1' };

export type Given = Partial<RelayOptions>;
type Message = (payload: any, job: DelayedJob) => unknown;

/** A relay by this client, as it is after boot. */
export async function boot(client: unknown, given?: Given, message?: Message): Promise<Handling> {
  return handling({ providers: [relayClass(QUEUE, given, message), { provide: CLIENT, useValue: client }] });
}

/** What becomes of one job. */
export async function relayed(
  client: unknown,
  given?: Given,
  message?: Message,
  job: object = {},
): Promise<HandlerOutcome> {
  const { run } = await boot(client, given, message);
  return run(QUEUE, PAYLOAD, { dueAt: Date.UTC(2030, 0, 1), ...job });
}

/** A client of somebody else's, which does as it is told. */
export function fake(answer: () => Observable<unknown> = () => of(undefined)) {
  const sent: [how: string, pattern: unknown, data: unknown][] = [];
  const note = (how: string) => (pattern: unknown, data: unknown) => {
    sent.push([how, pattern, data]);
    return answer();
  };
  return { sent, emit: note('emit'), send: note('send') };
}

export const kafka = (send?: { acks: number }) =>
  new ClientKafka({ client: { brokers: ['127.0.0.1:1'] }, send } as object);
export const rmq = () => new RabbitClient({ urls: ['amqp://127.0.0.1:1'], queue: 'orders' });
export const mqtt = () => new ClientMqtt({ url: 'mqtt://127.0.0.1:1', protocolVersion: 5 } as object);
export const nats = () => new ClientNats({ servers: ['127.0.0.1:1'] });
export const redis = () => new ClientRedis({});
export const tcp = () => new ClientTCP({});
