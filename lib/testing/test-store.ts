/** What the harness needs of the store under an application, besides the library's own calls. */
export interface TestStore {
  /** Whether its clock moves only when it is moved. */
  readonly standsStill: boolean;
  /** Epoch ms by which due times, leases and ages count, as far as known here. */
  serverNow(): number;
  /** Epoch ms including all that was moved; the same where the store's clock can be set. */
  now(): number;
  /** Opens what `work` needs of its own, and closes it. */
  use<T>(work: () => Promise<T>): Promise<T>;
  command(name: string, ...args: string[]): Promise<unknown>;
  /** Lets `ms` pass for all that is stored in these shards. Back, when it is negative. */
  move(ms: number, shards: readonly MovedShard[]): Promise<void>;
}

/** One shard whose time is moved. */
export interface MovedShard {
  /** All of its keys, in the order of lib/redis/keys.ts. */
  readonly keys: readonly string[];
  /** Claims whose leases do not run out meanwhile, because a worker that lives renews them. */
  readonly kept: readonly number[];
}
