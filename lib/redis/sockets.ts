import { performance } from '../time-and-randomness.js';
import { nodeOf } from './redis.client.js';
import type { RedisClient } from './redis.client.js';

/** Replies may fail in bulk: a socket is destroyed at most twice a second. */
const REPLACED_AGAIN_MS = 500;

/** Destroys sockets that cannot be used any more; the driver then connects anew by itself. */
export class Sockets {
  readonly #replacedAt = new WeakMap<object, number>();

  /** All sockets of a client. */
  replace(client: RedisClient): void {
    if (!this.#mayReplace(client)) return;
    const nodes = 'nodes' in client ? client.nodes() : [client];
    for (const node of nodes) destroySocket(node);
    if ('nodes' in client) client.disconnect(true);
  }

  /**
   * The same after a call that was not answered. Of a Cluster only the node that serves `key`: a node that hangs must not cut
   * off the others. If the client has lost that node it sends such calls to any other one, which only helps when that one answers;
   * so it must ask, over a new connection, who has the slot.
   */
  replaceNodeOf(client: RedisClient, key: string | undefined): void {
    if (!('nodes' in client)) return this.replace(client);
    if (key === undefined) return;
    const node = nodeOf(client, key);
    if (!node) client.refreshSlotsCache();
    else if (this.#mayReplace(node)) destroySocket(node);
  }

  #mayReplace(client: object): boolean {
    const now = performance.now();
    if (now - (this.#replacedAt.get(client) ?? -Infinity) < REPLACED_AGAIN_MS) return false;
    this.#replacedAt.set(client, now);
    return true;
  }
}

export function destroySocket(node: unknown): void {
  (node as { stream?: { destroy(): void } }).stream?.destroy();
}
