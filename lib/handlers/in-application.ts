import type { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import type { QueueDefinition } from '../job/queue-definition.js';
import type { CurrentTrace } from './delivery.js';
import { HandlerExplorer, handlersNamed } from './handler.explorer.js';
import type { Exploration, ExplorerSettings } from './handler.explorer.js';
import { HandlerInvoker } from './handler.invoker.js';

/** What an instance handles, and what the log should say of it. */
export interface Discovery extends Exploration {
  /** One sentence on the enhancers around all handlers. */
  readonly enhancers?: string | undefined;
  /** With `consume: false`: `queue (Class.method)`. */
  readonly left?: readonly string[];
}

/**
 * Tells the runner at boot which handlers there are.
 *
 * @param validate refuses invalid handler options
 */
export type HandlerDiscovery = (validate: ExplorerSettings['validate']) => Promise<Discovery>;

/** What the application knows of all its instances. */
interface KnownInstances {
  readonly names: ReadonlySet<string>;
  definition(instance: string, queue: string): QueueDefinition | undefined;
}

/** The `@OnDelayed` methods of a Nest application. @param instances asked at boot, when the names of all are known */
export function inApplication(
  modules: ModulesContainer,
  application: ApplicationConfig,
  options: ResolvedModuleOptions,
  instances: KnownInstances,
  carrier: CurrentTrace,
): HandlerDiscovery {
  return async (validate) => {
    if (options.consume === false) {
      return { handlers: [], warnings: [], left: handlersNamed(modules, options.name) };
    }
    const invoker = new HandlerInvoker(modules, application, options.globalEnhancers, carrier);
    const { consume } = options;
    const consumes = (queue: string) => consume === true || consume.includes(queue);
    const definition = (queue: string) => instances.definition(options.name, queue);
    const settings = { instance: options.name, instances: instances.names, consumes, definition, validate };
    const found = await new HandlerExplorer(modules, invoker, settings).explore();
    return { ...found, enhancers: found.handlers.length > 0 ? invoker.globals.describe() : undefined };
  };
}
