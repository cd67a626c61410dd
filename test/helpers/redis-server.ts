import { findRedis, type RedisWay, type StartedRedis } from '../../tools/find-redis.mjs';
import { Tether } from '../../tools/tether.mjs';

export interface RedisServerOptions {
  /** Keep an append-only file, so that data outlives a restart. Off by default. */
  readonly appendfsync?: 'always' | 'everysec' | 'no';
  /** Further settings of redis.conf by name. */
  readonly config?: Readonly<Record<string, string>>;
}

/**
 * A Redis of one test's own, that may be frozen, killed and restarted. It has a free port and a temporary folder, and
 * ends with this process, however that ends.
 */
export class RedisServer {
  private constructor(
    private readonly tether: Tether,
    private readonly redis: StartedRedis,
  ) {}

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const tether = await Tether.open();
    try {
      return new RedisServer(tether, await findRedis({ tether, order: privateOrder(), flags: flagsOf(options) }));
    } catch (error) {
      await tether.close();
      throw error;
    }
  }

  get url(): string {
    return this.redis.url;
  }

  get port(): number {
    return this.redis.port;
  }

  /** Sends a signal. One that ends the server is awaited; with SIGSTOP and SIGCONT it has only been sent then. */
  kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    return this.redis.kill(signal);
  }

  /** Ends the server with SIGTERM if it still runs and starts it again, on the same port and over the same folder. */
  restart(): Promise<void> {
    return this.redis.restart();
  }

  /** Ends the server and removes its folder. */
  stop(): Promise<void> {
    return this.tether.close();
  }
}

/** A local server starts in a twentieth of the time that a container needs. */
function privateOrder(): Exclude<RedisWay, 'url'>[] {
  if (process.env['TEST_REDIS'] === 'container') return ['container'];
  if (process.env['TEST_REDIS'] === 'local') return ['local', 'system'];
  return ['local', 'container', 'system'];
}

function flagsOf({ appendfsync, config = {} }: RedisServerOptions): string[] {
  const persistence = appendfsync ? { appendonly: 'yes', appendfsync } : {};
  return Object.entries({ ...persistence, ...config }).flatMap(([name, value]) => [`--${name}`, value]);
}
