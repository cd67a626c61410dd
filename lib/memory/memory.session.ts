import type { EventEmitter } from 'node:events';
import { COMMANDS } from './memory.commands.js';
import { Status } from './memory.replies.js';
import type { Reply } from './memory.replies.js';
import { MemoryStore } from './memory.store.js';

export { MemoryStore };

type Method = (...args: unknown[]) => Promise<unknown>;

/**
 * One client of a store, with the methods of ioredis that the library calls, in the forms in which it calls them: values and
 * arrays as arguments, an object for HSET, a promise as answer.
 */
export class MemorySession {
  readonly methods: Record<string, Method> = {};
  #pending = new Set<(error: Error) => void>();
  #subscriptions = new Map<string, () => void>();
  #closed = false;

  constructor(
    private readonly store: MemoryStore,
    private readonly events: EventEmitter,
  ) {
    for (const name of COMMANDS.keys()) this.#add(name.toLowerCase(), (args) => store.command(name, args));
    this.methods['call'] = (name, ...args) => this.#answer(() => store.command(String(name), encoded(args)), textOf);
    this.methods['eval'] = (source, count, ...args) =>
      this.#script(bytesOfText(String(source)), Number(count), args, textOf);
    this.methods['subscribe'] = (...channels) => this.#subscribe(channels, 'channel');
    this.methods['psubscribe'] = (...patterns) => this.#subscribe(patterns, 'pattern');
    this.methods['unsubscribe'] = (...channels) => this.#unsubscribe(channels, 'channel');
    this.methods['pipeline'] = this.#pipeline as never;
    this.methods['hgetall'] = async (key) => {
      const flat = (await this.#answer(() => store.command('HGETALL', encoded([key])), textOf)) as string[];
      return Object.fromEntries(flat.flatMap((field, n) => (n % 2 === 0 ? [[field, flat[n + 1]!]] : [])));
    };
  }

  define(name: string, { lua, numberOfKeys }: { lua: string; numberOfKeys: number }): void {
    const source = bytesOfText(lua);
    this.methods[name] = (...args) => this.#script(source, numberOfKeys, args, textOf);
    this.methods[`${name}Buffer`] = (...args) => this.#script(source, numberOfKeys, args, bytesOf);
  }

  /** As after a lost connection: what was subscribed to must be subscribed to again. */
  open(): void {
    this.#closed = false;
  }

  /** What was asked for has been done, and its answers are lost. */
  close(): void {
    this.#closed = true;
    for (const unsubscribe of this.#subscriptions.values()) unsubscribe();
    this.#subscriptions.clear();
    const pending = [...this.#pending];
    this.#pending.clear();
    for (const reject of pending) reject(new Error('Connection is closed.'));
  }

  /** Nothing is sent before `exec()`, which answers `[error, reply]` for each command. */
  readonly #pipeline = (): object => {
    const commands: (() => Promise<unknown>)[] = [];
    const exec = () =>
      Promise.all(
        commands.map((run) =>
          run().then(
            (reply) => [null, reply],
            (error: Error) => [error, undefined],
          ),
        ),
      );
    const pipeline: object = new Proxy(
      { exec },
      {
        get: (own, name) => {
          if (name === 'exec') return own.exec;
          return (...args: unknown[]) => {
            commands.push(() => this.methods[String(name)]!(...args));
            return pipeline;
          };
        },
      },
    );
    return pipeline;
  };

  #add(name: string, run: (args: string[]) => Reply): void {
    this.methods[name] = (...args) => this.#answer(() => run(encoded(args)), textOf);
    this.methods[`${name}Buffer`] = (...args) => this.#answer(() => run(encoded(args)), bytesOf);
  }

  #script(source: string, count: number, args: unknown[], read: (bytes: string) => unknown): Promise<unknown> {
    const all = encoded(args);
    return this.#answer(() => this.store.script(source, all.slice(0, count), all.slice(count)), read);
  }

  #answer(run: () => Reply, read: (bytes: string) => unknown): Promise<unknown> {
    if (this.#closed) return Promise.reject(new Error('Connection is closed.'));
    return new Promise((resolve, reject) => {
      this.#pending.add(reject);
      const done = (settle: () => void) =>
        this.store.later(() => {
          if (this.#pending.delete(reject)) settle();
        });
      try {
        const reply = run();
        done(() => resolve(decoded(reply, read)));
      } catch (error) {
        done(() => reject(error as Error));
      }
    });
  }

  async #subscribe(names: unknown[], by: 'channel' | 'pattern'): Promise<unknown> {
    for (const name of encoded(names)) {
      const heard = (channel: string, message: string) => {
        const said = [textOf(channel), textOf(message)];
        if (by === 'channel') this.events.emit('message', ...said);
        else this.events.emit('pmessage', textOf(name), ...said);
      };
      this.#subscriptions.get(`${by} ${name}`)?.();
      this.#subscriptions.set(`${by} ${name}`, this.store.subscribe({ [by]: name, heard }));
    }
    return this.#answer(() => this.#subscriptions.size, textOf);
  }

  async #unsubscribe(names: unknown[], by: 'channel' | 'pattern'): Promise<unknown> {
    for (const name of encoded(names)) {
      this.#subscriptions.get(`${by} ${name}`)?.();
      this.#subscriptions.delete(`${by} ${name}`);
    }
    return this.#answer(() => this.#subscriptions.size, textOf);
  }
}

function encoded(args: readonly unknown[]): string[] {
  const texts: string[] = [];
  encodeInto(texts, args);
  return texts;
}

function encodeInto(texts: string[], args: readonly unknown[]): void {
  for (const arg of args) {
    if (typeof arg === 'string') texts.push(bytesOfText(arg));
    else if (Buffer.isBuffer(arg)) texts.push(arg.toString('latin1'));
    else if (Array.isArray(arg)) encodeInto(texts, arg);
    else if (typeof arg === 'object' && arg !== null) encodeInto(texts, Object.entries(arg).flat());
    // oxlint-disable-next-line no-base-to-string -- objects went the other ways
    else texts.push(bytesOfText(arg === undefined || arg === null ? '' : String(arg)));
  }
}

// oxlint-disable-next-line no-control-regex -- these are the bytes that are the same in both forms
const ASCII = /^[\0-\x7f]*$/;

function bytesOfText(text: string): string {
  return ASCII.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

function textOf(bytes: string): string {
  return ASCII.test(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString('utf8');
}

function bytesOf(bytes: string): Buffer {
  return Buffer.from(bytes, 'latin1');
}

function decoded(reply: Reply, read: (bytes: string) => unknown): unknown {
  if (typeof reply === 'string') return read(reply);
  if (reply instanceof Status) return read(reply.text);
  return Array.isArray(reply) ? reply.map((one) => decoded(one, read)) : reply;
}
