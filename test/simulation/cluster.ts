import type { Reply } from '../../lib/memory/memory.replies.js';
import type { Union } from './master.js';
import type { Connection, Listener } from './network.js';
import { queueOf } from './queues.js';
import type { Random } from './random.js';
import type { Replicas } from './replicas.js';
import { encodeReply, errorReply } from './resp.js';
import type { Server } from './server.js';
import { slotOf } from './slots.js';
import type { Simulation } from './simulation.js';

const SLOTS = 16_384;
const MASTERS = 3;
/** A message goes to the clients of the other nodes by the bus of the Cluster. */
const BUS_MS = 0.4;
/** Commands without a key: every node answers them. */
const KEYLESS = new Set(
  'PING INFO PUBLISH WAIT WAITAOF CLUSTER HELLO CLIENT SUBSCRIBE UNSUBSCRIBE ASKING READONLY SCRIPT SELECT AUTH'.split(
    ' ',
  ),
);

interface Migration {
  readonly from: Server;
  readonly to: Server;
  /** Something runs there. */
  readonly goesThere: () => void;
}

/** Three masters, each with a third of the slots. It answers what a node asks the others, and for the rules it is one server. */
export class SimulatedCluster implements Union {
  /** All writes of all nodes. */
  writes = 0;
  readonly disk: { readonly length: number };
  /** Of the thirds of the slots. */
  readonly #owners: Server[] = [];
  /** Of slots that have moved. */
  readonly #moved = new Map<number, Server>();
  readonly #migrations = new Map<number, Migration>();
  /** Masters and those that were masters, by the address that processes know. */
  readonly #byHost = new Map<string, Server>();
  /** Masters that were deposed and do not know it yet, with those that took over. */
  readonly #deposed = new Map<Server, Server>();
  #failing = 0;
  #downUntil = 0;
  #downTook: () => void = () => {};

  constructor(
    private readonly simulation: Simulation,
    private readonly make: (name: string, union: Union) => Server,
  ) {
    for (let n = 0; n < MASTERS; n++) this.#owners.push(this.#join());
    const writes = () => this.writes;
    this.disk = {
      get length() {
        return writes();
      },
    };
  }

  peek(name: string, args: readonly string[]): Reply {
    return this.#holderOf(args[0]!).peek(name, args);
  }

  get hosts(): string[] {
    return this.masters.map(({ name }) => name);
  }

  get masters(): readonly Server[] {
    return [...new Set(this.#owners)];
  }

  get isListening(): boolean {
    return this.masters.every(({ isListening }) => isListening);
  }

  get commands(): number {
    return [...this.#byHost.values()].reduce((sum, { commands }) => sum + commands, 0);
  }

  at(host: string): Server | undefined {
    return this.#byHost.get(host);
  }

  clockMs(key?: string): number {
    return (key === undefined ? this.#owners[0]! : this.nodeOf(key)).clockMs();
  }

  /** Of a shard, by any of its keys or what they begin with. */
  nodeOf(key: string): Server {
    return this.ownerOf(slotOf(key));
  }

  sync(): void {
    for (const master of this.masters) master.sync();
  }

  /** A slot is on its way, or a replica takes over: nothing else happens to it meanwhile. */
  get isBusy(): boolean {
    return this.#migrations.size > 0 || this.#failing > 0 || this.#deposed.size > 0;
  }

  counted(): number {
    return ++this.writes;
  }

  /** Whether a queue lies on a node, with one of its shards at least. */
  holds(server: Server, queue: string, shard?: string): boolean {
    if (shard !== undefined) return this.ownerOf(slotOf(shard)) === server;
    return this.simulation.shardBases.some((base) => queueOf(base) === queue && this.ownerOf(slotOf(base)) === server);
  }

  ownerOf(slot: number): Server {
    return this.#moved.get(slot) ?? this.#owners[Math.floor((slot * MASTERS) / SLOTS)]!;
  }

  publish(from: Server, channel: string, message: string): void {
    for (const node of this.#byHost.values()) {
      if (node === from) node.deliver(channel, message);
      else this.simulation.engine.after(BUS_MS, () => node.deliver(channel, message));
    }
  }

  // --- What a node answers ----------------------------------------------------------------------------------------------

  /** @returns an error in place of the answer, when the node does not serve these keys */
  redirect(node: Server, connection: Connection, name: string, args: readonly string[]): Buffer | undefined {
    const { isAsking } = connection;
    connection.isAsking = false;
    const keys = keysOf(name, args);
    if (keys.length === 0) return undefined;
    const slots = new Set(keys.map(slotOf));
    if (slots.size > 1) {
      this.simulation.oracle.report('crossSlot', `${connection.id} sends ${name} with keys of several slots`);
      return errorReply("CROSSSLOT Keys in request don't hash to the same slot");
    }
    const [slot] = slots as unknown as [number];
    if (this.simulation.engine.now < this.#downUntil) {
      this.#downTook();
      return errorReply('CLUSTERDOWN The cluster is down');
    }
    const owner = this.#ownerAs(node, slot);
    const migration = this.#migrations.get(slot);
    if (migration) return redirectIn(migration, node, keys, slot, isAsking);
    return owner === node ? undefined : errorReply(`MOVED ${slot} ${addressOf(owner)}`);
  }

  clusterCommand(connection: Connection, args: readonly string[]): Buffer {
    const { protocol, server } = connection;
    if (args[1]!.toUpperCase() === 'INFO') {
      const state = this.simulation.engine.now < this.#downUntil ? 'fail' : 'ok';
      return encodeReply(protocol, `cluster_state:${state}\r\ncluster_slots_assigned:${SLOTS}\r\n`);
    }
    const ranges: [number, number, Server][] = [];
    const boundaries = new Set([0, ...this.#moved.keys(), ...[...this.#moved.keys()].map((slot) => slot + 1)]);
    for (let n = 1; n < MASTERS; n++) boundaries.add(Math.ceil((n * SLOTS) / MASTERS));
    const starts = [...boundaries].filter((slot) => slot < SLOTS).toSorted((one, other) => one - other);
    for (const [i, start] of starts.entries())
      ranges.push([start, (starts[i + 1] ?? SLOTS) - 1, this.#ownerAs(server, start)]);
    return encodeReply(
      protocol,
      ranges.map(([start, end, { name }]) => [start, end, [name, 6379, name]]),
    );
  }

  // --- What happens to it -----------------------------------------------------------------------------------------------

  /** The keys of one slot go to another node, one by one. @param took a command met the slot on its way */
  migrate(base: string, choice: number, ms: number, random: Random, took: () => void): boolean {
    const { engine } = this.simulation;
    const slot = slotOf(base);
    const from = this.ownerOf(slot);
    const others = this.masters.filter((master) => master !== from);
    const to = others[Math.floor(choice * others.length)]!;
    if (this.isBusy || !from.isListening || !to.isListening) return false;
    engine.trace('migrates', String(slot), `${from.name} to ${to.name}`);
    // From the first key on, what finds all of its keys there runs by the clock of the other node.
    let isThere = false;
    const goesThere = () => {
      if (isThere) return;
      isThere = true;
      const { shardBases, clocks } = this.simulation;
      clocks.moved(
        shardBases.filter((one) => slotOf(one) === slot),
        from,
        to,
      );
    };
    this.#migrations.set(slot, { from, to, goesThere });
    const move = () => {
      for (const key of keysIn(from, slot)) if (random.chance(0.3)) carry(from, to, key);
    };
    for (let part = 1; part < 4; part++) engine.after((ms * part) / 4, move);
    engine.after(ms, () => {
      for (const key of keysIn(from, slot)) carry(from, to, key);
      goesThere();
      this.#migrations.delete(slot);
      this.#moved.set(slot, to);
      // What has moved is never undone by one of the two alone.
      for (const node of [from, to]) node.disk.keepsAll();
      took();
    });
    return true;
  }

  /** Its replica takes over, under another address. Until then the whole Cluster refuses. @param goesOn it is there all the time, without knowing */
  failOver(node: Server, keep: number, afterMs: number, goesOn: boolean, took: () => void): boolean {
    if (this.isBusy || !node.isListening || !this.masters.includes(node)) return false;
    const { engine } = this.simulation;
    this.#failing++;
    // From now on the replica gets nothing any more.
    const { replicas } = node;
    node.replicas = replicas?.outOfReach();
    this.simulation.deceive(node, afterMs);
    if (!goesOn) node.retire();
    const downAt = afterMs / 2;
    engine.after(downAt, () => {
      this.#downUntil = Math.max(this.#downUntil, engine.now + afterMs - downAt);
      this.#downTook = took;
    });
    engine.after(afterMs, () => {
      const { tellLost } = this.#replace(node, keep, replicas);
      if (goesOn) node.retire();
      // It comes back as a replica, and knows who has its slots.
      engine.after(afterMs, () => (node.isListening = true));
      this.#failing--;
      tellLost();
      took();
    });
    return true;
  }

  /** Its replica takes over at once, and for a while it goes on beside that for whoever is connected to it. */
  splitBrain(node: Server, keep: number, ms: number): boolean {
    if (this.isBusy || !node.isListening || !this.masters.includes(node)) return false;
    const { engine } = this.simulation;
    const { replicas } = node;
    node.replicas = replicas?.outOfReach();
    this.simulation.deceive(node, ms);
    const { heir, tellLost } = this.#replace(node, keep, replicas);
    this.#deposed.set(node, heir);
    tellLost();
    engine.after(ms, () => {
      this.#deposed.delete(node);
      node.retire();
      engine.after(ms, () => (node.isListening = true));
    });
    return true;
  }

  #replace(node: Server, keep: number, replicas: Replicas | undefined): ReturnType<Server['depose']> {
    const { heir, tellLost } = node.depose(keep, this.#nextHost(), this.simulation.oracle.ofDeposed);
    heir.follow(replicas);
    this.#byHost.set(heir.name, heir);
    for (const [i, owner] of this.#owners.entries()) if (owner === node) this.#owners[i] = heir;
    for (const [slot, owner] of this.#moved) if (owner === node) this.#moved.set(slot, heir);
    return { heir, tellLost };
  }

  /** As this node sees it. */
  #ownerAs(node: Listener, slot: number): Server {
    const owner = this.ownerOf(slot);
    const deposed = [...this.#deposed].find(([one, heir]) => one === node && heir === owner);
    return deposed?.[0] ?? owner;
  }

  #join(): Server {
    const server = this.make(this.#nextHost(), this);
    this.#byHost.set(server.name, server);
    return server;
  }

  #nextHost(): string {
    return `10.0.0.${this.#byHost.size + 1}`;
  }

  /** Where a key is, while its slot is on its way too. */
  #holderOf(key: string): Server {
    const slot = slotOf(key);
    const migration = this.#migrations.get(slot);
    if (!migration) return this.ownerOf(slot);
    return exists(migration.to, key) ? migration.to : migration.from;
  }
}

/** As Redis 7 does it: a command with several keys waits until all of them are on one side. */
function redirectIn(
  { from, to, goesThere }: Migration,
  node: Server,
  keys: readonly string[],
  slot: number,
  isAsking: boolean,
): Buffer | undefined {
  const missing = keys.filter((key) => !exists(node, key)).length;
  const tryAgain = errorReply('TRYAGAIN Multiple keys request during rehashing of slot');
  if (node === from) {
    if (missing === 0) return undefined;
    return missing < keys.length ? tryAgain : errorReply(`ASK ${slot} ${addressOf(to)}`);
  }
  if (node !== to || !isAsking) return errorReply(`MOVED ${slot} ${addressOf(from)}`);
  if (missing > 0 && keys.length > 1) return tryAgain;
  goesThere();
  return undefined;
}

function keysOf(name: string, args: readonly string[]): readonly string[] {
  if (name.startsWith('EVAL')) return args.slice(3, 3 + Number(args[2]));
  if (KEYLESS.has(name)) return [];
  return name === 'UNLINK' || name === 'DEL' || name === 'EXISTS' ? args.slice(1) : args.slice(1, 2);
}

function exists({ store }: Server, key: string): boolean {
  return store.command('EXISTS', [key]) === 1;
}

function keysIn({ store }: Server, slot: number): string[] {
  const [, names] = store.command('SCAN', ['0', 'COUNT', '1000000']) as [string, string[]];
  return names.filter((key) => slotOf(key) === slot).toSorted();
}

function carry(from: Server, to: Server, key: string): void {
  const ttl = Math.max(0, Number(from.store.command('PTTL', [key])));
  const dump = from.store.command('DUMP', [key]) as string;
  to.write('RESTORE', [key, String(ttl), dump, 'REPLACE']);
  from.write('UNLINK', [key]);
}

function addressOf({ name }: Server): string {
  return `${name}:6379`;
}
