import { describe, expect, it } from '@jest/globals';
import { slotOf } from '../../lib/redis/keys.js';
import type { RedisClient } from '../../lib/redis/redis.client.js';
import { Sockets } from '../../lib/redis/sockets.js';

const KEY = 'dq:{jobs}:due';

/** As much of the driver's Cluster as is asked: who has the slot of the key, and the nodes that it is connected to. */
function clusterOf(owner: string, connected: readonly string[]) {
  const happened: string[] = [];
  const slots: string[][] = [];
  slots[slotOf(KEY)] = [owner];
  const nodes = connected.map((address) => {
    const [host, port] = address.split(':');
    return { options: { host, port: Number(port) }, stream: { destroy: () => happened.push(`${address} is cut off`) } };
  });
  const client = { slots, nodes: () => nodes, refreshSlotsCache: () => happened.push('asks who has the slots') };
  return { client: client as unknown as RedisClient, happened };
}

describe('after a call to a Cluster that was not answered', () => {
  it('only the node that has the key is cut off', () => {
    const { client, happened } = clusterOf('a:1', ['a:1', 'b:2']);
    new Sockets().replaceNodeOf(client, KEY);
    expect(happened).toEqual(['a:1 is cut off']);
  });

  it('a client that is connected to that node no more asks who has the slots', () => {
    const { client, happened } = clusterOf('a:1', ['b:2']);
    new Sockets().replaceNodeOf(client, KEY);
    expect(happened).toEqual(['asks who has the slots']);
  });

  it('nothing is cut off when nobody knows where the call went', () => {
    const { client, happened } = clusterOf('a:1', ['a:1']);
    new Sockets().replaceNodeOf(client, undefined);
    expect(happened).toEqual([]);
  });
});
