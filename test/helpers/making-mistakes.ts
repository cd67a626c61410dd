import 'reflect-metadata';
import { Inject, Injectable, Module } from '@nestjs/common';
import type { DynamicModule, INestApplicationContext, ModuleMetadata, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DelayQueueModule, DelayQueueProducer, defineQueue, OnDelayed } from '../../lib/index.js';
import type { DelayQueueRootOptions } from '../../lib/index.js';
import { handlerClass, logCollector } from './app.js';

/** Somebody who tries the library, and what it says to that. */
export class Beginner {
  readonly lines: string[] = [];
  readonly #apps: INestApplicationContext[] = [];

  /** Boots an application with these imports and providers. */
  async boot(metadata: ModuleMetadata): Promise<INestApplicationContext> {
    @Module({})
    class AppModule {}
    const root: DynamicModule = { module: AppModule, ...metadata };
    const app = await NestFactory.createApplicationContext(root, {
      logger: logCollector(this.lines),
      abortOnError: false,
    });
    this.#apps.push(app);
    return app;
  }

  /** The same with the module, on a store in memory. */
  start(metadata: ModuleMetadata = {}, options: DelayQueueRootOptions = {}): Promise<INestApplicationContext> {
    return this.boot({ ...metadata, imports: [...(metadata.imports ?? []), memoryRoot(options)] });
  }

  async producer(options: DelayQueueRootOptions = {}, metadata: ModuleMetadata = {}): Promise<DelayQueueProducer> {
    return (await this.start(metadata, options)).get(DelayQueueProducer);
  }

  async close(): Promise<void> {
    for (const app of this.#apps) await app.close();
  }

  /** Warnings and errors, without level and context. */
  get warnings(): string[] {
    return this.lines
      .filter((line) => /^(?:warn|error) /.test(line))
      .map((line) => line.replace(/^\w+ /, '').replace(/ DelayQueue(?::\w+)?$/, ''));
  }
}

export function memoryRoot(options: DelayQueueRootOptions = {}): DynamicModule {
  return DelayQueueModule.forRoot({ connection: 'memory://', shutdownHooksWarning: false, ...options });
}

export interface Mistake {
  readonly mistake: string;
  readonly make: (beginner: Beginner) => unknown;
  /** Whole, as it is thrown or logged as a warning. */
  readonly says: string;
}

export const payments = defineQueue<{ paymentId: string }>('payment.check');

export const enqueue =
  (payload: unknown, options?: object, queue = 'd.q') =>
  async (beginner: Beginner): Promise<unknown> =>
    (await beginner.producer()).enqueue(queue, payload as object, options);

/** A class with one handler and this name. */
export function handlers(name: string, queue: string, options?: object): Type<unknown> {
  const made = handlerClass(queue, () => undefined, options);
  Object.defineProperty(made, 'name', { value: name });
  return made;
}

@Injectable()
export class Orders {
  constructor(@Inject(DelayQueueProducer) readonly producer: DelayQueueProducer) {}
}

export function decorate(target: object, method: string, queue: unknown): void {
  OnDelayed(queue as string)(target, method, Object.getOwnPropertyDescriptor(target, method)!);
}
