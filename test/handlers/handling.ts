import type { INestApplication, ModuleMetadata, OnModuleInit } from '@nestjs/common';
import { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import type { GlobalEnhancers } from '../../lib/handlers/global-enhancers.js';
import { type Exploration, type ExplorerSettings, HandlerExplorer } from '../../lib/handlers/handler.explorer.js';
import { HandlerInvoker } from '../../lib/handlers/handler.invoker.js';
import type { HandlerOutcome } from '../../lib/handlers/handler-outcome.js';
import { DelayedJob, type DelayedJobInit } from '../../lib/job/delayed-job.js';

export interface HandlingSettings extends Partial<ExplorerSettings> {
  globalEnhancers?: GlobalEnhancers;
  /** What an application does between `create()` and `init()`. */
  configure?: (app: INestApplication) => void;
}

export interface Handling extends Exploration {
  app: INestApplication;
  /** The line for the log at boot. */
  globals: string | undefined;
  /** Runs the handler of a queue as a worker would. */
  run: (queue: string, payload?: unknown, job?: Partial<DelayedJobInit>) => Promise<HandlerOutcome>;
}

/** A real Nest application whose handlers are explored in `onModuleInit`, with the worker left out. */
export async function handling(
  metadata: ModuleMetadata,
  { globalEnhancers = 'pipes', configure, ...settings }: HandlingSettings = {},
): Promise<Handling> {
  class Runner implements OnModuleInit {
    exploration: Exploration = { handlers: [], warnings: [] };
    readonly invoker: HandlerInvoker;

    constructor(
      private readonly modules: ModulesContainer,
      config: ApplicationConfig,
    ) {
      this.invoker = new HandlerInvoker(modules, config, globalEnhancers);
    }

    async onModuleInit(): Promise<void> {
      const defaults = {
        instance: 'default',
        instances: new Set(['default']),
        consumes: () => true,
        definition: () => undefined,
        validate: () => undefined,
      };
      this.exploration = await new HandlerExplorer(this.modules, this.invoker, { ...defaults, ...settings }).explore();
    }
  }
  const runner = {
    provide: Runner,
    useFactory: (modules: ModulesContainer, config: ApplicationConfig) => new Runner(modules, config),
    inject: [ModulesContainer, ApplicationConfig],
  };
  const testing = await Test.createTestingModule({
    ...metadata,
    providers: [...(metadata.providers ?? []), runner],
  }).compile();
  const app = testing.createNestApplication({ logger: false });
  configure?.(app);
  await app.init();
  const { exploration, invoker } = app.get(Runner);
  return {
    ...exploration,
    app,
    globals: invoker.globals.describe(),
    run: async (queue, payload, job) => {
      const handler = exploration.handlers.find((one) => one.queue === queue);
      if (!handler) throw new Error(`No handler for "${queue}".`);
      return handler.invoke(aJob({ queue, payload, ...job }));
    },
  };
}

export function aJob(init: Partial<DelayedJobInit> = {}): DelayedJob {
  return new DelayedJob({
    id: 'job-1',
    queue: 'test',
    payload: undefined,
    attempt: 1,
    maxAttempts: 10,
    snoozes: 0,
    dueAt: 0,
    enqueuedAt: 0,
    latenessMs: 0,
    context: {},
    ...init,
  });
}
