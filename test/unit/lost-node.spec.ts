import type { EventEmitter } from 'node:events';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, jest } from '@jest/globals';
import type { Cluster } from 'ioredis';
import { resolveModuleOptions } from '../../lib/delay-queue.options.js';
import { slotOf } from '../../lib/redis/keys.js';
import { NoAnswerError } from '../../lib/redis/redis.errors.js';
import { createClient } from '../../lib/redis/redis.client.js';
import { RedisConnection } from '../../lib/redis/redis.connection.js';
import { ReplicationBarrier } from '../../lib/redis/replication-barrier.js';
import { endingWithEachTest } from '../helpers/ending.js';
import { eventually } from '../helpers/eventually.js';
import { encodeReply, parseCommand } from '../simulation/resp.js';

const ends = endingWithEachTest();
/** Longer than the driver waits where it sends the calls of a lost node to another one. */
const FAILOVER_MS = 400;

/** Two masters: the first has all slots but the last one, and its connections close when something is asked of it. */
class DyingNode {
  /** How often either master was asked to count. */
  counted = 0;
  /** The first master accepts connections and never answers on them. */
  mutes = false;
  /** The first master accepts no connections, and the second one has all slots. */
  hasLeft = false;
  /** The second one refers to the first one who asks it to count; that one counts. Before that nobody knows of it. */
  refers = false;
  readonly #sockets = new Set<Socket>();
  readonly #nodes: readonly Server[] = [0, 1].map((n) => createServer((socket) => this.#join(socket, n === 0)));

  static async start(): Promise<DyingNode> {
    const cluster = new DyingNode();
    await Promise.all(
      cluster.#nodes.map((node) => new Promise<void>((resolve) => node.listen(0, '127.0.0.1', resolve))),
    );
    return cluster;
  }

  /** Of a client that was told of the other master. */
  async connect(commandTimeout = 5_000): Promise<RedisConnection> {
    const cluster = [{ host: '127.0.0.1', port: this.#ports[1]! }];
    // So the driver has gone through all its redirections long before the call has had its time.
    const to = { cluster, retryDelayOnFailover: 10 };
    const options = resolveModuleOptions({ connection: to, commandTimeout }, 'default');
    const connection = new RedisConnection(options);
    ends({ close: async () => connection.close() });
    await connection.whenReady(30_000);
    return connection;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#nodes.map((node) => new Promise((resolve) => node.close(resolve))));
  }

  /** The first master is shut down, after its slots have moved to the other one. */
  leave(): void {
    this.hasLeft = true;
    for (const socket of this.#sockets) if (socket.localPort === this.#ports[0]) socket.destroy();
  }

  get #ports(): readonly number[] {
    return this.#nodes.map((node) => (node.address() as { port: number }).port);
  }

  #join(socket: Socket, isDying: boolean): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    if (isDying && this.hasLeft) return void socket.destroy();
    if (isDying && this.mutes) return;
    socket.on('data', (data: Buffer) => {
      for (let parsed = parseCommand(data); parsed; parsed = parseCommand(parsed.rest)) {
        const [name = '', second = ''] = parsed.args.map((word) => word.toLowerCase());
        if (name === 'incr') this.counted++;
        if (name === 'incr' && this.refers)
          socket.write(isDying ? ':1\r\n' : `-MOVED ${slotOf(second)} 127.0.0.1:${this.#ports[0]!}\r\n`);
        else if (name === 'incr' && isDying) return void socket.destroy();
        else socket.write(this.#answer(name, second));
      }
    });
  }

  #answer(name: string, second: string): string | Buffer {
    if (name === 'hello') return encodeReply(2, ['server', 'redis', 'proto', 2]);
    // So the process does not ask itself anything over the node in question, which would find out what is wrong.
    if (name === 'subscribe' && this.refers) return '-NOPERM no permission to access a channel\r\n';
    if (name === 'info') return encodeReply(2, 'loading:0');
    if (name !== 'cluster') return name === 'incr' ? ':1\r\n' : '+OK\r\n';
    if (second === 'info') return encodeReply(2, 'cluster_state:ok');
    const [first, last] = this.#ports.map((port) => ['127.0.0.1', port]);
    if (this.hasLeft || (this.refers && this.counted === 0)) return encodeReply(2, [[0, 16_383, last!]]);
    return encodeReply(2, [
      [0, 16_382, first!],
      [16_383, 16_383, last!],
    ]);
  }
}

describe('when the connection to a node of a Cluster closes', () => {
  it('a call that has left is in doubt, and the driver does not send it again', async () => {
    const cluster = ends(await DyingNode.start());
    const connection = await cluster.connect();
    const counting = connection.send(() => connection.commands.incr('{jobs}'), '{jobs}');
    await expect(counting).rejects.toBeInstanceOf(NoAnswerError);
    await sleep(FAILOVER_MS);
    expect(cluster.counted).toBe(1);
  });

  it('a node that never comes to work on its connection is connected to again', async () => {
    const cluster = ends(await DyingNode.start());
    cluster.mutes = cluster.refers = true;
    const connection = await cluster.connect(2_000);
    const count = (key?: string) => connection.send(() => connection.commands.incr('{jobs}'), key);
    await expect(count()).rejects.toBeInstanceOf(NoAnswerError);
    cluster.mutes = false;
    const until = performance.now() + 15_000;
    let counted: number | undefined;
    while (counted === undefined && performance.now() < until) counted = await count('{jobs}').catch(() => undefined);
    expect(counted).toBe(1);
  }, 30_000);

  it('a client that is left with the right node alone finds out where writes go', async () => {
    const cluster = ends(await DyingNode.start());
    const connection = await cluster.connect();
    const commands = connection.commands as Cluster;
    const barrier = new ReplicationBarrier(connection);
    await connection.send(() => commands.get('{jobs}'), '{jobs}');
    cluster.leave();
    await eventually(() => expect(commands.nodes()).toHaveLength(1));
    expect(await connection.send(() => commands.incr('{jobs}'), '{jobs}')).toBe(1);
    await eventually(() => expect(barrier.link('{jobs}')).toBeDefined());
  });

  it('the driver goes on with a call that has not left', () => {
    const client = createClient(
      { cluster: [{ host: '127.0.0.1', port: 1 }] },
      'default',
      'test',
    ) as unknown as EventEmitter;
    const flushQueue = jest.fn();
    const node = { asking: () => {}, flushQueue };
    client.emit('+node', node);
    const closed = new Error('Connection is closed.');
    node.flushQueue(closed);
    expect(flushQueue.mock.calls).toEqual([
      [expect.any(NoAnswerError), { offlineQueue: false }],
      [closed, { commandQueue: false }],
    ]);
  });
});
