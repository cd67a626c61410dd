import { Redis } from 'ioredis';
import { eventually } from './eventually.js';
import { RedisServer } from './redis-server.js';

/** Where a replica may reach its master: on one machine, or out of a container through the engine's bridge. */
const HOSTS = ['127.0.0.1', '172.17.0.1', 'host.docker.internal'];

/** A second server that replicates one of a test's own, and may be frozen. */
export class Replica {
  private constructor(
    private readonly server: RedisServer,
    readonly redis: Redis,
  ) {}

  static async of(master: RedisServer): Promise<Replica> {
    const server = await RedisServer.start();
    const redis = new Redis(server.url, { maxRetriesPerRequest: null });
    redis.on('error', () => {});
    const replica = new Replica(server, redis);
    for (const host of HOSTS) {
      try {
        await redis.call('REPLICAOF', host, String(master.port));
        await replica.untilLinked();
        return replica;
      } catch (error) {
        if (host === HOSTS.at(-1)) throw error;
      }
    }
    throw new Error('unreachable');
  }

  async untilLinked(): Promise<void> {
    await eventually(async () => {
      if (!/master_link_status:up/.test(await this.redis.info('replication'))) throw new Error('not linked');
    }, 10_000);
  }

  freeze(): Promise<void> {
    return this.server.kill('SIGSTOP');
  }

  thaw(): Promise<void> {
    return this.server.kill('SIGCONT');
  }

  async stop(): Promise<void> {
    this.redis.disconnect();
    await this.server.stop();
  }
}
