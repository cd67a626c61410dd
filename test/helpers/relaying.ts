import { expect } from '@jest/globals';
import type { Type } from '@nestjs/common';
import { ClientsModule } from '@nestjs/microservices';
import type { ClientProvider } from '@nestjs/microservices';
import { fixed } from '../../lib/index.js';
import type { DelayedJob } from '../../lib/index.js';
import { RelayDelayed } from '../../lib/relay/index.js';
import type { RelayOptions } from '../../lib/relay/index.js';
import type { TestApp } from './app.js';
import { eventually } from './eventually.js';
import type { InAWorld } from './in-a-world.js';
import type { RelayReceiver } from './relay-receiver.js';

export const CLIENT = 'ORDERS_CLIENT';
export const PATTERN = 'order.expired';

/** What is sent for a job; undefined for its payload. */
type Message = (payload: any, job: DelayedJob) => unknown;

const byItsId: Message = (_, { id, attempt }) => ({ id, attempt });

/** A provider class with one relay. */
export function relayClass(
  queue: string,
  given: Partial<RelayOptions> = {},
  message: Message = () => undefined,
): Type<unknown> {
  class Orders {
    expired(payload: unknown, job: DelayedJob): unknown {
      return message(payload, job);
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Orders.prototype, 'expired')!;
  RelayDelayed(queue, { client: CLIENT, pattern: PATTERN, ...given })(Orders.prototype, 'expired', descriptor);
  return Orders;
}

export interface RelaySettings extends Partial<RelayOptions> {
  readonly queue: string;
  readonly by: ClientProvider;
  readonly message?: Message | undefined;
}

/** An application with one relay. It never gives up: what fails is tried again, soon. */
export async function startRelay(
  here: InAWorld,
  { queue, by, message = byItsId, ...given }: RelaySettings,
): Promise<TestApp> {
  return here.start({
    imports: [ClientsModule.register([{ name: CLIENT, ...by }])],
    providers: [relayClass(queue, { attempts: 1_000, backoff: fixed('2s'), ...given }, message)],
  });
}

/** A broker that was killed needs its time to start. */
const PATIENCE_MS = 120_000;
const LAST_MS = 10_000;

export interface Load {
  readonly app: TestApp;
  readonly queue: string;
  readonly receiver: RelayReceiver;
  readonly jobs: number;
}

/**
 * Enqueues so many jobs, and causes a fault each time that another part of them is done; until all are.
 *
 * @returns the ids of jobs that are done and never arrived, and how many messages came once more
 */
export async function underLoad(
  { app, queue, receiver, jobs }: Load,
  faults: readonly (() => Promise<void>)[],
): Promise<{ lost: string[]; doubled: number }> {
  const ids = Array.from({ length: jobs }, (_, n) => `job-${n}`);
  const done = async () => (await app.inspector.totals(queue)).completed;
  await app.producer.enqueueMany(
    queue,
    ids.map((id) => ({ id, payload: {} })),
  );
  for (const [n, fault] of faults.entries()) {
    const part = ((n + 1) * jobs) / (faults.length + 1);
    await eventually(async () => expect(await done()).toBeGreaterThan(part), PATIENCE_MS);
    await fault();
  }
  await eventually(async () => expect(await done()).toBe(jobs), PATIENCE_MS);
  const missing = () => {
    const there = arrived(receiver);
    return ids.filter((id) => !there.has(id));
  };
  // What a broker holds may still be on its way.
  await eventually(() => expect(missing()).toEqual([]), LAST_MS).catch(() => undefined);
  return { lost: missing(), doubled: receiver.received.length - arrived(receiver).size };
}

function arrived(receiver: RelayReceiver): Set<string> {
  return new Set(receiver.received.map(({ id }) => id));
}
