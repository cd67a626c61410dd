import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, Module, UnauthorizedException, VersioningType } from '@nestjs/common';
import type { CallHandler, CanActivate, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, Reflector } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { map } from 'rxjs';
import type { Observable } from 'rxjs';
import { InvalidOptionError, UnknownInstanceError } from '../../../lib/index.js';
import { DelayQueueDashboardModule } from '../../../lib/dashboard/index.js';
import { dashboardsIn } from '../../helpers/dashboard-in-a-world.js';
import { ask, SCRIPT, stubAssets } from '../../helpers/dashboard.js';
import type { AdapterName } from '../../helpers/dashboard.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const { serve, forRoot } = dashboardsIn(here);
const ADAPTERS: AdapterName[] = ['Express', 'Fastify'];
const assets = stubAssets();

@Injectable()
class WrapsEverything implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((data: unknown) => ({ data })));
  }
}

@Injectable()
class Keys {
  readonly known = 'sesame';
}

@Module({ providers: [Keys], exports: [Keys] })
class KeysModule {}

@Injectable()
class NeedsKey implements CanActivate {
  constructor(private readonly keys: Keys) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest();
    if (request.headers['x-key'] !== this.keys.known) throw new UnauthorizedException();
    request.user = { name: 'ali' };
    return true;
  }
}

describe.each(ADAPTERS)('on %s, the dashboard', (adapter) => {
  it('sends its files compressed to whoever takes that, and to caches the word of it', async () => {
    const { port, ask: at } = await serve({ adapter });
    const file = '/delay-queue/assets/index-1a2b.js';
    for (const accepted of ['gzip', 'br, gzip;q=0.5', 'deflate, GZIP ; q=1']) {
      const response = await fetch(`http://127.0.0.1:${port}${file}`, { headers: { 'accept-encoding': accepted } });
      expect([accepted, response.headers.get('content-encoding')]).toEqual([accepted, 'gzip']);
      expect([response.headers.get('vary'), await response.text()]).toEqual(['accept-encoding', SCRIPT]);
    }
    for (const accepted of [undefined, 'br', 'gzip;q=0', 'gzip; q=0.0, br', 'x-gzip2']) {
      const plain = await at('/assets/index-1a2b.js', { headers: { 'accept-encoding': accepted } });
      expect([accepted, plain.headers['content-encoding'], plain.text]).toEqual([accepted, undefined, SCRIPT]);
      expect(plain.headers['vary']).toBe('accept-encoding');
    }
  });

  it('answers with and without a slash at the end, and its files are found from both', async () => {
    const { ask: at } = await serve({ adapter });
    for (const [path, base] of [
      ['', './delay-queue/'],
      ['?from=mail', './delay-queue/'],
      ['/', './'],
      ['/?from=mail', './'],
    ] as const) {
      const page = await at(path);
      expect([path, page.status, page.headers['content-type']]).toEqual([path, 200, 'text/html; charset=utf-8']);
      expect(page.text).toContain(`<base href="${base}">`);
    }
    const file = await at('/assets/index-1a2b.js');
    expect([file.status, file.text]).toEqual([200, SCRIPT]);
    expect(file.headers['cache-control']).toContain('immutable');
    expect((await at('/api/me')).body).toMatchObject({ level: 'write', instances: ['default'] });
  });

  it('stays what it is below a prefix, with versions in the path, and where all answers are wrapped', async () => {
    const {
      ask: at,
      act,
      producer,
    } = await serve({
      adapter,
      path: 'admin/jobs',
      prefix: '/shop/v7',
      providers: [{ provide: APP_INTERCEPTOR, useClass: WrapsEverything }],
      prepare: (app) => {
        app.setGlobalPrefix('shop/v7');
        app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
      },
    });
    await producer.enqueue('mounted', 1, { id: 'A', delay: '1h' });
    expect((await at('')).text).toContain('<base href="./jobs/">');
    expect((await at('/')).text).toContain('<base href="./">');
    expect((await at('/api/me')).body).toMatchObject({ level: 'write' });
    expect((await act('jobs/cancel', { queue: 'mounted', ids: ['A'] })).body.results).toMatchObject([
      { outcome: 'cancelled' },
    ]);
  });

  it('is behind the guards that it is given, with what they need, and behind those of the application', async () => {
    const options = {
      guards: [NeedsKey],
      imports: [KeysModule],
      access: (request: any) => ({ level: 'read' as const, user: request.user?.name }),
    };
    const { ask: at } = await serve({ adapter, options });
    for (const path of ['', '/', '/assets/index-1a2b.js', '/api/me', '/api/state', '/nothing']) {
      expect([path, (await at(path)).status]).toEqual([path, 401]);
    }
    const known = await at('/api/me', { headers: { 'x-key': 'sesame' } });
    expect([known.status, known.body]).toEqual([200, expect.objectContaining({ user: 'ali', level: 'read' })]);
  });

  it('carries the metadata that a global guard asks for', async () => {
    const Role = Reflector.createDecorator<string>();
    @Injectable()
    class ByRole implements CanActivate {
      constructor(private readonly reflector: Reflector) {}
      canActivate(context: ExecutionContext): boolean {
        return this.reflector.get(Role, context.getClass()) === context.switchToHttp().getRequest().headers['x-role'];
      }
    }
    const providers = [{ provide: APP_GUARD, useClass: ByRole }];
    const options = { decorators: [Role('admin')], access: 'unprotected' as const };
    const { ask: at } = await serve({ adapter, providers, options });
    expect((await at('/api/me')).status).toBe(403);
    expect((await at('/api/me', { headers: { 'x-role': 'admin' } })).status).toBe(200);
  });

  it('lets the application be closed while a browser holds its connection', async () => {
    const dashboard = await serve({ adapter });
    const response = await fetch(`http://127.0.0.1:${dashboard.port}/delay-queue/api/state`);
    expect(response.status).toBe(200);
    await response.text();
    await dashboard.app.close();
  });

  it('stands beside the routes of the application, and beside another one of itself', async () => {
    @Controller('delay-queues')
    class Own {
      @Get()
      get(): string {
        return 'own';
      }
    }
    const { ask: at, port } = await serve({
      adapter,
      controllers: [Own],
      imports: [DelayQueueDashboardModule.forRoot({ assets, path: 'public/jobs', access: () => 'read' })],
    });
    expect((await ask(port, '/delay-queues')).text).toContain('own');
    expect((await at('/api/me')).body.level).toBe('write');
    expect((await ask(port, '/public/jobs/api/me')).body.level).toBe('read');
    expect((await ask(port, '/public/jobs')).text).toContain('<base href="./jobs/">');
  });

  it('takes options from a factory', async () => {
    const module = DelayQueueDashboardModule.forRootAsync({
      path: 'delay-queue',
      imports: [KeysModule],
      inject: [Keys],
      useFactory: async (keys: Keys) => ({
        assets,
        environment: 'staging',
        access: (request: any) => (request.headers['x-key'] === keys.known ? 'read' : 'none'),
      }),
    });
    const { ask: at } = await serve({ adapter, module });
    expect((await at('/api/me')).status).toBe(403);
    expect((await at('/api/me', { headers: { 'x-key': 'sesame' } })).body).toMatchObject({ environment: 'staging' });
  });

  it('reads a body that no parser has read', async () => {
    const { act, producer } = await serve({
      adapter,
      prepare: (app) => {
        if (adapter === 'Express') return;
        // Fastify hands a stream on only when it is told to.
        const fastify = app.getHttpAdapter().getInstance();
        fastify.removeAllContentTypeParsers();
        fastify.addContentTypeParser('*', (_: unknown, __: unknown, done: (error: null) => void) => done(null));
      },
      withoutParser: true,
    });
    await producer.enqueue('unparsed', 1, { id: 'A', delay: '1h' });
    const answered = await act('jobs/cancel', { queue: 'unparsed', ids: ['A'] });
    expect(answered.body).toEqual({ results: [{ id: 'A', outcome: 'cancelled', state: 'delayed' }] });
  });
});

describe('an application around the application', () => {
  it('may have taken a part of the path away', async () => {
    const { app } = await serve();
    const inner = (app as NestExpressApplication).getHttpAdapter().getInstance() as (...args: unknown[]) => void;
    const { default: express } = (await import('express')) as { default: () => any };
    const outer = express().use('/delay-queue', inner);
    const server = createServer(outer).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as { port: number };
      expect((await ask(port, '/delay-queue/delay-queue')).text).toContain('<base href="./delay-queue/">');
      expect((await ask(port, '/delay-queue/delay-queue/api/me')).status).toBe(200);
    } finally {
      server.close();
    }
  });
});

describe('boot', () => {
  const booting = (options: object) =>
    here.boot({ imports: [forRoot(), DelayQueueDashboardModule.forRoot({ assets, ...options })] });

  it('fails when nobody would be kept out, and says what to do in both ways', async () => {
    const boot = booting({});
    await expect(boot).rejects.toThrow(InvalidOptionError);
    await expect(boot).rejects.toThrow(/guards: \[AdminGuard\].*access: \(request\) =>.*access: 'unprotected'/s);
  });

  it('succeeds with guards, with access, or when it is said to be open', async () => {
    for (const options of [
      { guards: [NeedsKey], imports: [KeysModule] },
      { access: () => 'none' },
      { access: 'unprotected' },
    ]) {
      await expect(booting(options)).resolves.toBeDefined();
    }
  });

  it.each([
    [{ access: 'open' }, 'access'],
    [{ path: '' }, 'path'],
    [{ path: 'a/:id' }, 'path'],
    [{ path: '../a' }, 'path'],
    [{ path: 'a/*' }, 'path'],
    [{ guards: [class Nothing {}] }, 'guards'],
    [{ guards: NeedsKey }, 'guards'],
    [{ payloads: 'mask' }, 'payloads'],
    [{ errors: true }, 'errors'],
    [{ environment: '' }, 'environment'],
    [{ acces: 'unprotected' }, 'access'],
    [{ assets: '/nowhere' }, 'assets'],
  ])('refuses %j, naming the option', async (options, name) => {
    await expect(async () => booting({ access: 'unprotected', ...options })).rejects.toThrow(InvalidOptionError);
    await expect(async () => booting({ access: 'unprotected', ...options })).rejects.toThrow(name);
  });

  it('refuses an application without queues', async () => {
    const dashboard = DelayQueueDashboardModule.forRoot({ assets, access: 'unprotected' });
    await expect(here.boot({ imports: [dashboard] })).rejects.toThrow(UnknownInstanceError);
  });

  it('of an application without HTTP is none of its business', async () => {
    const app = await here.boot({
      imports: [forRoot(), DelayQueueDashboardModule.forRoot({ assets, guards: [{ canActivate: () => true }] })],
    });
    await expect(app.close()).resolves.toBeUndefined();
  });
});
