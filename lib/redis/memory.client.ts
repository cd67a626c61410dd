import { EventEmitter } from 'node:events';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import type { MemorySession } from '../memory/memory.session.js';
import type { MemoryStore } from '../memory/memory.store.js';

export const MEMORY_SCHEME = 'memory://';

type Memory = typeof import('../memory/memory.session.js');

/** Loaded at most once, and only where it is asked for. */
let loading: Promise<Memory> | undefined;

/** Where the clients of one connection find their store. */
interface Home {
  readonly url: string;
  /** The name of the `forRoot()`, for log lines. */
  readonly instance: string;
  store: MemoryStore | undefined;
}

/**
 * What stands in for an ioredis client when `connection` is `memory://`. The store and its Lua are loaded by `connect()`, so that
 * an application on Redis never loads them; the methods of commands are there from then on.
 */
export class MemoryClient extends EventEmitter {
  status: 'wait' | 'connecting' | 'ready' | 'end' = 'wait';
  /** As of a client on a socket file, for messages. */
  readonly options: { readonly path: string };
  readonly #home: Home;
  #session: MemorySession | undefined;

  /** @param home a URL, of which `memory://` alone means a store of this client and its duplicates; or a store */
  constructor(home: string | MemoryStore | Home, instance = 'default') {
    super();
    if (typeof home === 'string') this.#home = { url: home, instance, store: undefined };
    else if ('url' in home) this.#home = home;
    else this.#home = { url: MEMORY_SCHEME, instance, store: home };
    this.options = { path: this.#home.url };
  }

  /** Once connected. */
  get store(): MemoryStore | undefined {
    return this.#home.store;
  }

  /** Another client of the same store. */
  duplicate(): MemoryClient {
    return new MemoryClient(this.#home);
  }

  async connect(): Promise<void> {
    if (this.status === 'connecting' || this.status === 'ready') {
      throw new Error('Redis is already connecting/connected');
    }
    this.status = 'connecting';
    const memory = await (loading ??= import('../memory/memory.session.js'));
    this.#home.store ??= openStore(this.#home, memory);
    if ((this.status as string) === 'end') return;
    this.#session ??= new memory.MemorySession(this.#home.store, this);
    this.#session.open();
    Object.assign(this, this.#session.methods);
    this.emit('connect');
    this.status = 'ready';
    this.emit('ready');
  }

  defineCommand(name: string, script: { lua: string; numberOfKeys: number }): void {
    const { methods } = this.#session!;
    this.#session!.define(name, script);
    for (const its of [name, `${name}Buffer`]) Object.assign(this, { [its]: methods[its] });
  }

  disconnect(): void {
    if (this.status === 'end') return;
    this.status = 'end';
    this.#session?.close();
    this.emit('close');
    this.emit('end');
  }
}

function openStore({ url, instance }: Home, memory: Memory): MemoryStore {
  const logger = DelayQueueLogger.of(instance);
  if (process.env['NODE_ENV'] === 'production') {
    logger.warn(
      `${url} keeps jobs in this process only, and NODE_ENV is production: they are gone with it, and no other process sees ` +
        'them. Set `connection` of forRoot() to the URL of a Redis.',
    );
  } else logger.log(`${url} keeps jobs in this process only: they do not survive it.`);
  return url === MEMORY_SCHEME ? new memory.MemoryStore() : memory.MemoryStore.named(url);
}
