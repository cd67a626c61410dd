import { quoted } from '../job/duration.js';

type Service = Function;

const plain = new WeakMap<Service, string>();
let isUnnamedMade = false;
let named: string | undefined;

/** How often `forRoot()` was called, by all copies of the package together: an application may load it twice. */
const CALLS = Symbol.for('nestjs-delay-queue:roots');
const shared = globalThis as { [CALLS]?: number };

/** What a service is called, whatever `forRoot()` was called. */
export function serviceName(service: Service): string {
  return plain.get(service) ?? service.name;
}

/** @param name what `forRoot({ name })` was given; undefined: nothing */
export function noteRootName(name: string | undefined): void {
  shared[CALLS] = (shared[CALLS] ?? 0) + 1;
  if (name === undefined) isUnnamedMade = true;
  else named = name;
}

/**
 * Until the `forRoot()` that provides it is called, the name of a service tells of that: Nest shows it of what it cannot inject, at a moment
 * at which nothing of this library runs. A provider that throws would have to stand in a module that is imported.
 */
export function tellOfRoot(services: readonly Service[]): void {
  for (const service of services) {
    const { name } = service;
    plain.set(service, name);
    Object.defineProperty(service, 'name', { configurable: true, get: () => (isUnnamedMade ? name : withRoot(name)) });
  }
}

function withRoot(name: string): string {
  if (named === undefined) {
    if (shared[CALLS] === undefined) return `${name} (of DelayQueueModule.forRoot(), which nobody called)`;
    return `${name} (of another copy of nestjs-delay-queue than the one whose forRoot() was called: load one, see \`npm ls nestjs-delay-queue\`)`;
  }
  const eu = quoted(named);
  return `${name} (of DelayQueueModule.forRoot() without a name; of the one with name ${eu} inject it by @InjectDelayQueue(${eu}))`;
}
