import 'reflect-metadata';
import { Logger, Module } from '@nestjs/common';
import type { INestApplicationContext, ModuleMetadata, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DelayQueueInspector, DelayQueueModule, DelayQueueProducer, OnDelayed } from '../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions, HandlerOptions } from '../../lib/index.js';
import { newProcess } from './processes.js';
import type { World } from './world.js';

export interface TestApp {
  readonly app: INestApplicationContext;
  readonly producer: DelayQueueProducer;
  readonly inspector: DelayQueueInspector;
  readonly close: () => Promise<void>;
}

export interface TestAppSettings extends Omit<ModuleMetadata, 'providers'> {
  providers?: ModuleMetadata['providers'];
  options?: DelayQueueRootOptions;
  /** What the library and Nest log, line by line. */
  log?: string[];
  /** In the process of the application before. Otherwise it stands for a process of its own. */
  sameProcess?: boolean;
}

/** A real Nest application on the world's Redis. */
export async function createApp(
  world: World,
  { options = {}, log, sameProcess = false, ...metadata }: TestAppSettings = {},
): Promise<TestApp> {
  @Module({
    ...metadata,
    imports: [
      ...(metadata.imports ?? []),
      DelayQueueModule.forRoot({
        connection: world.connection,
        prefix: world.prefix,
        shutdownHooksWarning: false,
        ...options,
      }),
    ],
  })
  class TestModule {}
  if (!sameProcess) newProcess();
  const app = await NestFactory.createApplicationContext(TestModule, {
    logger: log ? logCollector(log) : false,
    abortOnError: false,
  });
  return {
    app,
    producer: app.get(DelayQueueProducer),
    inspector: app.get(DelayQueueInspector),
    close: () => app.close(),
  };
}

/** A provider class with one handler. */
export function handlerClass(
  queue: string,
  handle: (payload: any, job: DelayedJob) => unknown,
  options: HandlerOptions = {},
): Type<unknown> {
  class TestHandlers {
    run(payload: unknown, job: DelayedJob): unknown {
      return handle(payload, job);
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(TestHandlers.prototype, 'run')!;
  OnDelayed(queue, options)(TestHandlers.prototype, 'run', descriptor);
  return TestHandlers;
}

const STACK = /\n\s+at /;
const isLineText = (part: unknown) => typeof part !== 'object' && !(typeof part === 'string' && STACK.test(part));

/** A logger that writes line by line into an array; fields and stacks beside the text are left out. */
export function logCollector(lines: string[]) {
  const add =
    (level: string) =>
    (...parts: unknown[]) =>
      void lines.push([level, ...parts.filter(isLineText)].join(' '));
  return {
    log: add('log'),
    warn: add('warn'),
    error: add('error'),
    debug: add('debug'),
    verbose: add('verbose'),
    fatal: add('fatal'),
  };
}

Logger.overrideLogger(false);
