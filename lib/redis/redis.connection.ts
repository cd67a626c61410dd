import { ClosedError, UnavailableError } from '../delay-queue.errors.js';
import type { ConnectionError } from '../delay-queue.errors.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import { readsOnly } from '../lua/scripts.js';
import type { AnyScriptName } from '../lua/scripts.js';
import { refusalOf } from './connection-trouble.js';
import { ConnectionWatch } from './connection-watch.js';
import type { WatchedConnection } from './connection-watch.js';
import { Handshake } from './handshake.js';
import { wakeChannel } from './keys.js';
import { keepConnecting } from './lasting-client.js';
import { MemoryClient } from './memory.client.js';
import { DEFAULTS } from '../defaults.js';
import { addressOf, createClient, createSecondClient, databaseOf, disconnect } from './redis.client.js';
import type { RedisClient } from './redis.client.js';
import {
  AfterCloseError,
  isReadOnlyReply,
  isRefusal,
  isTransient,
  NoAnswerError,
  NotSentError,
  replyCode,
} from './redis.errors.js';
import { ScriptLoader } from './script-loader.js';
import { Sockets } from './sockets.js';
import { WakeUpListener } from './wake-up-listener.js';
import type { WakeUpConnection } from './wake-up-listener.js';
import { clearTimeout, performance, randomBytes, setTimeout } from '../time-and-randomness.js';

/** How long a call waits for a connection that the test kit has cut. */
const INTERRUPTED_MS = 50;

/**
 * The two Redis clients of one instance in one process: one for commands, one that listens for wake-ups. Calls with
 * durability use a third one, in a connection of its own, which has no subscriber and logs nothing.
 *
 * Every call has a deadline, and a missed one destroys the socket: ioredis' own `commandTimeout` rejects the call but keeps
 * a half-open link, on which every later call times out as well.
 */
export class RedisConnection implements WatchedConnection, WakeUpConnection {
  readonly processName = randomBytes(9).toString('base64url');
  readonly channel: string;
  readonly address: string;
  readonly commands: RedisClient;
  readonly #clients: readonly RedisClient[];
  readonly #db: number;
  readonly #timeoutMs: number;
  readonly #watch: ConnectionWatch;
  readonly #handshake: Handshake;
  readonly #sockets = new Sockets();
  readonly #scripts: ScriptLoader;
  readonly #wakeUps: WakeUpListener | undefined;
  /** Only in the test kit: by so much the times of schedules are ahead of a server's clock that nobody can set. */
  movedMs = 0;
  isEnding = false;
  #closed = false;
  #interrupted = false;
  #connecting: Promise<unknown> | undefined;
  #pending = new Set<(error: Error) => void>();
  #ready = new Set<() => void>();

  constructor(
    private readonly options: ResolvedModuleOptions,
    /** The connection of everything else, when this one is for durable enqueues: without wake-ups, and silent. */
    main?: RedisConnection,
  ) {
    this.#timeoutMs = options.commandTimeoutMs;
    this.channel = wakeChannel(options.prefix, this.processName);
    const { connection, name } = options;
    this.commands = main
      ? createSecondClient(main.commands, connection, name, 'durable')
      : createClient(connection, name, 'commands');
    const subscriber = main ? undefined : createSecondClient(this.commands, connection, name, 'wake');
    this.#clients = subscriber ? [this.commands, subscriber] : [this.commands];
    this.address = addressOf(this.commands);
    this.#db = databaseOf(this.commands);
    this.#watch = new ConnectionWatch(this, this.#db, main !== undefined);
    this.#handshake = new Handshake(this.#db, this.address, this.#timeoutMs);
    this.#scripts = new ScriptLoader(this.commands, (call, key) => this.send(call, key));
    this.#listen();
    this.#wakeUps =
      subscriber && new WakeUpListener(subscriber, this.channel, this, (message) => this.#watch.warnOnce(message));
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
    return this.commands.status === 'ready' && !this.#closed && this.#handshake.hasDatabase(this.commands);
  }

  /** Why it cannot be used until settings or the server are changed, if that is known. */
  get refusal(): ConnectionError | undefined {
    return this.#watch.refusal;
  }

  /** Why it is not ready, as far as it is known. */
  get trouble(): string {
    return this.#closed ? 'the application was closed' : this.#watch.trouble;
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
   * @throws ConnectionError, UnavailableError, ClosedError
   */
  async open(wait: boolean): Promise<void> {
    // Closed while the application boots, which goes on: a client that connects again would never end.
    if (this.#closed) {
      if (wait) throw this.#wasClosed();
      return;
    }
    this.#connecting ??= Promise.all(this.#clients.map((client) => client.connect().catch(() => undefined)));
    this.#watch.start();
    if (!wait) return;
    try {
      await this.#watch.whileBooting(this.#usable());
    } catch (error) {
      if (this.#closed) throw this.#wasClosed();
      this.close();
      if (error === this.refusal) throw error;
      const isDefault = this.options.connection === DEFAULTS.connection;
      const why = this.#watch.driverSaid ? ` (${this.#watch.driverSaid})` : '';
      throw new UnavailableError(
        `Redis at ${this.address} did not answer within connectTimeout (${this.options.connectTimeoutMs} ms)${why}. ` +
          `Start it, ${isDefault ? 'give `connection`, of which this is the default' : 'correct `connection`'}, ` +
          "or boot without it by `connect: 'lazy'`.",
        { cause: error },
      );
    }
  }

  #notSent(): NotSentError {
    return this.#closed ? new AfterCloseError() : new NotSentError();
  }

  #wasClosed(): ClosedError {
    return new ClosedError(`The application was closed while it booted, so Redis at ${this.address} is not used.`);
  }

  /** Resolves when scripts run too, so that a missing permission fails the boot. */
  async #usable(): Promise<void> {
    if (this.refusal) throw this.refusal;
    await this.whenReady(this.options.connectTimeoutMs);
    await Promise.race([this.#connecting, notSentAfter(this.options.connectTimeoutMs)]);
    await this.#scripts.load().catch((error: unknown) => {
      const refusal = refusalOf(error, this.address, this.#db);
      if (refusal) this.#watch.refused(this.commands, refusal);
    });
    if (this.refusal) throw this.refusal;
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
    script: AnyScriptName,
    keys: readonly string[],
    session: string,
    args: (string | number)[],
    onSent?: () => void,
  ): Promise<unknown> {
    if (!this.isReady) throw this.#notSent();
    if (!this.#scripts.isLoaded) await this.#scripts.load(session);
    const answer = await this.send(() => {
      onSent?.();
      return this.#scripts.call(script, keys, session, args);
    }, session);
    if (!readsOnly(script)) this.#watch.written();
    return answer;
  }

  /**
   * Any other command, under the same deadline and with the same errors.
   *
   * @param key one that it names: on a Cluster the connection to the node that has it is replaced when no answer comes.
   *   Where nobody knows which node a call went to, those are that keep silent
   */
  async send<T>(call: () => Promise<T>, key?: string): Promise<T> {
    if (!this.isReady) throw this.#notSent();
    const sentAt = performance.now();
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
        this.#sockets.replaceNodeOf(this.commands, key, sentAt);
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
            this.#watch.callRefused('is read-only');
            this.#sockets.replaceNodeOf(this.commands, key);
          } else if (isRefusal(error)) this.#watch.callRefused(`answers ${replyCode(error)}`);
          else if (isTransient(error)) this.#sockets.replaceUnready(this.commands, this.#timeoutMs);
          reject(error);
        },
      );
    });
  }

  /** Whether the last call of a script to the shard with this key of due jobs found it to have groups, priorities or limits. */
  isLimited(due: string): boolean {
    return this.#scripts.isLimited(due);
  }

  /** Resolves when wake-ups have been subscribed to for the first time, or after `connectTimeout`: polling works without. */
  async subscribed(): Promise<void> {
    await this.#wakeUps?.subscribed(this.options.connectTimeoutMs);
  }

  /** Calls back with the shard's `due` key on a wake-up, and with undefined when wake-ups may have been missed. */
  onWake(listener: (shard: string | undefined) => void): () => void {
    return this.#wakeUps!.onWake(listener);
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
    this.#handshake.stop();
    this.#sockets.stop();
    for (const client of this.#clients) disconnect(client);
    this.#watch.stop(new AfterCloseError());
    for (const abandon of this.#pending) abandon(new NoAnswerError('The connection to Redis was closed.'));
    for (const done of this.#ready) done();
    this.#wakeUps?.stop();
  }

  /** Destroys the sockets of a client. */
  replace(client: RedisClient): void {
    this.#sockets.replace(client);
  }

  #listen(): void {
    this.#sockets.watch(this.commands);
    for (const client of this.#clients) {
      client.on('connect', () => this.#handshake.begin(client, () => this.replace(client)));
      client.on('ready', () => void this.#answered(client));
      client.on('error', (error: Error) => this.#watch.driverFailed(client, error));
      keepConnecting(client, () => !this.#closed && !this.#interrupted);
    }
    this.commands.on('close', () => {
      this.#watch.commandsClosed();
      for (const abandon of this.#pending)
        abandon(new NoAnswerError('The connection to Redis closed before the answer.'));
    });
  }

  /** A client is ready to the driver. It is used when its database is known to be the right one. */
  async #answered(client: RedisClient): Promise<void> {
    const selected = await this.#handshake.selectDatabase(client);
    if (selected === undefined) return;
    if (selected !== true) this.#watch.refused(client, selected);
    else if (client === this.commands) this.#isUsable();
    else void this.#wakeUps?.subscribe();
  }

  #isUsable(): void {
    if (!this.isReady) return;
    this.#watch.ready();
    for (const done of this.#ready) done();
    this.#wakeUps?.afterOutage();
  }
}

function notSentAfter(ms: number): Promise<never> {
  return new Promise((_, reject) => setTimeout(() => reject(new NotSentError()), ms).unref());
}
