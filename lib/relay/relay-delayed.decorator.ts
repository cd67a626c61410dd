import 'reflect-metadata';
import { Inject } from '@nestjs/common';
import type { Abstract, Type } from '@nestjs/common';
import { InvalidHandlerError, InvalidOptionError } from '../delay-queue.errors.js';
import { RELAY_DEFAULTS } from '../defaults.js';
import type { HandlerOptions } from '../handlers/handler.js';
import { HANDLER_OPTIONS } from '../handlers/handler-settings.js';
import { handlerDecorator } from '../handlers/on-delayed.decorator.js';
import type { Duration } from '../job/duration.js';
import { quoted, shown } from '../job/duration.js';
import { unknownOption } from '../job/option-rules.js';
import type { QueueRef } from '../job/queue-definition.js';
import type { RelayConfirm } from './outgoing-message.js';
import { relayBy } from './relay.js';

/** As `@MessagePattern` and `@EventPattern` take it. */
export type RelayPattern = string | number | Record<string, unknown>;

/** Options of `@RelayDelayed(queue, options)`: where to, and those of `@OnDelayed`. */
export interface RelayOptions extends Omit<HandlerOptions, 'batch' | 'timeout'> {
  /** The token of the client, as `ClientsModule.register([{ name }])` has it. Injected into the class. */
  client: string | symbol | Type<unknown> | Abstract<unknown>;
  /** What the receiver's `@EventPattern()` or `@MessagePattern()` has. */
  pattern: RelayPattern;
  /**
   * When the job is done. `'broker'`: a broker has confirmed the message; the default for RabbitMQ, Kafka and MQTT.
   * `'reply'`: the receiver's handler has answered. `'none'`: the client has taken it, and it may be lost without a word.
   * Without a default for clients that prove nothing by themselves: TCP, NATS, Redis and those of others.
   */
  confirm?: RelayConfirm;
  /** How long a confirmation is waited for. Then the attempt has failed, and the message may have been sent. Default `'10s'`. */
  timeout?: Duration;
}

/**
 * Hands every job of a queue to a client of `@nestjs/microservices`, and completes the job once the message is confirmed.
 * The method returns what is sent; when it returns nothing, the payload is. It may throw `SnoozeJob` and `DiscardJob`.
 *
 * @param queue name, or a definition made by `defineQueue()`
 * @param options checked at bootstrap, which fails naming class and method
 * @throws InvalidHandlerError when put on anything but an instance method, without a client, or with an unknown option
 */
export function RelayDelayed(queue: QueueRef, options: RelayOptions): MethodDecorator {
  return (target, method, descriptor) => {
    const where = `@RelayDelayed on ${target.constructor.name}.${String(method)}`;
    assertKnown(options ?? {}, where);
    const { client, pattern, confirm, timeout, ...handlerOptions } = options ?? {};
    if (!isToken(client)) {
      const hint = client === undefined ? ' If it is imported, look for a circular import.' : '';
      throw new InvalidHandlerError(`${where}: client: ${shown(client)} is not the token of a provider.${hint}`);
    }
    const clientName = nameOf(client);
    // Nest shows it where it finds no provider of the token, and not the token.
    const key = Symbol(`client ${clientName} of ${where}`);
    const settings = { clientName, pattern, confirm };
    const all = { timeout: timeout ?? RELAY_DEFAULTS.timeoutMs, ...handlerOptions };
    handlerDecorator('@RelayDelayed', queue, all, (host) => {
      return relayBy(clientIn(host.instance, key, clientName), settings, host);
    })(target, method, descriptor);
    // As a property of the class, so that Nest looks for the client where it looks for everything else of the class.
    Inject(client)(target, key);
  };
}

const OPTIONS = ['client', 'pattern', 'confirm', ...HANDLER_OPTIONS.filter((option) => option !== 'batch')];

/** The handler's own check knows nothing of what is the relay's, and would take a misspelt `confirm` for something else. */
function assertKnown(options: object, where: string): void {
  if ('batch' in options) throw new InvalidHandlerError(`${where}: batch: a relay sends one message for each job.`);
  const unknown = Object.keys(options).find((option) => !OPTIONS.includes(option));
  if (unknown === undefined) return;
  throw new InvalidHandlerError(unknownOption(unknown, OPTIONS, (option) => `${where}: { ${option} }`).message);
}

function clientIn(instance: object, key: symbol, clientName: string): unknown {
  const client: unknown = (instance as Record<symbol, unknown>)[key];
  if (client !== undefined) return client;
  throw new InvalidOptionError(
    `client: Nest has not injected ${clientName}. Either its provider gives null or undefined, or Nest did not construct ` +
      'this class by itself: then list the class in providers, rather than a factory or a value.',
  );
}

function isToken(client: unknown): client is RelayOptions['client'] {
  return typeof client === 'function' || typeof client === 'symbol' || (typeof client === 'string' && client !== '');
}

function nameOf(client: RelayOptions['client']): string {
  if (typeof client === 'string') return quoted(client);
  return typeof client === 'symbol' ? String(client) : client.name;
}
