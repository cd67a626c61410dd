import { setImmediate } from 'node:timers'; // Not the global one, which test frameworks replace.
import { globOf } from './commands/key.commands.js';
import { runCommand } from './memory.commands.js';
import { Keyspace } from './memory.keyspace.js';
import type { Reply } from './memory.replies.js';
import { ScriptEngine } from './memory.scripts.js';

/** What TIME, due times and leases go by. */
export interface StoreClock {
  /** ms since 1970. */
  now(): number;
}

/** One session that subscribed. Exactly one of `channel` and `pattern` is given. */
export interface Subscription {
  readonly channel?: string;
  readonly pattern?: string;
  heard(channel: string, message: string): void;
}

const named = new Map<string, MemoryStore>();

/**
 * What a Redis is to this library, inside the process: keys, a clock, scripts, and messages.
 *
 * Commands take effect at once and in order, as in Redis one at a time; their answers and the messages come in a later turn
 * of the event loop, in the order in which they were caused. Without that turn a worker would never let timers and
 * sockets have theirs. All texts inside hold one byte per character.
 */
export class MemoryStore {
  readonly #keys: Keyspace;
  readonly #scripts: ScriptEngine;
  readonly #subscriptions = new Set<Subscription>();
  #outbox: (() => void)[] = [];
  /** Sees each command before it runs, those of scripts included. What it throws is what the command answers. */
  before: ((name: string, args: readonly string[]) => void) | undefined;

  /** @param clock may be exchanged or moved while the store is in use */
  constructor(public clock: StoreClock = { now: () => Date.now() }) {
    this.#keys = new Keyspace(() => this.clock.now());
    this.#scripts = new ScriptEngine((name, args) => this.command(name, args));
  }

  /** The store that all applications of this process share under one URL. It lasts as long as the process. */
  static named(url: string): MemoryStore {
    let store = named.get(url);
    if (!store) named.set(url, (store = new MemoryStore()));
    return store;
  }

  /** @throws ReplyError */
  command(name: string, args: readonly string[]): Reply {
    this.before?.(name, args);
    const context = {
      keys: this.#keys,
      now: this.clock.now(),
      publish: (channel: string, message: string) => this.#publish(channel, message),
    };
    return runCommand(context, name, args);
  }

  /** @throws ReplyError */
  script(source: string, keys: readonly string[], args: readonly string[]): Reply {
    return this.#scripts.run(source, keys, args);
  }

  subscribe(subscription: Subscription): () => void {
    this.#subscriptions.add(subscription);
    return () => this.#subscriptions.delete(subscription);
  }

  /** Does this in a later turn of the event loop, behind all that was asked for before. */
  later(deliver: () => void): void {
    if (this.#outbox.push(deliver) > 1) return;
    setImmediate(() => {
      const outbox = this.#outbox;
      this.#outbox = [];
      for (const one of outbox) one();
    });
  }

  #publish(channel: string, message: string): number {
    const hearing = [...this.#subscriptions].filter(({ channel: name, pattern }) =>
      pattern === undefined ? name === channel : globOf(pattern).test(channel),
    );
    for (const subscription of hearing) this.later(() => subscription.heard(channel, message));
    return hearing.length;
  }
}
