// Where a Redis comes from. Each way either gives one or says why it cannot; the order is the caller's.
import { imageName, startContainerRedis } from './container-redis.mjs';
import { serverOnPath, startLocalRedis } from './local-redis.mjs';
import { installRedisServer } from './system-packages.mjs';

export const START_ORDER = ['url', 'local', 'container', 'system'];
const TEST_ORDER = ['url', 'container', 'local', 'system'];
const FORCED = { url: ['url'], container: ['container'], local: ['local', 'system'] };

/** A pull that takes longer falls back to the next way, unless TEST_REDIS=container leaves none. */
const PULL_TIMEOUT_MS = 45_000;
const PATIENT_PULL_TIMEOUT_MS = 300_000;

const WAYS_TO_GET_ONE = `Ways to get one:
  REDIS_URL=redis://host:6379            a Redis or Valkey (6.2 or newer) that is already running
  apt-get install redis-server           Debian, Ubuntu; as root this is done for you
  brew install redis                     macOS
  dnf install valkey                     Fedora
  a running Docker engine                REDIS_IMAGE names the image, redis:7.0 by default`;

const ways = { url, local, container, system };

export class RedisNotFound extends Error {
  constructor(refusals) {
    super(`No Redis was found:\n${refusals.map((why) => `- ${why}`).join('\n')}\n${WAYS_TO_GET_ONE}`);
    /** Why each way was passed over. */
    this.refusals = refusals;
  }
}

/** The order for tests, which TEST_REDIS=container|local|url narrows to one that must work. */
export function testOrder(env = process.env) {
  const forced = env.TEST_REDIS;
  if (!forced) return TEST_ORDER;
  if (!FORCED[forced]) throw new Error(`TEST_REDIS is "${forced}"; it can be ${Object.keys(FORCED).join(', ')}`);
  return FORCED[forced];
}

/**
 * Resolves with `{ kind, url, description, passedOver }`, and for one that was started also `port`, `kill(signal)` and
 * `restart()`. What was started ends with the tether.
 *
 * @param {object} options
 * @param {import('./tether.mjs').Tether} options.tether
 * @param {string[]} options.order
 * @param {string[]} [options.flags] options of redis-server, for one that is started
 * @param {NodeJS.ProcessEnv} [options.env]
 * @param {AbortSignal} [options.signal] interrupts an installation
 * @param {object} [options.machine] stands in for this machine in tests
 */
export async function findRedis({ order, env = process.env, ...options }) {
  const passedOver = [];
  for (const way of order) {
    try {
      const redis = await ways[way]({ env, ...options });
      return Object.assign(redis, { passedOver });
    } catch (error) {
      passedOver.push(error.message);
    }
  }
  throw new RedisNotFound(passedOver);
}

async function url({ env }) {
  if (!env.REDIS_URL) throw new Error('REDIS_URL is not set');
  return { kind: 'url', url: env.REDIS_URL, description: `REDIS_URL, ${withoutPassword(env.REDIS_URL)}` };
}

async function local({ env, tether, flags }) {
  const program = serverOnPath(env);
  if (!program) throw new Error('neither redis-server nor valkey-server is on the PATH');
  return startLocalRedis(tether, program, flags);
}

async function container({ env, tether, flags }) {
  const pullTimeoutMs = env.TEST_REDIS === 'container' ? PATIENT_PULL_TIMEOUT_MS : PULL_TIMEOUT_MS;
  return startContainerRedis(tether, { image: imageName(env), flags, pullTimeoutMs });
}

async function system({ env, tether, flags, signal, machine }) {
  if (serverOnPath(env)) throw new Error('the system already has a server, so nothing was installed');
  await installRedisServer({ env, signal, machine });
  return local({ env, tether, flags });
}

function withoutPassword(text) {
  return text.replace(/\/\/([^:@/]*):[^@/]*@/, '//$1:***@');
}
