import { Host } from './host.js';
import type { Reply } from '../../lib/memory/memory.replies.js';
import type { Connection, Listener, Took } from './network.js';
import { encodeReply, parseCommand, pushReply } from './resp.js';
import type { Server } from './server.js';
import type { Simulation } from './simulation.js';

const COUNT = 3;
const PORT = 26_379;
const SWITCHED = '+switch-master';
/** The name under which they watch the master. */
const NAME = 'jobs';
/** Where nothing is. */
const NOWHERE = '10.0.1.99';
const NOTHING = Buffer.alloc(0);

export const SENTINELS = {
  sentinels: Array.from({ length: COUNT }, (_, n) => ({ host: sentinelHost(n), port: PORT })),
  name: NAME,
};

/** For how long something is wrong, and who is told when it takes effect. */
interface Trouble {
  readonly until: number;
  readonly took: Took;
}

/** One of the three. It serves no data: it says who is the master, and tells when another one is. */
class Sentinel extends Host implements Listener {
  isAway = false;
  /** It names another server than the master. */
  lies: (Trouble & { readonly host: string | null }) | undefined;
  #hangs: Trouble | undefined;
  /** Of the change of which it has heard last: changes in quick succession reach it in any order. */
  #epoch = 0;

  constructor(
    private readonly simulation: Simulation,
    readonly name: string,
    /** Whom it takes for the master. */
    public master: string,
  ) {
    super(simulation);
  }

  get isListening(): boolean {
    return !this.isAway;
  }

  receive(connection: Connection, data: Buffer): void {
    let buffer = connection.unread ? Buffer.concat([connection.unread, data]) : data;
    connection.unread = buffer;
    // What it has not read it answers when it goes on, in order.
    if (this.#isIn(this.#hangs)) return;
    for (let parsed = parseCommand(buffer); parsed; parsed = parseCommand(buffer)) {
      buffer = parsed.rest;
      const { args } = parsed;
      this.simulation.engine.after(0.1, () => connection.down(this.#answer(connection, args)));
    }
    connection.unread = buffer.length > 0 ? buffer : undefined;
  }

  /** Everybody who listens here hears of it. @param epoch rises with each change */
  switched(old: string, master: string, epoch: number): void {
    // It has agreed on a later one already.
    if (epoch < this.#epoch) return;
    this.#epoch = epoch;
    this.master = master;
    if (this.isAway || this.#isIn(this.#hangs)) return;
    const message = `${NAME} ${old} 6379 ${master} 6379`;
    for (const client of this.clients) {
      if (client.isSubscriber) client.push(pushReply(client.protocol, ['message', SWITCHED, message]));
    }
  }

  goAway(): void {
    this.isAway = true;
    this.dropAll();
  }

  /**
   * It takes connections, and reads nothing that comes over them before then.
   *
   * @param forgetsThem it answers nothing of that later either, and nothing more over these connections: the way to it was broken
   */
  hang(hangs: Trouble, forgetsThem: boolean): void {
    this.#hangs = hangs;
    this.simulation.engine.at(hangs.until, () => {
      for (const client of this.clients) {
        if (forgetsThem && client.unread) client.isHalfOpen = hangs.took;
        else this.receive(client, NOTHING);
      }
    });
  }

  #answer(connection: Connection, args: readonly string[]): Buffer {
    const { protocol } = connection;
    const reply = (value: Reply) => encodeReply(protocol, value);
    this.simulation.engine.trace('sentinel', connection.id, args.join(' ').slice(0, 60));
    switch (`${args[0]} ${args[0]!.toUpperCase() === 'SENTINEL' ? args[1] : ''}`.trim().toLowerCase()) {
      case 'hello':
        connection.protocol = Number(args[1]) || 2;
        return Buffer.from('%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n');
      case 'sentinel get-master-addr-by-name': {
        const host = this.#isIn(this.lies) ? this.lies!.host : this.master;
        return reply(host === null ? null : [host, '6379']);
      }
      case 'sentinel sentinels':
        return reply(SENTINELS.sentinels.filter(({ host }) => host !== this.name).map(describe));
      case 'subscribe':
        connection.subscriptions.add(args[1]!);
        return pushReply(protocol, ['subscribe', args[1]!, 1]);
      case 'ping':
        return Buffer.from('+PONG\r\n');
      default:
        return Buffer.from('+OK\r\n');
    }
  }

  #isIn(trouble: Trouble | undefined): boolean {
    if (!trouble || trouble.until <= this.simulation.engine.now) return false;
    trouble.took();
    return true;
  }
}

/** A master with replicas, and three Sentinels that put a replica in its place. */
export class SimulatedSentinels {
  /** A replica is about to take over, or an old master does not know yet that one has. */
  #isBusy = false;
  readonly #all: readonly Sentinel[];
  readonly #servers = new Map<string, Server>();
  #masters = 1;

  constructor(
    private readonly simulation: Simulation,
    first: Server,
  ) {
    this.#servers.set(first.name, first);
    this.#all = SENTINELS.sentinels.map(({ host }) => new Sentinel(simulation, host, first.name));
  }

  static readonly firstHost = masterHost(1);

  at(host: string): Listener {
    const known = this.#servers.get(host) ?? this.#all.find(({ name }) => name === host);
    // An address at which nobody answers.
    return known ?? { ...NOBODY, name: host };
  }

  /** They put a replica in the place of a master that lives, and reach it only after a while. */
  change(ms: number, unreplicated: number, choice: number): boolean {
    const old = this.simulation.nodes[0]!;
    if (this.#isBusy || !old.isListening) return false;
    this.#isBusy = true;
    this.simulation.deceive(old, ms);
    this.#replace(old, unreplicated, choice);
    this.simulation.engine.after(ms, () => this.#demote(old));
    return true;
  }

  /** The same of a master that is gone. It comes back later. */
  fail(ms: number, unreplicated: number, choice: number): boolean {
    const old = this.simulation.nodes[0]!;
    if (this.#isBusy || !old.isListening) return false;
    this.#isBusy = true;
    old.retire();
    this.simulation.engine.after(ms, () => {
      this.#replace(old, unreplicated, choice);
      this.simulation.engine.after(ms * choice, () => this.#demote(old));
    });
    return true;
  }

  #demote(old: Server): void {
    old.demote();
    this.#isBusy = false;
  }

  #replace(old: Server, unreplicated: number, choice: number): void {
    this.#switched(old, this.simulation.replaceMaster(unreplicated, masterHost(++this.#masters)), choice);
  }

  /** They have agreed on another master, and each of them says so in its own time. */
  #switched(old: Server, heir: Server, choice: number): void {
    this.#servers.set(heir.name, heir);
    const { engine } = this.simulation;
    const epoch = this.#masters;
    for (const [n, sentinel] of this.#all.entries())
      engine.after(5 + 400 * ((choice * (n + 1)) % 1), () => sentinel.switched(old.name, heir.name, epoch));
  }

  /** @param first of which one on, of how many */
  away(first: number, count: number, ms: number, hangs: boolean, took: Took): void {
    const { engine } = this.simulation;
    for (const sentinel of this.#some(first, count)) {
      if (hangs) sentinel.hang({ until: engine.now + ms, took }, Math.floor(ms) % 2 === 0);
      else {
        sentinel.goAway();
        took();
        engine.after(ms, () => (sentinel.isAway = false));
      }
    }
  }

  /** They name a server that was the master, or one that nobody knows, or none. */
  lie(first: number, count: number, ms: number, choice: number, took: Took): void {
    const hosts = [masterHost(Math.max(1, this.#masters - 1)), NOWHERE, null];
    const host = hosts[Math.floor(choice * hosts.length)]!;
    for (const sentinel of this.#some(first, count)) {
      if (host !== sentinel.master) sentinel.lies = { until: this.simulation.engine.now + ms, took, host };
    }
  }

  #some(first: number, count: number): Sentinel[] {
    return Array.from({ length: count }, (_, i) => this.#all[(first + i) % COUNT]!);
  }
}

const NOBODY = { isListening: false, accept: () => {}, receive: () => {}, closed: () => {} };

function describe({ host }: { readonly host: string }): Reply {
  return ['name', host, 'ip', host, 'port', String(PORT), 'flags', 'sentinel'];
}

function sentinelHost(n: number): string {
  return `10.0.2.${n + 1}`;
}

function masterHost(n: number): string {
  return `10.0.1.${n}`;
}
