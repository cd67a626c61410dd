import type { CanActivate, DynamicModule, FactoryProvider, ModuleMetadata, Type } from '@nestjs/common';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { shown } from '../job/duration.js';
import { isPlainObject, oneOf, readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import type { DashboardAccess } from './access.js';
import type { ShownJob } from './private-parts.js';

/** Who may do what, and what is shown. */
export interface DelayQueueDashboardOptions {
  /**
   * What the user of a request may do: `'write'`, `'read'` or `'none'`, or `{ user, level }` with a name for the log. Asked for each
   * request, after the guards, with the request of the framework (Express or Fastify), so also with what guards put into it.
   * `'unprotected'` lets everybody do everything. Default, with guards: who passes them may write.
   */
  access?: ((request: any) => DashboardAccess | Promise<DashboardAccess>) | 'unprotected';
  /** What is shown of payloads: all, nothing (and no context), or what a function makes of each. Default `'show'`. */
  payloads?: 'show' | 'hide' | ((payload: any, job: ShownJob) => unknown);
  /** `'hide'` shows of errors only their names and times: their texts may quote payloads. Default `'show'`. */
  errors?: 'show' | 'hide';
  /** A badge on the page, such as `production`. */
  environment?: string;
  /** The folder with the files of the page. Only for an application that is bundled into one file. */
  assets?: string;
}

/** Where it is, known before anything is injected. */
export interface DashboardPlace extends Pick<ModuleMetadata, 'imports'> {
  /** Path below that of the application, such as `admin/jobs`. Default `'delay-queue'`. */
  path?: string;
  /** Nest's guards around all of it: classes, whose dependencies come from `imports`, or instances. */
  guards?: (Type<CanActivate> | CanActivate)[];
  /** Decorators of its controller: metadata for global guards, such as `Roles('admin')`. */
  decorators?: ClassDecorator[];
}

export type DelayQueueDashboardRootOptions = DelayQueueDashboardOptions & DashboardPlace;

export interface DelayQueueDashboardRootAsyncOptions extends DashboardPlace {
  useFactory: (...args: any[]) => DelayQueueDashboardOptions | Promise<DelayQueueDashboardOptions>;
  inject?: FactoryProvider['inject'];
}

export interface ResolvedPlace {
  path: string;
  guards: (Type<CanActivate> | CanActivate)[];
  decorators: ClassDecorator[];
  imports: NonNullable<DynamicModule['imports']>;
}

export interface ResolvedDashboard {
  access: ((request: unknown) => unknown) | undefined;
  payloads: 'show' | 'hide' | ((payload: unknown, job: ShownJob) => unknown);
  errors: 'show' | 'hide';
  environment: string | undefined;
  assets: string | undefined;
}

const MODULE = 'DelayQueueDashboardModule';
/** Segments without anything that a router reads as a pattern. */
const PATH = /^[\w.~-]+(?:\/[\w.~-]+)*$/;
const ENVIRONMENT_MAX = 40;

const PLACE_RULES: OptionRules<DashboardPlace, ResolvedPlace> = {
  path: (draft, value, field) => {
    const path = typeof value === 'string' ? value.replace(/^\/|\/$/g, '') : '';
    if (!PATH.test(path) || /(?:^|\/)\.\.?(?:\/|$)/.test(path)) {
      throw new InvalidOptionError(`${field}: ${shown(value)} is no path of plain segments, such as 'admin/jobs'.`);
    }
    draft.path = path;
  },
  guards: (draft, value, field) => {
    draft.guards = list(value, field) as ResolvedPlace['guards'];
  },
  decorators: (draft, value, field) => {
    draft.decorators = list(value, field) as ClassDecorator[];
  },
  imports: (draft, value, field) => {
    draft.imports = list(value, field) as ResolvedPlace['imports'];
  },
};

const RULES: OptionRules<DelayQueueDashboardOptions, ResolvedDashboard> = {
  access: (draft, value, field) => {
    if (value === 'unprotected') draft.access = () => 'write';
    else if (typeof value === 'function') draft.access = value as ResolvedDashboard['access'];
    else throw new InvalidOptionError(`${field}: must be a function of the request, or 'unprotected'.`);
  },
  payloads: (draft, value, field) => {
    draft.payloads =
      typeof value === 'function'
        ? (value as (payload: unknown) => unknown)
        : oneOf(value, ['show', 'hide'], `${field} (or a function)`);
  },
  errors: (draft, value, field) => {
    draft.errors = oneOf(value, ['show', 'hide'], field);
  },
  environment: (draft, value, field) => {
    if (typeof value !== 'string' || value === '' || value.length > ENVIRONMENT_MAX) {
      throw new InvalidOptionError(`${field}: must be a text of 1 to ${ENVIRONMENT_MAX} characters.`);
    }
    draft.environment = value;
  },
  assets: (draft, value, field) => {
    if (typeof value !== 'string' || value === '') throw new InvalidOptionError(`${field}: must be a folder.`);
    draft.assets = value;
  },
};

/** @throws InvalidOptionError */
export function resolvePlace(method: string, place: unknown): ResolvedPlace {
  const draft: ResolvedPlace = { path: 'delay-queue', guards: [], decorators: [], imports: [] };
  const resolved = readOptions(place, PLACE_RULES, draft, (option) => `${MODULE}.${method}({ ${option} })`);
  for (const guard of resolved.guards) {
    const instance = (typeof guard === 'function' ? guard.prototype : guard) as Partial<CanActivate> | undefined;
    if (typeof instance?.canActivate === 'function') continue;
    throw new InvalidOptionError(
      `${MODULE}.${method}({ guards }): ${shown(guard)} is no guard: it has no canActivate().`,
    );
  }
  return resolved;
}

/** @throws InvalidOptionError also when nobody would be kept out */
export function resolveDashboard(options: unknown, guards: readonly unknown[]): ResolvedDashboard {
  const draft: ResolvedDashboard = {
    access: undefined,
    payloads: 'show',
    errors: 'show',
    environment: undefined,
    assets: undefined,
  };
  const resolved = readOptions(options, RULES, draft, (option) => `${MODULE}.forRoot({ ${option} })`);
  if (resolved.access === undefined && guards.length === 0) {
    throw new InvalidOptionError(
      `${MODULE}.forRoot(): nobody would be kept out, and whoever comes could purge queues. Give guards, which run before it ` +
        "({ guards: [AdminGuard] }), or say what each user may do ({ access: (request) => request.user?.admin ? 'write' : " +
        "'none' }), or both. access: 'unprotected' leaves it open.",
    );
  }
  return resolved;
}

/** The options of `forRoot()` are those of both. */
export function splitOptions(options: unknown): { place: object; rest: object } {
  if (!isPlainObject(options)) {
    throw new InvalidOptionError(
      `${MODULE}.forRoot(options): options must be a plain object, but are ${shown(options)}.`,
    );
  }
  const { path, guards, decorators, imports, ...rest } = options;
  return { place: { path, guards, decorators, imports }, rest };
}

function list(value: unknown, field: string): unknown[] {
  if (Array.isArray(value)) return value;
  throw new InvalidOptionError(`${field}: must be an array.`);
}
