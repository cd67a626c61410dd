import { createServer, Socket } from 'node:net';
import type { Server } from 'node:net';

type Direction = 'request' | 'reply';

/** What the proxy does with a chunk: pass it on, swallow it, or swallow it and cut the connection. */
export type Verdict = 'pass' | 'swallow' | 'cut';

/** A TCP proxy before Redis that loses what a test tells it to lose. */
export class Proxy {
  /** Judges each chunk; by default all pass. */
  judge: (direction: Direction, chunk: Buffer) => Verdict = () => 'pass';
  /** How long answers are held back. */
  replyAfterMs = 0;
  connections = 0;
  lost = 0;
  readonly #sockets = new Set<Socket>();
  readonly #deaf = new WeakSet<Socket>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async before(redisUrl: string): Promise<Proxy> {
    const target = new URL(redisUrl);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const url = new URL(redisUrl);
    url.hostname = '127.0.0.1';
    url.port = String(port);
    const proxy = new Proxy(server, url.toString());
    server.on('connection', (client) => proxy.#join(client, target));
    return proxy;
  }

  /** Swallows whatever is said from now on over the connections there are, for good; new ones work. */
  deafen(): void {
    for (const socket of this.#sockets) this.#deaf.add(socket);
  }

  /** Destroys all connections; new ones are accepted. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  #join(client: Socket, target: URL): void {
    this.connections++;
    const upstream = new Socket();
    upstream.connect(Number(target.port || 6379), target.hostname);
    const pipe = (from: Socket, to: Socket, direction: Direction) => {
      from.on('data', (chunk: Buffer) => {
        const verdict = this.#deaf.has(from) ? 'swallow' : this.judge(direction, chunk);
        if (verdict === 'pass') {
          if (direction === 'request' || this.replyAfterMs === 0) return void to.write(chunk);
          from.pause();
          return void setTimeout(() => from.resume() && to.write(chunk), this.replyAfterMs);
        }
        this.lost++;
        if (verdict === 'cut') {
          client.destroy();
          upstream.destroy();
        }
      });
      from.on('close', () => to.destroy());
      from.on('error', () => to.destroy());
      this.#sockets.add(from);
      from.on('close', () => this.#sockets.delete(from));
    };
    pipe(client, upstream, 'request');
    pipe(upstream, client, 'reply');
  }
}
