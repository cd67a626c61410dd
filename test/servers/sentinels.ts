import { Redis } from 'ioredis';
import type { StartedRedis } from '../../tools/find-redis.mjs';
import { serverOnPath, startLocalRedis } from '../../tools/local-redis.mjs';
import { startSentinel } from '../../tools/redis-sentinel.mjs';
import { Tether } from '../../tools/tether.mjs';
import { eventually } from '../helpers/eventually.js';

const HOST = '127.0.0.1';
const NAME = 'jobs';

export interface Member {
  readonly server: StartedRedis;
  readonly redis: Redis;
}

/** A master with replicas, watched by three Sentinels, that end with this process, however that ends. */
export class SentinelSetup {
  readonly #sentinels: { port: number; redis: Redis }[] = [];
  readonly members: Member[] = [];

  private constructor(private readonly tether: Tether) {}

  static async start(replicas: number): Promise<SentinelSetup> {
    const setup = new SentinelSetup(await Tether.open());
    try {
      await setup.#startMembers(1 + replicas);
      for (let n = 0; n < 3; n++) await setup.#startSentinel();
      await setup.whole();
      return setup;
    } catch (error) {
      await setup.stop();
      throw error;
    }
  }

  /** What `forRoot({ connection })` takes. */
  get connection(): { sentinels: { host: string; port: number }[]; name: string } {
    return { sentinels: this.#sentinels.map(({ port }) => ({ host: HOST, port })), name: NAME };
  }

  /** The member that the Sentinels call master. */
  async master(): Promise<Member> {
    const { redis } = this.#sentinels[0]!;
    const [, port] = (await redis.call('SENTINEL', 'get-master-addr-by-name', NAME)) as [string, string];
    return this.members.find(({ server }) => server.port === Number(port))!;
  }

  /** A planned change of masters. */
  async failover(): Promise<void> {
    await eventually(() => this.#sentinels[0]!.redis.call('SENTINEL', 'FAILOVER', NAME), 20_000);
  }

  /** Resolves when the Sentinels name another master than this one, which says itself that it is one. */
  async replaced(old: Member): Promise<Member> {
    return eventually(async () => {
      const master = await this.master();
      if (master === old) throw new Error('the Sentinels still name the old master');
      if (!/role:master/.test(await master.redis.info('replication'))) throw new Error('it is not promoted yet');
      return master;
    }, 30_000);
  }

  /** All members that run are linked, and each Sentinel knows all of them and both others. */
  async whole(): Promise<void> {
    const replicas = this.members.length - 1;
    await eventually(async () => {
      const { redis } = await this.master();
      const links = (await redis.info('replication')).match(/^slave\d+:.*state=online/gm) ?? [];
      if (links.length !== replicas) throw new Error(`${links.length} of ${replicas} replicas are linked`);
      for (const sentinel of this.#sentinels) {
        const info = await sentinel.redis.info('sentinel');
        if (!info.includes(`status=ok,address=${HOST}:${redis.options.port},slaves=${replicas},sentinels=3`)) {
          throw new Error(`a Sentinel does not know all of it yet: ${info}`);
        }
      }
    }, 60_000);
  }

  async stop(): Promise<void> {
    for (const { redis } of [...this.members, ...this.#sentinels]) redis.disconnect();
    await this.tether.close();
  }

  async #startMembers(count: number): Promise<void> {
    while (this.members.length < count) {
      // A full copy would else wait five seconds for more replicas to come.
      const server = await startLocalRedis(this.tether, serverOnPath()!, ['--repl-diskless-sync-delay', '0']);
      this.members.push({ server, redis: clientOf(server.port) });
    }
    const [master, ...others] = this.members;
    for (const { redis } of others) await redis.replicaof(HOST, master!.server.port);
  }

  async #startSentinel(): Promise<void> {
    const masterPort = this.members[0]!.server.port;
    const port = await startSentinel(this.tether, {
      name: NAME,
      masterPort,
      downAfterMs: 1_000,
      failoverTimeoutMs: 4_000,
    });
    this.#sentinels.push({ port, redis: clientOf(port) });
  }
}

function clientOf(port: number): Redis {
  const redis = new Redis(port, HOST, { maxRetriesPerRequest: null });
  redis.on('error', () => {}); // tests kill servers
  return redis;
}
