import type { IncomingMessage, ServerResponse } from 'node:http';
import { All, Controller, Inject, Req, Res, SetMetadata, UseGuards, VERSION_NEUTRAL } from '@nestjs/common';
import type { Type } from '@nestjs/common';
import type { DashboardHandler } from './dashboard.handler.js';
import type { ResolvedPlace } from './dashboard-options.js';

/** What Express and Fastify make of a request, as far as it says where the dashboard is mounted. */
interface FrameworkRequest {
  /** Of Fastify. */
  readonly raw?: IncomingMessage;
  readonly routeOptions?: { readonly url?: string };
  /** Of Express. */
  readonly route?: { readonly path?: unknown };
  /** Of Express: what an application around this one has taken off the path. */
  readonly baseUrl?: string;
  readonly originalUrl?: string;
  readonly body?: unknown;
}

interface FrameworkResponse {
  /** Of Fastify. */
  readonly raw?: ServerResponse;
  /** Of Fastify: it must not answer itself. */
  hijack?(): unknown;
}

/** What the controller hands its requests to. */
export interface HandlesRequests {
  readonly handler: DashboardHandler;
}

export interface DashboardController {
  readonly controller: Type<unknown>;
  /**
   * Says which paths are its: its own, and all below. Each adapter writes the second in another way, and on Express Nest warns of
   * that of Fastify at each start; so it is said when the adapter is known, which is before Nest looks at the routes.
   */
  readonly routeFor: (adapter: string | undefined) => void;
}

/**
 * A controller of its own class for each `forRoot()`, because path and guards stand on the class. It answers by `@Res()`, so that
 * no interceptor of the application wraps what it answers.
 */
export function dashboardController(place: ResolvedPlace, token: symbol): DashboardController {
  class DelayQueueDashboardController {
    constructor(private readonly dashboard: HandlesRequests) {}

    async all(request: FrameworkRequest, response: FrameworkResponse): Promise<void> {
      const raw = request.raw ?? (request as unknown as IncomingMessage);
      const target = response.hijack ? response.raw! : (response as unknown as ServerResponse);
      response.hijack?.();
      const url = request.originalUrl ?? raw.url ?? '/';
      await this.dashboard.handler(raw, target, { mount: mountIn(url, request), body: request.body, asked: request });
    }
  }
  const { prototype } = DelayQueueDashboardController;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, 'all')!;
  Inject(token)(DelayQueueDashboardController, undefined, 0);
  Req()(prototype, 'all', 0);
  Res()(prototype, 'all', 1);
  Controller({ path: place.path, version: VERSION_NEUTRAL })(DelayQueueDashboardController);
  // What @ApiExcludeController() of @nestjs/swagger sets.
  SetMetadata('swagger/apiExcludeController', [true])(DelayQueueDashboardController);
  UseGuards(...place.guards)(DelayQueueDashboardController);
  for (const decorator of place.decorators) decorator(DelayQueueDashboardController);
  return {
    controller: DelayQueueDashboardController,
    routeFor: (adapter) => All(['', adapter === 'fastify' ? '*' : '{*path}'])(prototype, 'all', descriptor),
  };
}

/**
 * The part of a URL that is the path of the controller: as many segments as its route has. A global prefix is among them, and they
 * may stand elsewhere in the path as well, so they are counted and not looked for.
 */
export function mountIn(url: string, { route, routeOptions, baseUrl = '' }: FrameworkRequest): string {
  const written = routeOptions?.url ?? route?.path;
  const pattern = typeof written === 'string' ? written : '';
  const depth = pattern.split('/').filter((segment) => segment !== '' && !segment.includes('*')).length;
  const [path = ''] = url.split('?', 1);
  let end = path.startsWith(baseUrl) ? baseUrl.length : 0;
  for (let n = 0; n < depth; n++) {
    while (path[end] === '/') end++;
    const next = path.indexOf('/', end);
    end = next < 0 ? path.length : next;
  }
  return path.slice(0, end);
}
