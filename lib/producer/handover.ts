import type { Cluster, Redis } from 'ioredis';
import { UnavailableError, UnsafeServerError } from '../delay-queue.errors.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import { waitTimeout } from '../job/durability.js';
import type { ResolvedDurability } from '../job/durability.js';
import { nodeOf } from '../redis/redis.client.js';
import type { RedisConnection } from '../redis/redis.connection.js';
import { slotOf } from '../redis/keys.js';
import type { ShardKeys } from '../redis/keys.js';
import { isElsewhere, isTransient, NotSentError } from '../redis/redis.errors.js';
import type { DurabilityRequirement } from '../redis/replication-barrier.js';
import type { DurableBatchers } from './durable-batchers.js';

/**
 * What goes from one node of a Cluster to another is on a replica there before the first node lets go of it: nodes die apart from each
 * other, and the first would have let go of what the second has lost. It costs an INFO and a WAIT for each call that carries something.
 * Within one node nothing is waited for, but both shards are asked for before and after: its replica hears of both writes in their order.
 */
export class Handover {
  constructor(
    private readonly connection: RedisConnection,
    private readonly durable: DurableBatchers,
    private readonly module: ResolvedModuleOptions,
  ) {}

  /**
   * What must have come about there before it is let go of here: what `durability` of the module says, where the servers can do it, else
   * one replica, for which a call waits as long as for any answer.
   *
   * @param from of the shard that has it
   * @param to of the shard that is given it
   * @returns undefined: nothing, because both are on one node, or because the other node has no replica
   * @throws NotSentError while nobody knows which node has one of them; errors of the connection
   */
  async demand(from: ShardKeys, to: ShardKeys): Promise<DurabilityRequirement | undefined> {
    const { commands } = this.connection;
    if (!('nodes' in commands)) return undefined;
    const [source, node] = await Promise.all([this.#ownerOf(commands, from), this.#ownerOf(commands, to)]);
    if (node === source) return undefined;
    const { durability, commandTimeoutMs } = this.module;
    if (durability !== 'async' && (await this.#isPossible(durability)))
      return { replicas: durability.replicas, timeoutMs: waitTimeout(durability, commandTimeoutMs, 'durability') };
    // A master that was cut off knows of no replica, while the others know of one that may have taken over.
    const hasReplica = commands.slots[slotOf(to.due)]!.length > 1 || (await this.#replicasOf(node, to.due)) > 0;
    return hasReplica ? { replicas: 1, timeoutMs: commandTimeoutMs } : undefined;
  }

  /**
   * Gives something to another shard, and waits for it; once more where that shard went to another node meanwhile.
   *
   * @param give does it over this connection
   * @throws UnavailableError when it was not enough in time; errors of the connection, also when that has changed meanwhile
   */
  async carry(from: ShardKeys, to: ShardKeys, give: (over: RedisConnection) => Promise<unknown>): Promise<void> {
    const demand = await this.demand(from, to);
    if (!demand) {
      await give(this.connection);
      if (!(await this.demand(from, to))) return;
      return this.carry(from, to, give);
    }
    const reached = await this.durable.write(to, demand, give);
    const shortfall = this.shortfall(demand, reached);
    if (shortfall !== undefined)
      throw new UnavailableError(`Redis could not be relied on: ${shortfall}`, { cause: this.durable.problem });
  }

  /**
   * By what a shard is written at this moment.
   *
   * @throws NotSentError while nobody knows which node has it; errors of the connection
   */
  async linkTo(shard: ShardKeys): Promise<unknown> {
    const { commands } = this.connection;
    const node = 'nodes' in commands ? await this.#ownerOf(commands, shard) : commands;
    return (node as { stream?: object }).stream ?? node;
  }

  /** @returns undefined when it was enough, else in words what was missing */
  shortfall({ replicas, timeoutMs }: DurabilityRequirement, reached = 0): string | undefined {
    if (reached >= Math.max(1, replicas)) return undefined;
    const missing =
      replicas === 0 ? 'the append-only file did not have it' : `${reached} of ${replicas} replicas had it`;
    return `at the node that takes over ${missing} within ${timeoutMs} ms.`;
  }

  /**
   * The nodes know it, while the map of the driver may be wrong for a second after a slot has moved: a replica that has not heard of that
   * may have told it, and one answer of a node that the slot has left changes the map for all slots beside it. Costs a command.
   */
  async #ownerOf(commands: Cluster, { due, meta }: ShardKeys): Promise<Redis> {
    const mapped = nodeOf(commands, due);
    const asked = mapped && this.connection.send(() => isMasterOf(mapped, meta), due);
    if (mapped && (await asked)) return mapped;
    commands.refreshSlotsCache();
    const others = commands.nodes('all').filter((node) => node !== mapped);
    // The first that has it: others may be silent.
    const asks = others.map(async (node) => {
      if (!(await this.connection.send(() => isMasterOf(node, meta)))) throw new NotSentError();
      return node;
    });
    const owner = await Promise.any(asks).catch(() => undefined);
    if (!owner) throw new NotSentError();
    return owner;
  }

  /** With `'fsync'` and no append-only file no job can be enqueued; those that are there must be able to leave all the same. */
  async #isPossible(durability: ResolvedDurability): Promise<boolean> {
    try {
      await this.durable.assertPossible({ replicas: durability.replicas, timeoutMs: this.module.commandTimeoutMs });
      return true;
    } catch (error) {
      if (error instanceof UnsafeServerError) return false;
      throw error;
    }
  }

  /** One that is just copying all of its master counts, too: it is there soon, and then it has this as well. */
  async #replicasOf(node: Redis, key: string): Promise<number> {
    try {
      const text = await this.connection.send(() => node.info('replication'), key);
      return Number(/^connected_slaves:(\d+)/m.exec(text)?.[1] ?? 0);
    } catch (error) {
      // Without a permission for INFO nobody can say: then it is as if there were none.
      if (isTransient(error)) throw error;
      return 0;
    }
  }
}

/** Whether this node writes the key, as far as it may say. @throws errors that pass */
async function isMasterOf(node: Redis, meta: string): Promise<boolean> {
  try {
    // Changes nothing. What only reads a replica would answer as well.
    await node.hdel(meta, 'nothing');
  } catch (error) {
    if (isElsewhere(error)) return false;
    if (isTransient(error)) throw error;
    // No permission, a damaged key.
  }
  return true;
}
