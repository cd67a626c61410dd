import { DelayQueueLogger } from '../delay-queue.logger.js';
import { readable } from '../job/duration.js';
import type { Redis } from 'ioredis';
import { channels } from '../delay-queue.channels.js';
import { ClosedError, UnavailableError } from '../delay-queue.errors.js';
import type { ConnectionError } from '../delay-queue.errors.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import { commandName, KEYS_PER_CALL, readsOnly, SCRIPT_NAMES, scriptSource } from '../lua/scripts.js';
import type { ScriptName } from '../lua/scripts.js';
import { examine, noDatabase, refusalOf } from './connection-trouble.js';
import { wakeChannel } from './keys.js';
import { MemoryClient } from './memory.client.js';
import {
  addressOf,
  createClient,
  createSecondClient,
  databaseOf,
  disconnect,
  nodeOf,
  skipReadyCheck,
} from './redis.client.js';
import type { RedisClient } from './redis.client.js';
import { AfterCloseError, isReadOnlyReply, isRefusal, NoAnswerError, NotSentError, replyCode } from './redis.errors.js';
import {
  clearInterval,
  clearTimeout,
  performance,
  randomBytes,
  setInterval,
  setTimeout,
} from '../time-and-randomness.js';

type Call = (...args: (string | number)[]) => Promise<unknown>;

/** How long a subscriber may be silent before it is asked whether it still lives. */
const SUBSCRIBER_CHECK_MS = 10_000;
/** What a process sends to its own channel; wake-ups carry the name of a key. */
const ECHO = '';
/** How long a call waits for a connection that the test kit has cut. */
const INTERRUPTED_MS = 50;
/** How long a server may say nothing to a new client before somebody looks why. */
const FIRST_SILENCE_MS = 500;
/** The same after a connection that worked: an outage is likelier than another language. */
const SILENCE_MS = 1_000;
/** How long a connection is kept whose database cannot be selected: permissions and databases come back with another one. */
const REFUSED_MS = 2_000;
/** A server that did not answer is not looked at more often. */
const EXAMINED_AGAIN_MS = 10_000;

/**
 * The two Redis clients of one instance in one process: one for commands, one that listens for wake-ups. Where somebody
 * asks for durability there is a third one, in a connection of its own, which has no subscriber and logs nothing.
 *
 * Every call has a deadline, and a missed one destroys the socket: ioredis' own `commandTimeout` rejects the call but keeps
 * a half-open link, on which every later call times out as well.
 */
export class RedisConnection {
  readonly processName = randomBytes(9).toString('base64url');
  readonly channel: string;
  readonly address: string;
  readonly commands: RedisClient;
  readonly subscriber: RedisClient | undefined;
  readonly #clients: readonly RedisClient[];
  readonly #db: number;
  /** Of each client the socket on which its database is known to be selected. */
  readonly #selected = new Map<RedisClient, unknown>();
  #scripts: Map<ScriptName, Call> | undefined;
  #loading: Promise<void> | undefined;
  #closed = false;
  #interrupted = false;
  readonly #warned = new Set<string>();
  #connecting: Promise<unknown> | undefined;
  #outageSince: number | undefined;
  /** Why nothing can be sent, as far as it is known. */
  #trouble: string | undefined;
  /** The same, when no waiting helps. */
  #refusal: ConnectionError | undefined;
  #refused: ((why: Error) => void) | undefined;
  #examinedAt = -Infinity;
  #firstLook: NodeJS.Timeout | undefined;
  /** Somebody looks just now. */
  #looking: Promise<void> | undefined;
  #wasReady = false;
  /** The driver closes the connection of commands, because it asked for INFO in vain; on the next one it does not ask. */
  #withoutInfo = false;
  /** Until a write succeeds: connections come and go meanwhile, because only a new one can find a new master. */
  #refusing = false;
  #pending = new Set<(error: Error) => void>();
  #ready = new Set<() => void>();
  #subscribed = false;
  #subscribers = new Set<() => void>();
  #echo: (() => void) | undefined;
  #listeners = new Set<(shard: string | undefined) => void>();
  #checkTimer: NodeJS.Timeout | undefined;
  readonly #handshakeTimers = new Map<RedisClient, NodeJS.Timeout>();
  readonly #replacedAt = new WeakMap<object, number>();
  readonly #logger: DelayQueueLogger;
  readonly #timeoutMs: number;

  constructor(
    private readonly options: ResolvedModuleOptions,
    /** The connection of everything else, when this one is for durable enqueues: without wake-ups, and silent. */
    private readonly main?: RedisConnection,
  ) {
    this.#logger = DelayQueueLogger.of(options.name);
    this.#timeoutMs = options.commandTimeoutMs;
    this.channel = wakeChannel(options.prefix, this.processName);
    const { connection, name } = options;
    this.commands = main
      ? createSecondClient(main.commands, connection, `dq:${name}:durable`)
      : createClient(connection, `dq:${name}:commands`);
    this.subscriber = main ? undefined : createSecondClient(this.commands, connection, `dq:${name}:wake`);
    this.#clients = this.subscriber ? [this.commands, this.subscriber] : [this.commands];
    this.address = addressOf(this.commands);
    this.#db = databaseOf(this.commands);
    this.#watch();
  }

  /** A store of `memory://`. */
  get isInMemory(): boolean {
    return (this.commands as unknown) instanceof MemoryClient;
  }

  /** Name of the instance that it belongs to. */
  get instance(): string {
    return this.options.name;
  }

  /** How long a call may take. */
  get timeoutMs(): number {
    return this.#timeoutMs;
  }

  get isReady(): boolean {
    return this.commands.status === 'ready' && !this.#closed && this.#hasDatabase(this.commands);
  }

  /** Why it cannot be used before somebody changes something, if that is known. */
  get refusal(): ConnectionError | undefined {
    return this.#refusal;
  }

  /** Why it is not ready, as far as it is known. */
  get trouble(): string {
    if (this.#closed) return 'the application was closed';
    return this.#refusal?.message ?? this.#trouble ?? 'not connected';
  }

  /** Until `resume()`, see there. */
  get isInterrupted(): boolean {
    return this.#interrupted;
  }

  /** By us, and for ever: no call will be sent again. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /**
   * Starts connecting; with `wait` resolves when both clients are ready, or rejects after `connectTimeout`; at once when
   * waiting would not help.
   *
   * @throws ConnectionError, UnavailableError, ClosedError
   */
  async open(wait: boolean): Promise<void> {
    // Closed while the application boots, which goes on: a client that connects again would never end.
    if (this.#closed) {
      if (wait) throw this.#wasClosed();
      return;
    }
    this.#connecting ??= Promise.all(this.#clients.map((client) => client.connect().catch(() => undefined)));
    this.#firstLook ??= setTimeout(() => void this.#examine(), FIRST_SILENCE_MS).unref();
    if (!wait) return;
    try {
      await Promise.race([this.#usable(), new Promise((_, reject) => (this.#refused = reject))]);
    } catch (error) {
      if (this.#closed) throw this.#wasClosed();
      this.close();
      if (error === this.#refusal) throw error;
      const why = this.#trouble ? ` (${this.#trouble})` : '';
      throw new UnavailableError(
        `Redis at ${this.address} did not answer within connectTimeout (${this.options.connectTimeoutMs} ms)${why}. ` +
          "Start it, correct `connection`, or boot without it by `connect: 'lazy'`.",
        { cause: error },
      );
    } finally {
      this.#refused = undefined;
    }
  }

  #notSent(): NotSentError {
    return this.#closed ? new AfterCloseError() : new NotSentError();
  }

  #wasClosed(): ClosedError {
    return new ClosedError(`The application was closed while it booted, so Redis at ${this.address} is not used.`);
  }

  /** Whoever may not run a script is told at boot. */
  async #usable(): Promise<void> {
    if (this.#refusal) throw this.#refusal;
    await this.whenReady(this.options.connectTimeoutMs);
    await Promise.race([this.#connecting, this.#after(this.options.connectTimeoutMs)]);
    await this.#load().catch((error: unknown) => {
      const refusal = refusalOf(error, this.address, this.#db);
      if (refusal) this.#refuse(this.commands, refusal);
    });
    if (this.#refusal) throw this.#refusal;
  }

  /** Resolves when commands can be sent. @throws NotSentError after `timeoutMs`, or when closed */
  async whenReady(timeoutMs = this.#timeoutMs): Promise<void> {
    if (this.isReady) return;
    if (this.#closed) throw new AfterCloseError();
    // A provider that enqueues while the application is being built comes before `onModuleInit`.
    void this.open(false);
    if (this.#interrupted) timeoutMs = Math.min(timeoutMs, INTERRUPTED_MS);
    await new Promise<void>((resolve, reject) => {
      const done = () => {
        clearTimeout(timer);
        this.#ready.delete(done);
        if (this.#closed) reject(new AfterCloseError());
        else resolve();
      };
      const timer = setTimeout(() => {
        this.#ready.delete(done);
        reject(new NotSentError());
      }, timeoutMs);
      this.#ready.add(done);
    });
  }

  /**
   * One try of one script.
   *
   * @throws NotSentError when no connection was ready; NoAnswerError when it was sent and the answer did not come
   */
  async run(
    script: ScriptName,
    keys: readonly string[],
    session: string,
    args: (string | number)[],
    onSent?: () => void,
  ): Promise<unknown> {
    if (!this.isReady) throw this.#notSent();
    if (!this.#scripts) await this.#load();
    const answer = await this.send(() => {
      onSent?.();
      return this.#scripts!.get(script)!(...keys, session, ...args);
    }, session);
    if (this.#refusing && !readsOnly(script)) this.#recovered();
    return answer;
  }

  /**
   * Any other command, under the same deadline and with the same errors.
   *
   * @param key one that it names: on a Cluster the connection to the node that has it is replaced when no answer comes. For
   *   a call without one nobody knows which node it went to; calls that name keys will find out
   */
  async send<T>(call: () => Promise<T>, key?: string): Promise<T> {
    if (!this.isReady) throw this.#notSent();
    return new Promise<T>((resolve, reject) => {
      const finish = () => {
        clearTimeout(timer);
        this.#pending.delete(abandon);
      };
      const abandon = (error: Error) => {
        finish();
        reject(error);
      };
      const timer = setTimeout(() => {
        abandon(new NoAnswerError(`Redis at ${this.address} did not answer within ${this.#timeoutMs} ms.`));
        this.#replaceNodeOf(key);
      }, this.#timeoutMs);
      this.#pending.add(abandon);
      call().then(
        (value) => {
          finish();
          resolve(value);
        },
        (error: unknown) => {
          finish();
          if (isReadOnlyReply(error)) {
            this.#outage('is read-only');
            this.#refusing = true;
            this.#replaceNodeOf(key);
          } else if (isRefusal(error)) {
            this.#outage(`answers ${replyCode(error)}`);
            this.#refusing = true;
          }
          reject(error);
        },
      );
    });
  }

  /** Resolves when wake-ups have been subscribed to for the first time, or after `connectTimeout`: polling works without. */
  async subscribed(): Promise<void> {
    if (this.#subscribed || this.#closed) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#subscribers.delete(done);
        resolve();
      };
      const timer = setTimeout(done, this.options.connectTimeoutMs);
      this.#subscribers.add(done);
    });
  }

  /** Calls back with the shard's `due` key on a wake-up, and with undefined when wake-ups may have been missed. */
  onWake(listener: (shard: string | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** As if Redis had gone, for the test kit. Calls fail soon, because nobody waits for their deadlines in a test. */
  interrupt(): void {
    if (this.#closed || this.#interrupted) return;
    this.#interrupted = true;
    for (const client of this.#clients) disconnect(client);
  }

  /** Redis is back. Resolves when it can be used. */
  async resume(): Promise<void> {
    if (this.#closed || !this.#interrupted) return;
    this.#interrupted = false;
    await Promise.all(this.#clients.map((client) => client.connect()));
    await this.whenReady();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#checkTimer);
    clearTimeout(this.#firstLook);
    for (const timer of this.#handshakeTimers.values()) clearTimeout(timer);
    for (const client of this.#clients) disconnect(client);
    // The driver's `connect()` never ends for a Cluster that was closed between its first answer and `ready`.
    this.#refused?.(new AfterCloseError());
    for (const abandon of this.#pending) abandon(new NoAnswerError('The connection to Redis was closed.'));
    for (const done of [...this.#ready, ...this.#subscribers]) done();
  }

  #watch(): void {
    // A server that accepts connections and never answers the handshake would hold a client in `connect` for ever.
    for (const client of this.#clients) {
      client.on('connect', () => {
        clearTimeout(this.#handshakeTimers.get(client));
        this.#handshakeTimers.set(client, setTimeout(() => this.#replace(client), this.#timeoutMs).unref());
      });
      client.on('ready', () => void this.#select(client));
      client.on('error', (error: Error) => this.#judge(client, error));
    }
    this.commands.on('close', () => {
      if (this.#withoutInfo) this.#withoutInfo = false;
      else this.#wonder('is not reachable (the connection closed)');
      for (const abandon of this.#pending)
        abandon(new NoAnswerError('The connection to Redis closed before the answer.'));
    });
    this.subscriber?.on('message', (channel: string, shard: string) => {
      if (channel !== this.channel) return;
      if (shard === ECHO) this.#echo?.();
      else this.#tell(shard);
    });
  }

  /**
   * ioredis selects the database of a new connection, but one that cannot be selected is an event to it, after which it goes
   * on with database 0. So nothing of ours is sent before the server has said that it is the right one: on each new socket,
   * because another server, or other permissions, may be behind it.
   */
  async #select(client: RedisClient): Promise<void> {
    const { stream } = client as { stream?: unknown };
    if (this.#db !== 0) {
      try {
        await (client as Redis).select(this.#db);
      } catch (error) {
        if (this.#closed || (client as { stream?: unknown }).stream !== stream) return;
        clearTimeout(this.#handshakeTimers.get(client));
        this.#refuse(client, noDatabase((error as Error).message, this.address, this.#db));
        setTimeout(() => destroySocket({ stream }), REFUSED_MS).unref();
        return;
      }
      this.#selected.set(client, stream);
    }
    clearTimeout(this.#handshakeTimers.get(client));
    if (client === this.commands) this.#isUsable();
    else void this.#subscribe();
  }

  #hasDatabase(client: RedisClient): boolean {
    return this.#db === 0 || this.#selected.get(client) === (client as { stream?: unknown }).stream;
  }

  #isUsable(): void {
    if (!this.isReady) return;
    this.#wasReady = true;
    if (!this.#refusing) this.#recovered();
    for (const done of this.#ready) done();
    this.#tell(undefined);
    // What cut this connection may have cut the other one without a word.
    void this.#checkSubscriber();
  }

  /** An error of the driver while it connects. Each client may be refused for itself. */
  #judge(client: RedisClient, error: Error): void {
    if (skipReadyCheck(client, error)) {
      this.#withoutInfo ||= client === this.commands;
      return;
    }
    const refusal = refusalOf(error, this.address, this.#db);
    if (refusal) return this.#refuse(client, refusal);
    if (client !== this.commands) return;
    this.#trouble = error.message;
    this.#wonder(`is not reachable (${error.message})`);
  }

  /**
   * Perhaps somebody listens there, and speaks another language. As long as no connection has worked that is looked at before the
   * trouble is told, which otherwise is a warning of what the mistake led to, and then the mistake.
   */
  #wonder(what: string): void {
    const away = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(this.#trouble ?? '');
    if (away || this.#wasReady) this.#outage(what);
    if (away) return;
    if (!this.#wasReady) void this.#examine().then(() => this.isReady || this.#outage(what));
    else if (performance.now() - this.#outageSince! > SILENCE_MS) void this.#examine();
  }

  /** Once in a while, because it needs connections of its own. */
  async #examine(): Promise<void> {
    if (this.#looking) return this.#looking;
    if (this.#closed || this.isReady || this.isInMemory || this.#interrupted || this.#refusal) return;
    if (performance.now() - this.#examinedAt < EXAMINED_AGAIN_MS) return;
    this.#examinedAt = performance.now();
    this.#looking = examine(this.commands, this.address)
      .then((refusal) => {
        if (refusal && !this.isReady) this.#refuse(this.commands, refusal);
      })
      .finally(() => (this.#looking = undefined));
    await this.#looking;
  }

  /** Told once in each outage, whatever was told of it before. */
  #refuse(client: RedisClient, refusal: ConnectionError): void {
    if (this.#closed || this.#refusal?.message === refusal.message) return;
    if (this.#refused || !this.isReady) this.#refusal = refusal;
    if (this.#refused) return this.#refused(refusal); // whoever boots throws it
    if (this.main) return;
    if (client !== this.commands && this.isReady) {
      return this.#warnOnce(`${refusal.message} Without wake-ups jobs start up to 5 s late.`);
    }
    this.#lost(refusal.message);
    this.#logger.error(`${refusal.message} Retrying; jobs wait.`);
  }

  async #subscribe(): Promise<void> {
    if (this.#closed) return;
    clearInterval(this.#checkTimer);
    this.#checkTimer = setInterval(() => void this.#checkSubscriber(), SUBSCRIBER_CHECK_MS).unref();
    try {
      await this.subscriber!.subscribe(this.channel);
    } catch (error) {
      if (!/NOPERM/.test((error as Error).message)) return; // It closed again; the next `ready` subscribes.
      this.#warnOnce(`The user at ${this.address} may not subscribe to ${this.channel}: jobs start up to 5 s late.`);
    }
    if (this.#closed) return;
    this.#subscribed = true;
    for (const done of this.#subscribers) done();
    // What was published while nobody listened is lost: everybody reads again.
    this.#tell(undefined);
  }

  /**
   * A subscriber sends nothing, so it would never notice a dead link; and on a Cluster a PING goes to another node. So a
   * message is sent to ourselves and must come back.
   */
  async #checkSubscriber(): Promise<void> {
    const { subscriber } = this;
    if (subscriber?.status !== 'ready' || !this.isReady) return;
    const heard = new Promise<void>((resolve) => (this.#echo = resolve));
    try {
      await this.send(() => this.commands.publish(this.channel, ECHO));
    } catch {
      return; // Trouble of the other connection, or publishing is not permitted.
    }
    const inTime = await Promise.race([heard.then(() => true), this.#after(this.#timeoutMs).catch(() => false)]);
    if (inTime || this.#closed) return;
    this.#replace(subscriber);
    this.#tell(undefined);
  }

  /** Loads nothing on the server: ioredis sends EVALSHA and falls back to EVAL. Finds out which texts it understands. */
  async #load(): Promise<void> {
    this.#loading ??= this.send(() =>
      (this.commands as Redis).eval('#!lua flags=no-writes\nreturn 1', 0).then(
        () => true,
        (error: Error) => {
          if (/compil/i.test(error.message)) return false;
          throw error;
        },
      ),
    )
      .then(async (flags) => {
        if (!this.isInMemory) await this.#tryEvalsha();
        const scripts = new Map<ScriptName, Call>();
        for (const name of SCRIPT_NAMES) {
          const command = commandName(name);
          this.commands.defineCommand(command, { numberOfKeys: KEYS_PER_CALL, lua: scriptSource(name, flags) });
          const client = this.commands as unknown as Record<string, Call>;
          scripts.set(name, (...args) => client[command]!(...args));
        }
        this.#scripts = scripts;
      })
      .finally(() => (this.#loading = undefined));
    await this.#loading;
  }

  /** The driver falls back to EVAL when a script is not there, and not when there is no EVALSHA or it is not permitted. */
  async #tryEvalsha(): Promise<void> {
    try {
      await this.send(() => (this.commands as Redis).evalsha('0'.repeat(40), 0));
    } catch (error) {
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
    }
  }

  /** Destroys the sockets of a client; it connects anew by itself. At most twice a second: replies may fail in bulk. */
  #replace(client: RedisClient): void {
    if (this.#closed || !this.#mayReplace(client)) return;
    const nodes = 'nodes' in client ? client.nodes() : [client];
    for (const node of nodes) destroySocket(node);
    if ('nodes' in client) client.disconnect(true);
  }

  /**
   * The same after a call that was not answered. Of a Cluster only the node that serves `key`: one that hangs must not cut
   * off the others. When the client does not know that node any more, it is looking for it already.
   */
  #replaceNodeOf(key: string | undefined): void {
    const { commands } = this;
    if (!('nodes' in commands)) return this.#replace(commands);
    const node = key === undefined ? undefined : nodeOf(commands, key);
    if (node && !this.#closed && this.#mayReplace(node)) destroySocket(node);
  }

  #mayReplace(client: object): boolean {
    const now = performance.now();
    if (now - (this.#replacedAt.get(client) ?? -Infinity) < 500) return false;
    this.#replacedAt.set(client, now);
    return true;
  }

  #outage(what: string): void {
    if (this.#outageSince !== undefined || this.#closed || this.main) return;
    this.#lost(what);
    this.#logger.warn(`Redis at ${this.address} ${what}. Retrying; jobs wait.`);
  }

  #lost(reason: string): void {
    if (this.#outageSince !== undefined) return;
    this.#outageSince = performance.now();
    const { instance, address } = this;
    if (channels.connectionLost.hasSubscribers) channels.connectionLost.publish({ instance, address, reason });
  }

  #recovered(): void {
    this.#refusing = false;
    this.#refusal = undefined;
    this.#trouble = undefined;
    if (this.#outageSince === undefined) return;
    const outageMs = performance.now() - this.#outageSince;
    this.#outageSince = undefined;
    const { instance, address } = this;
    if (channels.connectionRestored.hasSubscribers)
      channels.connectionRestored.publish({ instance, address, outageMs });
    this.#logger.log(`Redis at ${this.address} is back after ${readable(outageMs)}.`);
  }

  #warnOnce(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#logger.warn(message);
  }

  #tell(shard: string | undefined): void {
    for (const listener of this.#listeners) listener(shard);
  }

  #after(ms: number): Promise<never> {
    return new Promise((_, reject) => setTimeout(() => reject(new NotSentError()), ms).unref());
  }
}

function destroySocket(node: unknown): void {
  (node as { stream?: { destroy(): void } }).stream?.destroy();
}
