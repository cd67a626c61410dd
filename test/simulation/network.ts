import type { Engine } from './engine.js';
import type { SimulatedProcess } from './process.js';
import { Random } from './random.js';
import { errorReply } from './resp.js';
import { SimulatedSocket } from './socket.js';
import type { Meddled, Weather } from './weather.js';

/** Told when a fault takes effect: one that met nothing does not count. */
export type Took = () => void;

/** The server's end of the network. */
export interface Listener {
  readonly name: string;
  readonly isListening: boolean;
  accept(connection: Connection): void;
  receive(connection: Connection, data: Buffer): void;
  closed(connection: Connection): void;
}

export interface NetworkWorld {
  readonly seed: number;
  readonly engine: Engine;
  /** Multiplies every latency. */
  readonly latency: number;
  readonly weather: Weather | undefined;
  /** A connection has reached its server. */
  connected(connection: Connection): void;
  /** A process writes this to a connection, whether it arrives or not. */
  sent(data: Buffer): void;
}

const MOST_PIECES = 8;
/**
 * The weather leaves a direction alone that is so far behind: one stall holds up all that comes after it, and not each message anew. A process
 * with hundreds of queues sends more than a connection would carry then, and each of its calls would miss its deadline, with no fault.
 */
const MOST_BEHIND_MS = 250;
/**
 * So long it leaves alone a connection over which a script is asked for again that the server has forgotten: that is twice the way, of which
 * each part may be as far behind, and would be more than the shortest `commandTimeout`.
 */
const UNMEDDLED_MS = 1_000;
const FORGOTTEN = Buffer.from('-NOSCRIPT');

/** What holds back the bytes of one direction. */
interface Hold {
  readonly until: number;
  readonly took: Took;
}

/** One TCP connection, and what is wrong with it. Each direction keeps its order; connections overtake each other. */
export class Connection {
  readonly socket: SimulatedSocket;
  readonly id: string;
  clientIsGone = false;
  /** Since when nothing that comes over it is heard, simulated ms. */
  clientGoneAt = Infinity;
  serverIsGone = false;
  /** Half-open: nothing arrives any more in either direction, and neither end is told. */
  isHalfOpen: Took | undefined;
  /** Multiplies the latency. */
  slowness = 1;
  slowed: Took | undefined;
  upHeld: Hold | undefined;
  downHeld: Hold | undefined;
  /** What waits until adversaries let it go on, all of them: nothing overtakes on one connection. */
  #waiting: (() => void)[] = [];
  #adversaries = 0;
  /** What becomes of the next step on its way to the server. */
  nextStep: ((connection: Connection) => void) | undefined;
  /** Each delivery is cut into pieces of so many bytes. */
  inPieces: { readonly took: Took; readonly atMost: number } | undefined;
  /** Messages of Pub/Sub vanish. */
  messagesLost: Hold | undefined;
  lostReplies = 0;
  replyLost: Took | undefined;
  /** Of the server. */
  readonly subscriptions = new Set<string>();
  protocol = 2;
  /** Writes of the server up to the last one of this connection. */
  written = 0;
  /** The next command may be for a slot that is only on its way here. */
  isAsking = false;
  /** A command holds it up. */
  isWaiting = false;
  /** When the last bytes came to the server. */
  arrivedAt = 0;
  /** What the weather did to the last request that came. */
  meddled: Meddled | undefined;
  unread: Buffer | undefined;
  readonly #random: Random;
  /** A reply got lost with the connection: none behind it arrives, or clients would take it for the lost one. */
  #isCutDown = false;
  #upAt = 0;
  #downAt = 0;
  #unmeddledUntil = 0;
  /** Replies that will be read at once, and when. */
  #joining: { readonly at: number; readonly replies: Buffer[] } | undefined;

  constructor(
    private readonly world: NetworkWorld,
    readonly process: SimulatedProcess,
    readonly server: Listener,
    number: number,
  ) {
    this.id = `${process.id}/${number}`;
    this.#random = new Random(world.seed, `connection ${this.id}`);
    this.socket = new SimulatedSocket(world.engine, process, {
      write: (data) => this.#up(data),
      end: () => this.#fin(),
      closed: () => this.#clientGoes(),
    });
  }

  get isSubscriber(): boolean {
    return this.subscriptions.size > 0;
  }

  latencyMs(): number {
    if (this.slowness > 1) this.slowed?.();
    return this.#random.longTailed(0.25, 8) * this.slowness * this.world.latency;
  }

  /** From the server to the client. */
  down(data: Buffer): void {
    const { engine } = this.world;
    if (this.clientIsGone || this.serverIsGone || this.#isCutDown || this.#swallows()) return;
    if (this.lostReplies > 0) {
      this.lostReplies--;
      this.#isCutDown = true;
      engine.trace('reply lost', this.id, data.length);
      this.replyLost?.();
      this.reset(true);
      return;
    }
    if (this.#joins(data)) return;
    if (data.subarray(0, FORGOTTEN.length).equals(FORGOTTEN)) this.#unmeddledUntil = engine.now + UNMEDDLED_MS;
    const meddled = this.#isMeddledWith(this.#downAt) ? this.world.weather?.ofReply(this, data) : undefined;
    if (meddled?.kind === 'joined') return this.#beginJoining(data, meddled.pieces[0]!.heldMs);
    const whole = meddled?.pieces ?? this.#pieces(data).map((piece) => ({ data: piece, heldMs: 0 }));
    this.#downAt = Math.max(this.#downAt, engine.now + this.latencyMs(), held(this.downHeld, engine.now));
    if (meddled) meddled.since = this.#downAt;
    for (const [i, piece] of whole.entries()) {
      this.#downAt += piece.heldMs;
      const arrive = () => this.#arrivesDown(piece.data, meddled, i === whole.length - 1);
      engine.at(this.#downAt, arrive, this.process);
    }
  }

  #arrivesDown(data: Buffer, meddled: Meddled | undefined, isLast: boolean): void {
    if (this.clientIsGone || this.#swallows()) return;
    this.world.engine.trace('reply', this.id, data.length);
    this.world.weather?.replyArrived(this, meddled, isLast);
    this.socket.bytesRead += data.length;
    this.socket.emit('data', data);
  }

  /** @returns whether the reply arrives together with those before it */
  #joins(data: Buffer): boolean {
    const joining = this.#joining;
    if (!joining || this.world.engine.now >= joining.at) return false;
    joining.replies.push(data);
    return true;
  }

  #beginJoining(data: Buffer, ms: number): void {
    const { engine, weather } = this.world;
    this.#downAt = Math.max(this.#downAt, engine.now + this.latencyMs(), held(this.downHeld, engine.now)) + ms;
    const replies = [data];
    this.#joining = { at: this.#downAt, replies };
    const arrive = () => {
      weather?.joined(replies.length);
      this.#arrivesDown(Buffer.concat(replies), undefined, true);
    };
    engine.at(this.#downAt, arrive, this.process);
  }

  /** A message of Pub/Sub. */
  push(data: Buffer): void {
    const lost = this.messagesLost;
    if (lost && lost.until > this.world.engine.now) return lost.took();
    this.down(data);
  }

  /** Holds up all on its way to the server, from now on. @returns lets it go */
  holdUp(took: Took): () => void {
    this.#adversaries++;
    return () => {
      if (this.#waiting.length > 0) took();
      if (--this.#adversaries > 0) return;
      // What was sent before that may still be on its way, held back by itself.
      const { engine } = this.world;
      for (const arrive of this.#waiting.splice(0)) engine.at(Math.max(this.#upAt, engine.now), arrive);
    };
  }

  /** Both ends are told. @param arrives whether what is on its way to the server still arrives */
  reset(arrives: boolean): void {
    const { engine } = this.world;
    if (arrives) engine.at(Math.max(this.#upAt, engine.now), () => this.server.closed(this));
    else this.server.closed(this);
    engine.after(this.latencyMs(), () => this.socket.lose(failure('read', 'ECONNRESET')), this.process);
  }

  /** The process is gone: its system closes the connection. */
  abandon(): void {
    this.#clientGoes();
    this.#fin();
  }

  #clientGoes(): void {
    if (!this.clientIsGone) this.clientGoneAt = this.world.engine.now;
    this.clientIsGone = true;
  }

  #up(data: Buffer): void {
    this.world.sent(data);
    if (this.#swallows()) return;
    if (this.nextStep && data.includes('evalsha')) {
      const happens = this.nextStep;
      this.nextStep = undefined;
      happens(this);
    }
    const meddled = this.#isMeddledWith(this.#upAt) ? this.world.weather?.ofRequest(this, data) : undefined;
    const whole = meddled?.pieces ?? this.#pieces(data).map((piece) => ({ data: piece, heldMs: 0 }));
    for (const [i, piece] of whole.entries()) {
      this.#deliver(piece.data, piece.heldMs, i === whole.length - 1 ? meddled : undefined);
      if (meddled && i === 0) meddled.since = this.#upAt - piece.heldMs;
    }
  }

  #deliver(data: Buffer, heldMs: number, meddled: Meddled | undefined): void {
    this.#arrives(() => {
      if (this.serverIsGone || this.#swallows()) return;
      if (meddled) this.world.weather?.requestArrived(this, meddled);
      this.server.receive(this, data);
    }, heldMs);
  }

  #pieces(data: Buffer): Buffer[] {
    if (!this.inPieces || data.length <= this.inPieces.atMost) return [data];
    const { took, atMost } = this.inPieces;
    took();
    // A long answer in a few pieces only: where it is cut matters, and not how often.
    const size = Math.max(atMost, Math.ceil(data.length / MOST_PIECES));
    return Array.from({ length: Math.ceil(data.length / size) }, (_, i) => data.subarray(i * size, (i + 1) * size));
  }

  #fin(): void {
    if (!this.isHalfOpen) this.#arrives(() => this.server.closed(this));
  }

  /** At the server, behind all that was sent before. */
  #arrives(arrive: () => void, heldMs = 0): void {
    const { engine } = this.world;
    this.#upAt = Math.max(this.#upAt, engine.now + this.latencyMs(), held(this.upHeld, engine.now)) + heldMs;
    if (this.#adversaries > 0) this.#waiting.push(arrive);
    else engine.at(this.#upAt, arrive);
  }

  #isMeddledWith(lastArrivesAt: number): boolean {
    const { now } = this.world.engine;
    return !this.inPieces && lastArrivesAt < now + MOST_BEHIND_MS && this.#unmeddledUntil < now;
  }

  #swallows(): boolean {
    this.isHalfOpen?.();
    return this.isHalfOpen !== undefined;
  }
}

function held(hold: Hold | undefined, now: number): number {
  if (!hold || hold.until <= now) return 0;
  hold.took();
  return hold.until;
}

function failure(call: string, code: string): Error {
  return Object.assign(new Error(`${call} ${code}`), { code, errno: code, syscall: call });
}

export class Network {
  readonly connections = new Set<Connection>();
  /** Processes whose new connections meet a hole, with the simulated ms until when. */
  readonly cutOff = new Map<string, { until: number; took: Took }>();
  /** Whose new connections are refused at once. */
  readonly refused = new Map<string, { until: number; took: Took }>();
  /** Whose new connections are told why they are closed: there are too many, unless something else is said. */
  readonly tooMany = new Map<string, { until: number; took: Took; answer?: string }>();
  /** Whose new connections are half-open from the beginning. */
  readonly halfOpen = new Map<string, Took>();
  /** All of whose connections are slow. */
  readonly slow = new Map<string, Took>();
  readonly #numbers = new Map<string, number>();

  constructor(
    private readonly world: NetworkWorld,
    private readonly server: (host: string) => Listener | undefined,
  ) {}

  /** How many it has begun so far, also those that came to nothing. */
  connectionsOf(process: SimulatedProcess): number {
    return this.#numbers.get(process.id) ?? 0;
  }

  connect(process: SimulatedProcess, host: string): SimulatedSocket {
    const { engine } = this.world;
    const number = (this.#numbers.get(process.id) ?? 0) + 1;
    this.#numbers.set(process.id, number);
    const server = this.server(host);
    if (!server) throw new Error(`There is no server at ${host}.`);
    const connection = new Connection(this.world, process, server, number);
    const { socket } = connection;
    const arrive = () => {
      if (socket.destroyed) return;
      const cut = this.cutOff.get(process.name);
      // Only the timeout of the driver ends such an attempt.
      if (cut && cut.until > engine.now) return cut.took();
      const refused = this.refused.get(process.name);
      if (refused && refused.until > engine.now) {
        refused.took();
        return socket.lose(failure('connect', 'ECONNREFUSED'));
      }
      if (!server.isListening) return socket.lose(failure('connect', 'ECONNREFUSED'));
      connection.isHalfOpen = this.halfOpen.get(process.name);
      connection.slowed = this.slow.get(process.name);
      if (connection.slowed) connection.slowness = 200;
      this.connections.add(connection);
      server.accept(connection);
      this.world.connected(connection);
      socket.connecting = false;
      engine.trace('connect', connection.id, server.name);
      socket.emit('connect');
      const tooMany = this.tooMany.get(process.name);
      if (!tooMany || tooMany.until <= engine.now) return;
      tooMany.took();
      connection.down(errorReply(tooMany.answer ?? 'ERR max number of clients reached'));
      connection.reset(true);
    };
    engine.after(connection.latencyMs(), arrive, process);
    return socket;
  }

  of(process: SimulatedProcess): Connection[] {
    return [...this.connections].filter((one) => one.process === process && !one.clientIsGone);
  }
}
