import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';

const HELLO = '%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n';
const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`;

/** Answers as a Sentinel does that always names the same master, when the test lets it. */
export class FalseSentinel {
  /** Questions about the master are answered by `answer()` only. */
  holds = false;
  readonly #held: Socket[] = [];
  readonly #subscribers = new Set<Socket>();
  readonly #sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly master: URL,
  ) {}

  static async of(masterUrl: string): Promise<FalseSentinel> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const sentinel = new FalseSentinel(server, new URL(masterUrl));
    server.on('connection', (socket) => sentinel.#join(socket));
    return sentinel;
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: '127.0.0.1', port: (this.server.address() as { port: number }).port };
  }

  /** Questions that wait. */
  get asked(): number {
    return this.#held.length;
  }

  /** Clients that wait for news. */
  get subscribers(): number {
    return this.#subscribers.size;
  }

  /** Tells all who listen that the master is another one. */
  announce(): void {
    const parts = ['message', '+switch-master', `jobs 127.0.0.1 1 ${this.master.hostname} ${this.master.port}`];
    for (const socket of this.#subscribers) socket.write(`>3\r\n${parts.map(bulk).join('')}`);
  }

  answer(): void {
    this.holds = false;
    for (const socket of this.#held.splice(0)) this.#tellMaster(socket);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  #join(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#subscribers.delete(socket);
      this.#sockets.delete(socket);
    });
    // The driver waits for the answer before it sends what depends on it; its short calls arrive whole.
    socket.on('data', (chunk: Buffer) => {
      for (const call of chunk.toString('latin1').split(/^(?=\*)/m)) this.#serve(socket, call.toLowerCase());
    });
  }

  #serve(socket: Socket, call: string): void {
    if (call.includes('\nhello\r')) socket.write(HELLO);
    else if (call.includes('get-master-addr-by-name')) {
      if (this.holds) this.#held.push(socket);
      else this.#tellMaster(socket);
    } else if (call.includes('\nsentinels\r')) socket.write('*0\r\n');
    else if (call.includes('\nsubscribe\r')) {
      this.#subscribers.add(socket);
      socket.write(`>3\r\n${bulk('subscribe')}${bulk('+switch-master')}:1\r\n`);
    } else socket.write('+OK\r\n');
  }

  #tellMaster(socket: Socket): void {
    socket.write(`*2\r\n${bulk(this.master.hostname)}${bulk(this.master.port)}`);
  }
}
