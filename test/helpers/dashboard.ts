import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll } from '@jest/globals';
import { Module } from '@nestjs/common';
import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { DelayQueueInspector, DelayQueueProducer } from '../../lib/index.js';
import { DelayQueueDashboardModule } from '../../lib/dashboard/index.js';
import type { DelayQueueDashboardRootOptions } from '../../lib/dashboard/index.js';
import type { AssetManifest, Problem } from '../../lib/dashboard/api.js';
import { logCollector } from './app.js';
import { newProcess } from './processes.js';

export const SCRIPT = "console.log('page');\n";

/** What stands in for the built page, until all tests of the calling file are over. */
export function stubAssets(): string {
  const folder = mkdtempSync(join(tmpdir(), 'dashboard-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'assets', 'index-1a2b.js.gz'), gzipSync(SCRIPT));
  const manifest: AssetManifest = {
    page: '<!doctype html><html><head><base href="/"><script src="assets/index-1a2b.js"></script></head></html>',
    files: { 'assets/index-1a2b.js': { type: 'text/javascript; charset=utf-8' } },
  };
  writeFileSync(join(folder, 'assets.json'), JSON.stringify(manifest));
  return folder;
}

export const ADAPTERS = {
  Express: () => new ExpressAdapter(),
  Fastify: () => new FastifyAdapter(),
} as const;

export type AdapterName = keyof typeof ADAPTERS;

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Of JSON. */
  readonly body: any;
  readonly problem: Problem;
}

export interface Asked {
  method?: string;
  headers?: Record<string, string | undefined>;
  body?: string | Buffer;
}

/** Sends exactly this path: what a browser or `fetch` would tidy up stays as it is. */
export function ask(port: number, path: string, { method = 'GET', headers = {}, body }: Asked = {}): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
    if (body !== undefined) given['content-length'] = String(Buffer.byteLength(body));
    const asked = request({ host: '127.0.0.1', port, path, method, agent: false, headers: given }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const isJson = /json/.test(response.headers['content-type'] ?? '') && text !== '';
        const parsed = isJson ? JSON.parse(text) : undefined;
        resolve({ status: response.statusCode!, headers: response.headers, text, body: parsed, problem: parsed });
      });
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

export interface Dashboard {
  readonly app: INestApplication;
  readonly port: number;
  readonly producer: DelayQueueProducer;
  readonly inspector: DelayQueueInspector;
  /** Of a read, below the mount. */
  readonly get: (path: string, headers?: Asked['headers']) => Promise<Answered>;
  /** An act, as the page does it. */
  readonly act: (name: string, body: object, headers?: Asked['headers']) => Promise<Answered>;
  readonly ask: (path: string, asked?: Asked) => Promise<Answered>;
}

export interface DashboardSettings {
  adapter?: AdapterName;
  imports: ModuleMetadata['imports'];
  providers?: ModuleMetadata['providers'];
  controllers?: ModuleMetadata['controllers'];
  options?: DelayQueueDashboardRootOptions;
  /** Instead of a module that `options` makes. */
  module?: NonNullable<ModuleMetadata['imports']>[number];
  /** Before it listens. */
  prepare?: (app: INestApplication) => void;
  log?: string[];
  /** The application reads no bodies. */
  withoutParser?: boolean;
  /** In front of `path`. */
  prefix?: string;
  path?: string;
}

const assets = stubAssets();

/** An application with a dashboard, over HTTP. */
export async function serveDashboard(settings: DashboardSettings): Promise<Dashboard> {
  const {
    adapter = 'Express',
    imports = [],
    providers,
    controllers,
    options = { access: 'unprotected' },
    log,
  } = settings;
  const { prepare, prefix = '', path = 'delay-queue' } = settings;
  @Module({
    imports: [...imports, settings.module ?? DelayQueueDashboardModule.forRoot({ assets, path, ...options })],
    ...(providers && { providers }),
    ...(controllers && { controllers }),
  })
  class Root {}
  newProcess();
  const logger = log ? logCollector(log) : (false as const);
  const app = await NestFactory.create(Root, ADAPTERS[adapter](), {
    logger,
    abortOnError: false,
    bodyParser: !settings.withoutParser,
  });
  prepare?.(app);
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as { port: number };
  const home = `${prefix}/${path}`;
  return {
    app,
    port,
    producer: app.get(DelayQueueProducer),
    inspector: app.get(DelayQueueInspector),
    get: (below, headers) => ask(port, `${home}/${below}`, { headers }),
    act: (name, body, headers = FROM_THE_PAGE) =>
      ask(port, `${home}/api/${name}`, { method: 'POST', headers, body: JSON.stringify(body) }),
    ask: (below, asked) => ask(port, `${home}${below}`, asked),
  };
}

export const FROM_THE_PAGE = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' };
