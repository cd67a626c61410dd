import type { MemoryStore } from '../../lib/memory/memory.store.js';
import type { Reply } from '../../lib/memory/memory.replies.js';
import { Disk } from './disk.js';
import type { WriteRecord } from './disk.js';
import { Host } from './host.js';
import type { Master, Union } from './master.js';
import type { Connection, Listener, NetworkWorld, Took } from './network.js';
import { EPOCH } from './process.js';
import { Random } from './random.js';
import type { Replicas } from './replicas.js';
import { encodeReply, errorReply, parseCommand, pushReply } from './resp.js';
import { scriptOf } from './script-texts.js';
import { infoOf } from './server-info.js';
import { storeClass } from './store-modules.js';
import { Waits } from './waits.js';
import type { Rollback, ServedCall, ServerWitness } from './witness.js';

const READS = new Set('GET MGET TIME INFO PING PUBLISH HMGET HGET ZSCAN EXISTS TYPE SCAN'.split(' '));
export type RefusalKind = 'paused' | 'loading' | 'readOnly' | 'full' | 'busy' | 'diskFull';

/** For how long the server refuses something, and who is told when it does. */
interface Refusal {
  until: number;
  took: Took;
}

/**
 * A Redis: the library's own store behind the wire protocol, with all that a server does to its clients. One thread; each command has a
 * cost; a clock of its own; forgets scripts; is restarted from what is on its disk.
 */
export class Server extends Host implements Listener, Master {
  isListening = true;
  commands = 0;
  /** ms by which its clock was moved. */
  clockOffset = 0;
  disk = new Disk();
  replicas: Replicas | undefined;
  readonly refusals: Record<RefusalKind, Refusal> = {
    paused: { until: 0, took: () => {} },
    loading: { until: 0, took: () => {} },
    readOnly: { until: 0, took: () => {} },
    full: { until: 0, took: () => {} },
    busy: { until: 0, took: () => {} },
    diskFull: { until: 0, took: () => {} },
  };
  scriptsForgotten: Took | undefined;
  /** Hears of each command that is no concern of the connection alone. */
  served: ((call: ServedCall) => void) | undefined;
  /** Processes that are connected to a server which was a master once. */
  readonly readOnlyFor = new Map<string, Took>();
  /** Processes whose user, or whose commands, it refuses. */
  readonly unwelcome = new Map<string, (command: string) => Buffer | undefined>();
  /** What INFO says in place of the usual. */
  oddInfo: Readonly<Record<string, string>> = {};
  store: MemoryStore;
  readonly #scripts = new Map<string, string>();
  readonly #inbox: [Connection, Buffer][] = [];
  readonly #random: Random;
  readonly #waits: Waits;
  #isWorking = false;
  #freeAt = 0;
  /** While writes are read from disk, the time at which they ran. */
  #readAt: number | undefined;
  #isPeeked = false;

  constructor(
    private readonly world: NetworkWorld & {
      readonly project: string;
      readonly isIsolated: boolean;
      forget(connection: Connection): void;
    },
    private witness: ServerWitness,
    readonly name: string,
    private readonly union?: Union,
  ) {
    super(world);
    this.#random = new Random(world.seed, `server ${name}`);
    this.store = this.#emptyStore();
    this.#waits = new Waits(world.engine, this, (connection, reply) => this.#goOn(connection, reply));
  }

  /** Epoch ms; a whole number of microseconds, as TIME tells it. */
  clockMs(): number {
    return EPOCH + this.clockOffset + this.world.engine.now;
  }

  /**
   * Reads for the rules, also while a command of a client runs. Where the store refuses that, a rule is wrong, and `threw` says so: as a
   * ReplyError it would be the answer to that client, also to a script that has written already.
   */
  peek(name: string, args: readonly string[]): Reply {
    this.#isPeeked = true;
    try {
      return this.store.command(name, args);
    } catch (problem) {
      throw new Error(`A rule asked ${name} ${args[0]}: ${(problem as Error).message}`, { cause: problem });
    } finally {
      this.#isPeeked = false;
    }
  }

  refuses(kind: RefusalKind): boolean {
    const { until, took } = this.refusals[kind];
    if (this.world.engine.now >= until) return false;
    took();
    return true;
  }

  /** Prolongs a refusal. */
  refuse(kind: RefusalKind, ms: number, took: Took): void {
    const refusal = this.refusals[kind];
    refusal.until = Math.max(refusal.until, this.world.engine.now + ms);
    refusal.took = took;
  }

  forgetScripts(took: Took): void {
    this.#scripts.clear();
    this.scriptsForgotten = took;
  }

  sync(): void {
    // While it is down its disk has what it will come back with.
    if (this.isListening) this.disk.sync(this.store, this.clockMs());
  }

  /** Gone, and back with what was kept. @returns how many writes are lost */
  restart(downMs: number, loadMs: number, keep: number, why: Rollback, took: Took): number {
    const kept = this.disk.within(keep);
    const lost = this.disk.length - kept;
    this.isListening = false;
    this.dropAll();
    this.world.engine.trace('restart', this.name, `loses ${lost}`);
    this.world.engine.after(downMs, () => {
      this.store = this.#emptyStore();
      this.disk.rewind(kept, this.store, (at) => (this.#readAt = at));
      this.#readAt = undefined;
      this.#scripts.clear();
      this.isListening = true;
      this.refuse('loading', loadMs, took);
      this.#tellLost(kept, lost, why);
    });
    return lost;
  }

  /**
   * A replica becomes the master, with as many of the writes as it has. This one does not know it, and goes on for those who are
   * connected to it; what it does is lost. The caller tells what is lost when the replica is in its place.
   *
   * @param witness sees what it still does
   */
  depose(keep: number, name: string, witness: ServerWitness): { readonly heir: Server; readonly tellLost: () => void } {
    const kept = this.disk.within(keep);
    const heir = new Server(this.world, this.witness, name, this.union);
    heir.clockOffset = this.clockOffset;
    for (const [client, took] of this.readOnlyFor) heir.readOnlyFor.set(client, took);
    for (const [client, refuse] of this.unwelcome) heir.unwelcome.set(client, refuse);
    heir.oddInfo = this.oddInfo;
    heir.disk = this.disk.copy();
    heir.follow(this.replicas);
    this.replicas = this.replicas?.outOfReach();
    heir.disk.rewind(kept, heir.store, (at) => (heir.#readAt = at));
    heir.#readAt = undefined;
    this.witness = witness;
    this.world.engine.trace('deposed', this.name, `${this.disk.length - kept} writes are lost`);
    // Whatever it still writes is lost as well.
    const lost = this.disk.length - kept + 1;
    return { heir, tellLost: () => heir.#tellLost(kept, lost, 'failover') };
  }

  /** Its replicas from now on. */
  follow(replicas: Replicas | undefined): void {
    this.replicas = replicas;
    if (replicas) replicas.disk = this.disk;
  }

  #tellLost(kept: number, lost: number, why: Rollback): void {
    const concerns = (queue: string, shard?: string) => this.union?.holds(this, queue, shard) ?? true;
    this.witness.rolledBack(this.disk.stampOf(kept), lost, why, concerns);
  }

  /** Runs a command that no client sent. */
  write(name: string, args: string[]): void {
    this.store.command(name, args);
    this.#append({ name, args });
  }

  /** It is a replica of another one from now on. */
  demote(): void {
    this.retire();
    this.oddInfo = { ...this.oddInfo, role: 'slave' };
    this.isListening = true;
  }

  /** It has heard that it is no master any more. */
  retire(): void {
    this.isListening = false;
    this.dropAll();
  }

  // --- Its clients ------------------------------------------------------------------------------------------------------

  receive(connection: Connection, data: Buffer): void {
    connection.arrivedAt = this.world.engine.now;
    this.#inbox.push([connection, data]);
    this.#work();
  }

  #emptyStore(): MemoryStore {
    const Store = storeClass(this.world.project, this.world.isIsolated);
    const store = new Store({ now: () => this.#readAt ?? this.clockMs() });
    store.subscribe({ pattern: '*', heard: (channel, message) => this.#published(channel, message) });
    store.before = (name, args) => {
      if (!this.#isPeeked && this.#readAt === undefined) this.witness.commandRuns(name, args);
    };
    return store;
  }

  #published(channel: string, message: string): void {
    if (this.#readAt !== undefined) return;
    if (this.union) this.union.publish(this, channel, message);
    else this.deliver(channel, message);
  }

  /** A message of Pub/Sub to those who are connected here. */
  deliver(channel: string, message: string): void {
    for (const client of this.clients) {
      if (client.subscriptions.has(channel)) client.push(pushReply(client.protocol, ['message', channel, message]));
    }
  }

  /** One thread: what arrives waits for its turn. */
  #work(): void {
    if (this.#isWorking || this.#inbox.length === 0) return;
    this.#isWorking = true;
    this.refuses('paused'); // A pause counts when something waits for its end.
    const { engine } = this.world;
    engine.at(Math.max(engine.now, this.refusals.paused.until, this.#freeAt), () => {
      this.#isWorking = false;
      if (!this.refuses('paused')) {
        const [connection, data] = this.#inbox.shift()!;
        if (!connection.serverIsGone && this.isListening) this.#read(connection, data);
      }
      this.#work();
    });
  }

  #read(connection: Connection, data: Buffer): void {
    let buffer = connection.unread ? Buffer.concat([connection.unread, data]) : data;
    while (buffer.length > 0 && !connection.isWaiting) {
      const parsed = parseCommand(buffer);
      if (!parsed) break;
      buffer = parsed.rest;
      this.#freeAt = Math.max(this.#freeAt, this.world.engine.now) + 0.03 + 0.05 * this.#random.next();
      const answer = this.#answer(connection, parsed.args);
      connection.meddled = undefined;
      if (answer) connection.down(answer);
    }
    connection.unread = buffer.length > 0 ? buffer : undefined;
  }

  /** Its WAIT is over. What came meanwhile has waited. */
  #goOn(connection: Connection, reply: Reply): void {
    connection.down(encodeReply(connection.protocol, reply));
    this.receive(connection, NOTHING);
  }

  /** @returns undefined of a command that is answered later */
  #answer(connection: Connection, args: string[]): Buffer | undefined {
    const name = args[0]!.toUpperCase();
    this.commands++;
    this.world.engine.trace('command', connection.id, shown(name, args));
    try {
      const refusal = this.unwelcome.get(connection.process.name)?.(name);
      if (refusal) return refusal;
      const own = this.#ownCommand(connection, name, args);
      if (own) return own;
      if (name === 'WAIT' || name === 'WAITAOF') {
        this.#waits.begin(connection, name, args);
        return undefined;
      }
      if (this.refuses('loading')) return errorReply('LOADING Redis is loading the dataset in memory');
      if (this.refuses('busy')) return errorReply('BUSY Redis is busy running a script.');
      const isScript = name.startsWith('EVAL');
      const away =
        (isScript && this.world.weather?.turnsAway(this, connection)) ||
        this.union?.redirect(this, connection, name, args);
      if (away) return away;
      const reply = isScript ? this.#script(connection, name, args) : this.#command(connection, name, args.slice(1));
      this.served?.({ at: this.clockMs(), args, reply });
      return Buffer.isBuffer(reply) ? reply : encodeReply(connection.protocol, reply);
    } catch (problem) {
      // The store's own class of another module registry.
      if (!(problem instanceof Error) || problem.name !== 'ReplyError') throw problem;
      const reply = errorReply(problem.message);
      this.served?.({ at: this.clockMs(), args, reply });
      return reply;
    }
  }

  /** What concerns the connection, and is no command of the store. */
  #ownCommand(connection: Connection, name: string, args: readonly string[]): Buffer | undefined {
    const { protocol } = connection;
    switch (name) {
      case 'HELLO':
        connection.protocol = Number(args[1]) || 2;
        return Buffer.from('%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n');
      case 'CLIENT':
      case 'SELECT':
        return Buffer.from('+OK\r\n');
      case 'ASKING':
        connection.isAsking = true;
        return Buffer.from('+OK\r\n');
      case 'CLUSTER':
        return this.union?.clusterCommand(connection, args);
      case 'SUBSCRIBE':
        connection.subscriptions.add(args[1]!);
        return pushReply(protocol, ['subscribe', args[1]!, connection.subscriptions.size]);
      case 'INFO':
        return encodeReply(protocol, infoOf(this, this.refuses('loading')));
      default:
        return undefined;
    }
  }

  #command(connection: Connection, name: string, args: string[]): Reply | Buffer {
    if (!READS.has(name)) {
      const refusal = this.#refusesWrites(connection);
      if (refusal) return refusal;
      this.#written(connection, { name, args });
    }
    if (name === 'MGET') this.witness.looks?.(connection.process);
    return this.store.command(name, args);
  }

  #written(connection: Connection, record: Pick<WriteRecord, 'name' | 'args' | 'keys'>): void {
    this.#append(record);
    connection.written = this.disk.length;
  }

  #append(record: Pick<WriteRecord, 'name' | 'args' | 'keys'>): void {
    this.disk.append({ at: this.clockMs(), time: this.world.engine.now, n: this.union?.counted(), ...record });
  }

  #refusesWrites({ process }: Connection): Buffer | undefined {
    const took = this.readOnlyFor.get(process.name);
    if (took) {
      took();
      return READ_ONLY;
    }
    if (this.refuses('readOnly') || this.oddInfo['role'] === 'slave') return READ_ONLY;
    return this.refuses('diskFull') ? DISK_FULL : undefined;
  }

  #script(connection: Connection, name: string, args: string[]): Reply | Buffer {
    let source = args[1]!;
    if (name === 'EVALSHA') {
      const known = this.#scripts.get(source);
      if (known === undefined) {
        this.scriptsForgotten?.();
        return errorReply('NOSCRIPT No matching script. Please use EVAL.');
      }
      source = known;
    } else {
      const script = scriptOf(source);
      source = script.source;
      this.#scripts.set(script.hash, source);
    }
    const flags = flagsOf(source);
    const writes = !flags?.includes('no-writes');
    const refusal = writes && this.#refusesWrites(connection);
    if (refusal) return refusal;
    if (writes && flags !== undefined && !flags.includes('allow-oom') && this.refuses('full')) {
      return errorReply("OOM command not allowed when used memory > 'maxmemory'.");
    }
    const count = Number(args[2]);
    const [keys, argv] = [args.slice(3, 3 + count), args.slice(3 + count)];
    if (writes) this.#written(connection, { name: source, keys, args: argv });
    this.world.weather?.scriptRuns(this, connection, keys);
    this.witness.scriptBegins({ connection, source, keys, args: argv });
    let reply: Reply | undefined;
    try {
      reply = this.store.script(source, keys, argv);
      return reply;
    } finally {
      this.witness.scriptEnds(reply);
    }
  }
}

const NOTHING = Buffer.alloc(0);
const READ_ONLY = errorReply("READONLY You can't write against a read only replica.");

const DISK_FULL = errorReply('MISCONF Errors writing to the AOF file: No space left on device');

const LONGEST_SHOWN = 60;

/** In the trace: what tells two calls apart, and no more. */
function shown(name: string, args: readonly string[]): string {
  const first = name.startsWith('EVAL') ? 3 + Number(args[2]) : 1;
  let words = args[first] ?? '';
  for (let i = first + 1; i < args.length && words.length < LONGEST_SHOWN; i++) words += ` ${args[i]!}`;
  return `${name} ${words.slice(0, LONGEST_SHOWN)}`;
}

/** What the first lines of scripts say; undefined of one without such a line. */
const flagsOfScripts = new Map<string, string | undefined>();

function flagsOf(source: string): string | undefined {
  if (!flagsOfScripts.has(source)) flagsOfScripts.set(source, /^#!lua([^\n]*)/.exec(source)?.[1]);
  return flagsOfScripts.get(source);
}
