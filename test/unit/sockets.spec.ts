import { EventEmitter } from 'node:events';
import { performance } from 'node:perf_hooks';
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
    const stream = Object.assign(new EventEmitter(), {
      bytesRead: 100,
      destroy: () => happened.push(`${address} is cut off`),
    });
    return Object.assign(new EventEmitter(), { options: { host, port: Number(port) }, stream, status: 'ready' });
  });
  const client = Object.assign(new EventEmitter(), {
    slots,
    nodes: () => nodes,
    refreshSlotsCache: () => happened.push('asks who has the slots'),
  });
  return {
    client: client as unknown as RedisClient,
    happened,
    connects: () => client.emit('+node', nodes[0]),
    hears: () => (nodes[0]!.stream.bytesRead += 20),
    isConnected: () => nodes[0]!.emit('connect'),
    answers: () => nodes[0]!.stream.emit('data'),
    isUnready: () => (nodes[0]!.status = 'connect'),
  };
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

  it('a connection that was made after the call was sent stays, for it is not the one that kept silent', () => {
    const { client, happened, connects } = clusterOf('a:1', ['a:1']);
    const sockets = new Sockets();
    sockets.watch(client);
    const sentAt = performance.now();
    connects();
    sockets.replaceNodeOf(client, KEY, sentAt - 1);
    expect(happened).toEqual([]);
    sockets.replaceNodeOf(client, KEY, performance.now());
    expect(happened).toEqual(['a:1 is cut off']);
  });

  it('a connection that heard something since the call was sent stays, or calls that waited for it would cut it off one after the other', () => {
    const { client, happened, connects, isConnected, answers } = clusterOf('a:1', ['a:1']);
    const sockets = new Sockets();
    sockets.watch(client);
    connects();
    isConnected();
    const sentAt = performance.now();
    answers();
    sockets.replaceNodeOf(client, KEY, sentAt);
    expect(happened).toEqual([]);
    sockets.replaceNodeOf(client, KEY, performance.now());
    expect(happened).toEqual(['a:1 is cut off']);
  });

  it('others that have kept silent since before the call are cut off as well where that node is lost, or they would keep all calls', () => {
    const { client, happened, hears } = clusterOf('a:1', ['b:2', 'c:3']);
    const sockets = new Sockets();
    sockets.replaceNodeOf(client, KEY, performance.now());
    const sentAt = performance.now();
    hears();
    sockets.replaceNodeOf(client, KEY, sentAt);
    expect(happened.filter((what) => what !== 'asks who has the slots')).toEqual(['c:3 is cut off']);
  });

  it('a connection is cut off that was accepted long ago and has not come to work', () => {
    const { client, happened, connects, isUnready } = clusterOf('a:1', ['a:1', 'b:2']);
    const sockets = new Sockets();
    sockets.watch(client);
    connects();
    sockets.replaceUnready(client, -1);
    isUnready();
    sockets.replaceUnready(client, 60_000);
    expect(happened).toEqual([]);
    sockets.replaceUnready(client, -1);
    expect(happened).toEqual(['a:1 is cut off']);
  });

  it('of the nodes to one of which a call without a key went, those are cut off that have kept silent since before the last such call', () => {
    const { client, happened, hears } = clusterOf('a:1', ['a:1', 'b:2']);
    const sockets = new Sockets();
    sockets.replaceNodeOf(client, undefined);
    sockets.replaceNodeOf(client, undefined, performance.now());
    expect(happened).toEqual([]);
    hears();
    sockets.replaceNodeOf(client, undefined, performance.now());
    expect(happened).toEqual(['b:2 is cut off']);
  });
});
