import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { resolveModuleOptions } from '../../lib/delay-queue.options.js';
import { isPlain, knowsSchedules, scriptSource } from '../../lib/lua/scripts.js';
import { scheduleKeys } from '../../lib/redis/keys.js';
import type { AnyScriptName, ScriptName } from '../../lib/lua/scripts.js';
import { InstanceContext } from '../../lib/instance/instance-context.js';
import { RedisConnection } from '../../lib/redis/redis.connection.js';
import { RedisServer } from '../helpers/redis-server.js';
import type { RedisServerOptions } from '../helpers/redis-server.js';
import { World } from '../helpers/world.js';
import { Shard } from './shard.js';

export interface Shards {
  readonly world: World;
  /** A queue that no other test uses. After the test its stored state is checked. */
  fresh(): Shard;
}

export interface ShardsOptions {
  /** A Redis of this spec's own. */
  server?: RedisServerOptions;
  /** Runs the texts for servers that do not know script flags. */
  legacy?: boolean;
}

/** For the top of a spec: a world, and the library's connection to it. */
export function shards({ server: serverOptions, legacy = false }: ShardsOptions = {}): Shards {
  let server: RedisServer | undefined;
  let world: World;
  let connection: RedisConnection;
  let producers: InstanceContext;
  let used: Shard[] = [];

  beforeAll(async () => {
    server = serverOptions && (await RedisServer.start(serverOptions));
    world = await World.open(server?.url);
    const options = resolveModuleOptions({ connection: world.connection, prefix: world.prefix }, 'default');
    connection = legacy ? new LegacyConnection(options) : new RedisConnection(options);
    producers = new InstanceContext(connection, options, () => undefined);
    await connection.open(true);
  });
  afterEach(async () => {
    const checked = used;
    used = [];
    const problems = await Promise.all(checked.map((shard) => shard.problems()));
    if (problems.flat().length > 0) throw new Error(`the test left a broken shard: ${problems.flat().join(', ')}`);
  });
  afterAll(async () => {
    await producers.close(0);
    connection.close();
    await world.close();
    await server?.stop();
  });

  return {
    get world() {
      return world;
    },
    fresh() {
      const shard = new Shard(world, connection, producers);
      used.push(shard);
      return shard;
    },
  };
}

/** Sends each script whole and without flags, as to a server older than 7.0. */
class LegacyConnection extends RedisConnection {
  override async run(script: AnyScriptName, keys: readonly string[], session: string, args: (string | number)[]) {
    const all = [...keys, session, ...(isPlain(script) && knowsSchedules(script) ? scheduleKeys(keys) : [])];
    return this.send(() => this.commands.eval(scriptSource(script as ScriptName, false), all.length, ...all, ...args));
  }
}
