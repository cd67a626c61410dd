import type { Redis } from 'ioredis';
import { wakeChannel } from '../../lib/redis/keys.js';
import type { World } from '../helpers/world.js';
import type { Peer } from './peer.js';
import type { Shard } from './shard.js';

/** Hears all wake-ups of a world. */
export class Ear {
  readonly #heard: { channel: string; message: string }[] = [];
  readonly #marks = new Map<string, () => void>();
  #marked = 0;

  private constructor(
    private readonly world: World,
    private readonly subscriber: Redis,
    private readonly markChannel: string,
  ) {
    subscriber.on('pmessage', (_pattern: string, channel: string, message: string) => {
      if (channel === markChannel) this.#marks.get(message)?.();
      else this.#heard.push({ channel, message });
    });
  }

  static async open(world: World): Promise<Ear> {
    const subscriber = world.redis.duplicate();
    await subscriber.connect();
    await subscriber.psubscribe(wakeChannel(world.prefix, '*'));
    return new Ear(world, subscriber, wakeChannel(world.prefix, 'mark'));
  }

  /** The peers that were woken for this shard since the last call, in order. Waits for a mark behind all that was published before. */
  async woken(shard: Shard, peers: Readonly<Record<string, Peer>>): Promise<string[]> {
    const mark = String(this.#marked++);
    const seen = new Promise<void>((resolve) => this.#marks.set(mark, resolve));
    await this.world.redis.publish(this.markChannel, mark);
    await seen;
    const names = new Map(Object.entries(peers).map(([name, peer]) => [peer.channel, name]));
    const mine = this.#heard.splice(0).filter(({ message }) => message === shard.keys.due);
    return mine.map(({ channel }) => names.get(channel) ?? channel);
  }

  close(): void {
    this.subscriber.disconnect();
  }
}
