import 'reflect-metadata';
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { Module } from '@nestjs/common';
import type { INestApplicationContext, ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createApp, logCollector } from './app.js';
import type { TestApp, TestAppSettings } from './app.js';
import { RedisServer } from './redis-server.js';
import { newProcess } from './processes.js';
import type { RedisServerOptions } from './redis-server.js';
import { World } from './world.js';

export interface InAWorld {
  readonly world: World;
  /** The private server, when one was asked for. */
  readonly server: RedisServer;
  /** An application with an unnamed `forRoot()` on the world's Redis. */
  start(settings?: TestAppSettings): Promise<TestApp>;
  /** An application of exactly these parts. */
  boot(parts: ModuleMetadata, log?: string[]): Promise<INestApplicationContext>;
}

/**
 * For the top of a spec: one world for all its tests, whose applications are closed after each of them.
 *
 * @param privateServer starts a Redis that only this spec uses: where commands or clients are counted, or settings matter
 */
export function inAWorld(privateServer?: RedisServerOptions): InAWorld {
  let world: World;
  let server: RedisServer | undefined;
  const open: { close(): Promise<void> }[] = [];

  beforeAll(async () => {
    server = privateServer && (await RedisServer.start(privateServer));
    world = await World.open(server?.url);
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((app) => app.close()));
  });
  afterAll(async () => {
    await world.close();
    await server?.stop();
  });

  return {
    get world() {
      return world;
    },
    get server() {
      return server!;
    },
    async start(settings) {
      const app = await createApp(world, settings);
      open.push(app);
      return app;
    },
    async boot(parts, log) {
      @Module(parts)
      class Root {}
      newProcess();
      const logger = log ? logCollector(log) : (false as const);
      const app = await NestFactory.createApplicationContext(Root, { logger, abortOnError: false });
      open.push(app);
      return app;
    },
  };
}
