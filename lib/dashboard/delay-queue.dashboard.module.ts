import { Module } from '@nestjs/common';
import type { DynamicModule, FactoryProvider, OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost, ModuleRef } from '@nestjs/core';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { UnknownInstanceError } from '../delay-queue.errors.js';
import { getDelayQueueToken, shardsToken } from '../delay-queue.tokens.js';
import { DelayQueueHealth } from '../health/delay-queue.health.js';
import { DelayQueueInspector } from '../inspection/delay-queue.inspector.js';
import { NeedsForRoot } from '../instance/bare-module.js';
import { DelayQueueInstances, DelayQueueInstancesModule } from '../instance/delay-queue.instances.js';
import type { InstanceContext } from '../instance/instance-context.js';
import type { DelayQueueProducer } from '../producer/delay-queue.producer.js';
import { ActLog } from './act-log.js';
import { loadAssets } from './assets.js';
import { dashboardHandler } from './dashboard.handler.js';
import type { DashboardHandler } from './dashboard.handler.js';
import { dashboardController } from './dashboard-controller.js';
import { resolveDashboard, resolvePlace, splitOptions } from './dashboard-options.js';
import type {
  DelayQueueDashboardRootAsyncOptions,
  DelayQueueDashboardRootOptions,
  ResolvedDashboard,
  ResolvedPlace,
} from './dashboard-options.js';
import { InstanceView } from './instance-view.js';
import { PrivateParts } from './private-parts.js';

/** Is provided where a dashboard is. */
const PLACED = Symbol('delay-queue:dashboard:placed');

/** One dashboard of an application. */
class DelayQueueDashboard implements OnModuleInit {
  #handler: DashboardHandler | undefined;

  constructor(
    private readonly options: ResolvedDashboard,
    private readonly modules: ModuleRef,
    private readonly instances: DelayQueueInstances,
  ) {}

  /** @throws InvalidOptionError, UnknownInstanceError */
  async onModuleInit(): Promise<void> {
    await this.instances.booting(async () => {
      const where = 'DelayQueueDashboardModule.forRoot({ assets })';
      const { access = () => 'write', environment, assets } = this.options;
      const log = new ActLog();
      const views = this.#views(log);
      this.#handler = dashboardHandler({ access, environment, log, views, assets: await loadAssets(assets, where) });
    });
  }

  get handler(): DashboardHandler {
    return this.#handler!;
  }

  #views(log: ActLog): ReadonlyMap<string, InstanceView> {
    const { payloads, errors } = this.options;
    const privateParts = new PrivateParts(payloads, errors, (what, thrown, payload) =>
      log.fault(what, thrown, payload),
    );
    const get = <Service>(token: unknown) => this.modules.get<Service>(token as symbol, { strict: false });
    const views = [...this.instances.names].map((name): [string, InstanceView] => {
      const context = get<InstanceContext>(shardsToken(name));
      const inspector = get<DelayQueueInspector>(getDelayQueueToken(name, DelayQueueInspector));
      const health = get<DelayQueueHealth>(getDelayQueueToken(name, DelayQueueHealth));
      const producer = get<DelayQueueProducer>(getDelayQueueToken(name));
      return [name, new InstanceView({ name, context, inspector, health, producer }, privateParts)];
    });
    if (views.length > 0) return new Map(views);
    throw new UnknownInstanceError('DelayQueueDashboardModule: there is no DelayQueueModule.forRoot() to look at.');
  }
}

/**
 * A page, and the API behind it, at a path of the application: what is due when, jobs, dead letters, and acts on them. Closed unless
 * it is told whom to let in.
 */
@Module({ imports: [DelayQueueInstancesModule] })
export class DelayQueueDashboardModule extends NeedsForRoot {
  /** @internal */
  protected readonly made = PLACED;
  /** @internal */
  protected readonly advice =
    'imports: [DelayQueueDashboardModule] alone shows nothing. Import DelayQueueDashboardModule.forRoot({ path, guards }) in the root module.';

  /** @throws InvalidOptionError at boot, also when neither `guards` nor `access` says who may come in */
  static forRoot(options: DelayQueueDashboardRootOptions): DynamicModule {
    const { place, rest } = splitOptions(options ?? {});
    const resolved = resolvePlace('forRoot', place);
    return assemble(resolved, { useFactory: () => resolveDashboard(rest, resolved.guards) });
  }

  /** The same with options from a factory. What places it must be known before that runs, so it stands beside it. */
  static forRootAsync(options: DelayQueueDashboardRootAsyncOptions): DynamicModule {
    const { useFactory, inject = [], ...place } = options;
    const resolved = resolvePlace('forRootAsync', place);
    return assemble(resolved, {
      useFactory: async (...args: unknown[]) => resolveDashboard(await useFactory(...args), resolved.guards),
      inject,
    });
  }
}

function assemble(place: ResolvedPlace, options: Pick<FactoryProvider, 'useFactory' | 'inject'>): DynamicModule {
  const OPTIONS = Symbol('delay-queue:dashboard:options');
  const DASHBOARD = Symbol('delay-queue:dashboard');
  const { controller, routeFor } = dashboardController(place, DASHBOARD);
  return {
    module: DelayQueueDashboardModule,
    imports: [DelayQueueInstancesModule, ...place.imports],
    controllers: [controller],
    providers: [
      { provide: OPTIONS, ...options },
      { provide: PLACED, useValue: true },
      {
        provide: DASHBOARD,
        useFactory: (
          options: ResolvedDashboard,
          modules: ModuleRef,
          instances: DelayQueueInstances,
          host: HttpAdapterHost,
        ) => {
          routeFor((host.httpAdapter as AbstractHttpAdapter | undefined)?.getType());
          return new DelayQueueDashboard(options, modules, instances);
        },
        inject: [OPTIONS, ModuleRef, DelayQueueInstances, HttpAdapterHost],
      },
    ],
  };
}
