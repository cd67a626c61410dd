import { Inject } from '@nestjs/common';
import type { Abstract, InjectionToken, Type } from '@nestjs/common';
import { DEFAULT_INSTANCE } from './handlers/on-delayed.decorator.js';
import { serviceName } from './instance/service-names.js';
import type { QueueInjection } from './producer/delay-queue.js';
import { DelayQueueProducer } from './producer/delay-queue.producer.js';

type Service = Type<unknown> | Abstract<unknown>;

/**
 * The injection token of a service of one `forRoot()` instance. For the unnamed instance that is the class itself.
 *
 * @param instance what `forRoot({ name })` was given, or nothing
 * @param service such as DelayQueueProducer (the default) or DelayQueueInspector
 */
export function getDelayQueueToken(instance?: string, service: Service = DelayQueueProducer): InjectionToken {
  if (instance === undefined || instance === DEFAULT_INSTANCE) return service as InjectionToken;
  // In quotes, because it may hold colons, as names of queues may.
  const quoted = JSON.stringify(instance);
  return (
    `nestjs-delay-queue:${quoted}:${serviceName(service)} (of DelayQueueModule.forRoot({ name: ${quoted} }), or forRootAsync({ name: ${quoted}, ` +
    'useFactory }), `name` beside the factory)'
  );
}

/**
 * Injects a service of a named instance: `@InjectDelayQueue('eu') producer`, `@InjectDelayQueue('eu',
 * DelayQueueInspector)`.
 */
export function InjectDelayQueue(instance?: string): QueueInjection<DelayQueueProducer>;
export function InjectDelayQueue<S>(instance: string | undefined, service: Type<S> | Abstract<S>): QueueInjection<S>;
export function InjectDelayQueue(
  instance?: string,
  service: Service = DelayQueueProducer,
): ParameterDecorator & PropertyDecorator {
  return Inject(getDelayQueueToken(instance, service));
}

/** Tokens of the library's own providers. They have names, so that the test kit can replace the connection. */
export function connectionToken(instance: string): symbol {
  return Symbol.for(`nestjs-delay-queue:${instance}:connection`);
}

export function shardsToken(instance: string): symbol {
  return Symbol.for(`nestjs-delay-queue:${instance}:shards`);
}

export function optionsToken(instance: string): symbol {
  return Symbol.for(`nestjs-delay-queue:${instance}:options`);
}
