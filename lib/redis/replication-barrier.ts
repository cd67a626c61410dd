import type { Redis } from 'ioredis';
import { SESSION_PX } from './keys.js';
import { nodeOf } from './redis.client.js';
import type { RedisConnection } from './redis.connection.js';
import { isFull, isTransient, NoAnswerError } from './redis.errors.js';
import { setImmediate } from '../time-and-randomness.js';

/** What a call waits for, and for how long. */
export interface DurabilityRequirement {
  /** 0: none, but the append-only file. */
  readonly replicas: number;
  readonly timeoutMs: number;
}

/** One socket to the server that holds a key; undefined while the client of a Cluster does not know which one does. */
export type Link = { readonly node: Redis; readonly socket: object } | undefined;

interface Group {
  readonly demand: DurabilityRequirement;
  readonly key: string;
  readonly calls: { readonly resolve: (reached: number) => void; readonly reject: (error: unknown) => void }[];
}

/** The calls that wait on one socket. */
interface Line {
  busy: boolean;
  readonly groups: Group[];
}

/**
 * Waits until replicas or the disk have the writes of one connection. WAIT holds up its connection, so there is at most
 * one at a time on each socket. Calls that come meanwhile share the next one, so no call waits for more than two.
 */
export class ReplicationBarrier {
  /** Why the last wait could not be done at all. */
  problem: unknown;
  readonly #lines = new WeakMap<object, Line>();

  constructor(private readonly connection: RedisConnection) {}

  /** Where writes of `key` go at this moment. */
  link(key: string): Link {
    // If the node is unknown, the call goes to any node, and its answer tells the client the right one.
    const node = nodeOf(this.connection.commands, key);
    const socket = (node as { stream?: object } | undefined)?.stream;
    return node && socket && { node, socket };
  }

  /**
   * Waits for the writes that were answered over `link`.
   *
   * @param link the connection when the write was sent; another server may have taken over since, without the write
   * @param key of the same shard, to be written; belongs to the caller
   * @returns how many replicas have it; of the append-only file 1 or 0
   * @throws NoAnswerError, or the error of the driver, when the link is gone: the write must be sent again
   */
  async wait(link: Link, key: string, demand: DurabilityRequirement): Promise<number> {
    // A store in this process has no replicas and no disk: the durability counts as reached, so that an application
    // that asks for it can be tested.
    if (this.connection.isInMemory) return Math.max(1, demand.replicas);
    if (!link || link.socket !== this.link(key)?.socket) throw new NoAnswerError('The connection to Redis changed.');
    let line = this.#lines.get(link.socket);
    if (!line) this.#lines.set(link.socket, (line = { busy: false, groups: [] }));
    let group = line.groups.find((other) => isSame(other.demand, demand));
    if (!group) line.groups.push((group = { demand, key, calls: [] }));
    const reached = new Promise<number>((resolve, reject) => group.calls.push({ resolve, reject }));
    if (!line.busy) void this.#work(link, line);
    return reached;
  }

  async #work(link: NonNullable<Link>, line: Line): Promise<void> {
    line.busy = true;
    // Writes that were answered in this turn wait together.
    await new Promise((resolve) => setImmediate(resolve));
    for (let group = line.groups.shift(); group; group = line.groups.shift()) {
      try {
        const reached = await this.#reach(link, group);
        for (const { resolve } of group.calls) resolve(reached);
      } catch (error) {
        for (const { reject } of group.calls) reject(error);
      }
    }
    line.busy = false;
  }

  async #reach({ node, socket }: NonNullable<Link>, { key, demand }: Group): Promise<number> {
    try {
      return await this.connection.send(async () => {
        // While the call waited for its turn, the connection to the node may have changed, even to another server.
        if ((node as { stream?: object }).stream !== socket)
          throw new NoAnswerError('The connection to Redis changed.');
        // WAIT counts from the last write of its own connection, and a resent call that is answered from memory writes
        // nothing. So a key is written first; replication is in order, which covers all writes before it.
        const written = node.set(key, '', 'PX', SESSION_PX);
        const waited =
          demand.replicas > 0
            ? node.wait(demand.replicas, demand.timeoutMs)
            : node.call('WAITAOF', 1, 0, demand.timeoutMs).then(localFsyncs);
        const [, reached] = await Promise.all([written, waited]);
        this.problem = undefined;
        return reached;
      }, key);
    } catch (error) {
      if (isTransient(error) && !isFull(error)) throw error;
      // Unknown command, no permission, no append-only file, full: the write stands, but its durability is unknown.
      this.problem = error;
      return 0;
    }
  }
}

/** @param reply of WAITAOF: fsyncs on the server itself, then on replicas */
export function localFsyncs(reply: unknown): number {
  const [local] = Array.isArray(reply) ? reply : [];
  return Number(local) >= 1 ? 1 : 0;
}

function isSame(one: DurabilityRequirement, other: DurabilityRequirement): boolean {
  return one.replicas === other.replicas && one.timeoutMs === other.timeoutMs;
}
