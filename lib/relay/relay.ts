import { ClientProxy } from '@nestjs/microservices';
import { defer, isObservable, mergeMap } from 'rxjs';
import type { Observable } from 'rxjs';
import { InvalidOptionError, RelayError } from '../delay-queue.errors.js';
import type { Delivery, DeliveryHost } from '../handlers/delivery.js';
import { DiscardJob } from '../handlers/outcomes.js';
import type { DelayedJob } from '../job/delayed-job.js';
import { isPlainObject, oneOf } from '../job/option-rules.js';
import { shown } from '../job/duration.js';
import { forgetPromise } from '../job/forget-promise.js';
import { kindOf } from './client-kinds.js';
import type { ClientKind } from './client-kinds.js';
import { prepareMetadata, withMetadata } from './dispatch-metadata.js';
import type { RelayConfirm } from './outgoing-message.js';
import { headersOf } from './relay-headers.js';
import type { RelayHeaders } from './relay-headers.js';

const CONFIRMS = ['broker', 'reply', 'none'] as const;

/** What `@RelayDelayed` says of its messages; nothing in it has been checked. */
export interface RelaySettings {
  /** Of the client, for messages. */
  readonly clientName: string;
  readonly pattern: unknown;
  readonly confirm: unknown;
}

/**
 * Binds a relay to its client at boot.
 *
 * @throws InvalidOptionError when the client cannot prove what `confirm` says, or proves nothing without it
 */
export function relayBy(client: unknown, settings: RelaySettings, host: DeliveryHost): Delivery {
  const { clientName, pattern } = settings;
  assertPattern(pattern);
  const kind = kindOf(client, `client: ${clientName}`);
  const confirm = confirmOf(kind, settings);
  if (kind.inMetadata) prepareMetadata(client as ClientProxy);
  const relay = new Relay(client as ClientProxy, kind, confirm, { clientName, pattern, host });
  return (result, job) => relay.deliver(result, job);
}

/** The messages of one `@RelayDelayed`. */
class Relay {
  constructor(
    private readonly client: ClientProxy,
    private readonly kind: ClientKind,
    private readonly confirm: RelayConfirm,
    private readonly to: { readonly clientName: string; readonly pattern: unknown; readonly host: DeliveryHost },
  ) {}

  /** Sends what the method returned, or else the payload, and resolves once that is confirmed. */
  async deliver(result: unknown, job: DelayedJob): Promise<void> {
    const { host } = this.to;
    const headers = headersOf(job, host.carrier());
    const data = result === undefined ? job.payload : result;
    const message = await this.kind.message({ data, id: job.id, headers, confirm: this.confirm });
    if (message === null || message === undefined) {
      throw new DiscardJob('its payload is null, which this client cannot send: return something from the method');
    }
    await this.#confirmed(message, headers, job);
  }

  async #confirmed(message: unknown, headers: RelayHeaders, job: DelayedJob): Promise<void> {
    const { signal } = job;
    signal.throwIfAborted(); // Nothing was sent.
    try {
      // Around the subscription, too: a client sends a request only then.
      await withMetadata(headers, () => ended(this.#send(message), signal));
    } catch (cause) {
      if (signal.aborted) throw cause;
      throw new RelayError(job.queue, job.id, this.to.clientName, cause);
    }
  }

  #send(message: unknown): Observable<unknown> {
    const { client, to } = this;
    if (this.confirm === 'reply') return observable(client.send(to.pattern, message), 'send');
    const emitted = () => observable(client.emit(to.pattern, message), 'emit');
    if (!(client instanceof ClientProxy)) return emitted();
    // emit() sends once there is a connection, and cannot be stopped. If that takes longer than this run, nothing may be sent:
    // otherwise all attempts of an outage arrive at its end.
    return defer(async () => client.connect()).pipe(mergeMap(emitted));
  }
}

/** A client of somebody else's, and a double of a test, may return anything. */
function observable(returned: unknown, method: string): Observable<unknown> {
  if (isObservable(returned)) return returned;
  const what = forgetPromise(returned) ? 'a promise. Make it an Observable by from() of rxjs' : 'no Observable';
  throw new TypeError(`${method}() of the client returned ${what}`);
}

/** Subscribes in this turn: what `emit()` returns has already begun. Ends the wait when the run is over. */
function ended(sending: Observable<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const subscription = sending.subscribe({ error: reject, complete: resolve });
    const stop = () => {
      reject(signal.reason as Error);
      subscription.unsubscribe();
    };
    signal.addEventListener('abort', stop, { once: true });
  });
}

function confirmOf(kind: ClientKind, { clientName, confirm }: RelaySettings): RelayConfirm {
  const { name, brokerProvesNothing: why } = kind;
  if (confirm !== undefined) {
    const given = oneOf(confirm, CONFIRMS, 'confirm');
    if (given !== 'broker' || why === undefined) return given;
    throw new InvalidOptionError(`confirm: the ${name} client ${clientName} cannot prove 'broker': ${why}. ${CHOICE}`);
  }
  if (why !== undefined) {
    throw new InvalidOptionError(
      `confirm: the ${name} client ${clientName} proves nothing by itself: ${why}. ${CHOICE}`,
    );
  }
  if (kind.isUnknown) {
    const what = `client ${clientName} is none of @nestjs/microservices, so what its emit() proves is unknown`;
    throw new InvalidOptionError(
      `confirm: ${what}. Say 'broker' if it resolves once a broker has the message. ${CHOICE}`,
    );
  }
  return 'broker';
}

const CHOICE = "Say 'reply', and let the receiver answer with @MessagePattern, or 'none' if messages may be lost.";

function assertPattern(pattern: unknown): void {
  const isSound =
    (typeof pattern === 'string' && pattern !== '') || typeof pattern === 'number' || isPlainObject(pattern);
  if (isSound) return;
  throw new InvalidOptionError(`pattern: ${shown(pattern)} is no pattern. Give text, a number or a plain object.`);
}
