import type { EventEmitter } from 'node:events';
import { performance } from '../time-and-randomness.js';
import { nodeOf } from './redis.client.js';
import type { RedisClient } from './redis.client.js';

/** Replies may fail in bulk: a socket is destroyed at most twice a second. */
const REPLACED_AGAIN_MS = 500;

interface WithStream {
  readonly status?: string;
  readonly stream?: { readonly bytesRead?: number; on(event: 'data', listener: () => void): unknown; destroy(): void };
}

/** Destroys sockets that cannot be used any more; the driver then connects anew by itself. */
export class Sockets {
  readonly #replacedAt = new WeakMap<object, number>();
  /** When each connection to a node of a Cluster last received something; before that, when it was made. The driver makes another one when it ends. */
  readonly #heardAt = new WeakMap<object, number>();
  /** Of each of them how much it had received when that was looked at, and since when it has been so much. */
  readonly #received = new WeakMap<object, { readonly bytes: number; readonly since: number }>();
  #isOver = false;

  /** To be called before a client connects for the first time. */
  watch(client: RedisClient): void {
    client.on('+node', (node: EventEmitter & WithStream) => {
      const hears = () => void this.#heardAt.set(node, performance.now());
      hears();
      node.on('connect', () => node.stream?.on('data', hears));
    });
  }

  /** From now on nothing is replaced: the connection is closed. */
  stop(): void {
    this.#isOver = true;
  }

  /** All sockets of a client. */
  replace(client: RedisClient): void {
    if (this.#isOver || !this.#mayReplace(client)) return;
    const nodes = 'nodes' in client ? client.nodes() : [client];
    for (const node of nodes) destroySocket(node);
    if ('nodes' in client) client.disconnect(true);
  }

  /**
   * The same after a call that was not answered. Of a Cluster only the node that serves `key`: a node that hangs must not cut
   * off the others. If the client has lost that node it sends such calls to any other one, which only helps when that one answers;
   * so it asks, over a new connection, who has the slot (`nodeOf`). Any other one that kept silent meanwhile is replaced as well: nobody else
   * does it, and all calls for lost nodes would be kept for it, as many as there are until the network is back.
   *
   * Nobody knows where a call without a key went. If it was to a node that no call with a key goes to, nobody else notices that its link is dead,
   * so of all nodes those are replaced that have kept silent since before the last such call.
   *
   * A connection stays that has heard something since the call was sent: it is not the one that kept silent. Else each of many calls that wait for
   * a new connection, or were sent to another node first, would cut it off when its own time is over. Where connecting takes long they would wait
   * for seconds, and lose their leases.
   *
   * @param sentAt when the call was sent that had no answer, on the clock of `performance`; undefined where an answer came, but a wrong one
   */
  replaceNodeOf(client: RedisClient, key: string | undefined, sentAt?: number): void {
    if (!('nodes' in client)) return this.replace(client);
    if (this.#isOver) return;
    const node = key === undefined ? undefined : nodeOf(client, key);
    if (node) {
      const hasHeard = sentAt !== undefined && this.#heardAt.get(node)! > sentAt;
      if (!hasHeard && this.#mayReplace(node)) destroySocket(node);
      return;
    }
    if (sentAt !== undefined) this.#replaceSilent(client.nodes(), sentAt);
  }

  /** From one that works an answer would have come, be it that another node has the slot. */
  #replaceSilent(nodes: readonly object[], sentAt: number): void {
    const now = performance.now();
    for (const node of nodes) {
      const bytes = (node as WithStream).stream?.bytesRead ?? 0;
      const last = this.#received.get(node);
      if (last?.bytes !== bytes) this.#received.set(node, { bytes, since: now });
      else if (last.since <= sentAt && this.#mayReplace(node)) destroySocket(node);
    }
  }

  /**
   * Connections to nodes of a Cluster that were accepted longer ago than `ms` and have not come to work. Such a node may keep silent while others
   * answer, and refer to it: then no call waits for it long enough to find that out, and the driver waits for ever.
   */
  replaceUnready(client: RedisClient, ms: number): void {
    if (this.#isOver || !('nodes' in client)) return;
    const before = performance.now() - ms;
    for (const node of client.nodes()) {
      const isUnready = (node as WithStream).status === 'connect' && this.#heardAt.get(node)! < before;
      if (isUnready && this.#mayReplace(node)) destroySocket(node);
    }
  }

  #mayReplace(client: object): boolean {
    const now = performance.now();
    if (now - (this.#replacedAt.get(client) ?? -Infinity) < REPLACED_AGAIN_MS) return false;
    this.#replacedAt.set(client, now);
    return true;
  }
}

export function destroySocket(node: unknown): void {
  (node as WithStream).stream?.destroy();
}
