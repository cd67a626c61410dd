import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isServing } from '../helpers/is-serving.js';
import type { RedisServer } from '../helpers/redis-server.js';
import type { World } from '../helpers/world.js';
import type { Member } from './crew.js';
import { LONGEST_FAULT_MS } from './plan.js';
import type { FaultKind } from './plan.js';

export interface Scene {
  readonly server: RedisServer;
  readonly world: World;
  readonly leaseMs: number;
}

/** Does it, undoes it, and says whether it was seen to happen: a run whose faults do nothing proves nothing. */
type OnProcess = (member: Member, scene: Scene, variant: number) => Promise<boolean>;
type OnServer = (scene: Scene, variant: number) => Promise<boolean>;

const SPELL_MS = 2_000;
const run = promisify(execFile);

export const ON_PROCESSES: Partial<Record<FaultKind, OnProcess>> = {
  kill: async (member) => (await member.end('SIGKILL')) === 'SIGKILL',

  terminate: async (member) => (await member.end('SIGTERM')) === 'SIGTERM',

  async freeze(member, { leaseMs }) {
    member.signal('SIGSTOP');
    await sleep(leaseMs * 1.5);
    const { stdout } = await run('ps', ['-o', 'state=', '-p', String(member.pid)]);
    member.signal('SIGCONT');
    return stdout.trim().startsWith('T');
  },

  async block(member, { leaseMs }) {
    const blocked = member.says('blocked');
    member.send({ block: leaseMs * 1.5 });
    return blocked;
  },

  async drop({ proxy }) {
    const before = proxy.lost;
    proxy.judge = () => 'swallow';
    await sleep(LONGEST_FAULT_MS);
    // Half of what was said is lost: such a connection can only be given up, which its owner has to find out.
    proxy.deafen();
    proxy.judge = () => 'pass';
    return proxy.lost > before;
  },

  async loseReplies({ proxy }) {
    const before = proxy.lost;
    let replies = 0;
    proxy.judge = (direction) => (direction === 'reply' && ++replies % 3 === 0 ? 'cut' : 'pass');
    await sleep(SPELL_MS);
    proxy.judge = () => 'pass';
    return proxy.lost > before;
  },
};

export const ON_SERVER: Partial<Record<FaultKind, OnServer>> = {
  async killRedis({ server }, variant) {
    await server.kill();
    const gone = !(await isServing(server.url));
    await sleep(variant * 1_000);
    await server.restart();
    return gone;
  },

  async readOnly({ world }) {
    // The port is dead, so the data stays.
    await world.redis.replicaof('127.0.0.1', '1');
    const refused = await refusalOf(world.redis.del(`${world.prefix}:probe`));
    await sleep(SPELL_MS);
    await insist(() => world.redis.replicaof('NO', 'ONE'));
    return refused.startsWith('READONLY');
  },

  async pause({ world }, variant) {
    await world.redis.call('CLIENT', 'PAUSE', SPELL_MS, variant < 0.5 ? 'WRITE' : 'ALL');
    const since = performance.now();
    await world.redis.del(`${world.prefix}:probe`);
    return performance.now() - since > SPELL_MS / 2;
  },

  async flushScripts({ world }) {
    const results = await world.redis.multi().info('memory').script('FLUSH').info('memory').exec();
    const [before, , after] = results!.map(([, text]) => /number_of_cached_scripts:(\d+)/.exec(String(text))?.[1]);
    return Number(before) > 0 && after === '0';
  },

  async fillMemory({ world }) {
    await world.redis.config('SET', 'maxmemory', '1');
    const refused = await refusalOf(world.redis.set(`${world.prefix}:probe`, '', 'PX', 1));
    await sleep(SPELL_MS);
    await insist(() => world.redis.config('SET', 'maxmemory', '0'));
    return refused.startsWith('OOM');
  },
};

function refusalOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => '',
    (error: Error) => error.message,
  );
}

/** What was done must be undone, also when another fault is just at work. */
async function insist(undo: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await undo();
      return;
    } catch {
      await sleep(100);
    }
  }
}
