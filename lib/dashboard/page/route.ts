import { computed, signal } from '@preact/signals';
import { isTime } from './format.js';

// The address is the state: what is shown can be linked, kept as a bookmark, and gone back to. It lies in the hash, so that
// the page works below any path without a route of the server.

export const SCREENS = [
  'queues',
  'timeline',
  'jobs',
  'job',
  'dead',
  'lateness',
  'processes',
  'schedules',
  'server',
] as const;

export type Screen = (typeof SCREENS)[number];
export type Params = Readonly<Record<string, string | number | undefined>>;

export interface Route {
  readonly screen: Screen;
  readonly params: Readonly<Record<string, string | undefined>>;
}

export function parseHash(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split(/\?(.*)/s);
  const screen = SCREENS.find((name) => name === path) ?? 'queues';
  return { screen, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** A link may have been typed or cut: a time that is none counts as none. */
export function timeOf(text: string | undefined): number | undefined {
  return text !== undefined && /^-?\d{1,16}$/.test(text) && isTime(Number(text)) ? Number(text) : undefined;
}

export function hashOf(screen: Screen, params: Params): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return `#/${screen}${text && `?${text}`}`;
}

export const route = signal<Route>(parseHash(globalThis.location?.hash ?? ''));

/** Of `forRoot({ name })`; undefined for the first one. All links keep it. */
export const instance = computed(() => route.value.params['instance']);

/** The queue that is looked at, which the links of all screens keep. */
export const queueInView = computed(() => route.value.params['queue']);

/** The base of the page may lie below its path, so that `#/...` alone would load it anew. */
export function linkTo(screen: Screen, params: Params = {}): string {
  const { pathname, search } = globalThis.location;
  return `${pathname}${search}${hashOf(screen, { instance: instance.value, ...params })}`;
}

export function go(screen: Screen, params: Params = {}): void {
  globalThis.location.hash = hashOf(screen, { instance: instance.value, ...params });
}

/** Changes some parameters of the screen that is shown. What is `undefined` goes away. */
export function change(params: Params, { replace = false } = {}): void {
  const { screen, params: present } = route.value;
  const hash = hashOf(screen, { ...present, ...params });
  if (replace) {
    history.replaceState(null, '', linkTo(screen, { ...present, ...params }));
    route.value = parseHash(hash);
  } else {
    globalThis.location.hash = hash;
  }
}

export function followAddress(): void {
  addEventListener('hashchange', () => {
    const next = parseHash(globalThis.location.hash);
    const isOther = next.screen !== route.value.screen;
    route.value = next;
    if (isOther) scrollTo(0, 0);
  });
}
