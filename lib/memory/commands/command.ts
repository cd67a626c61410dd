import type { Keyspace } from '../memory.keyspace.js';
import type { Reply } from '../memory.replies.js';

export interface CommandContext {
  readonly keys: Keyspace;
  /** The store's clock, ms. */
  readonly now: number;
  /** @returns how many sessions heard it */
  publish(channel: string, message: string): number;
}

export interface Command {
  /** Fewest and most arguments; without `most` any number more. */
  readonly least: number;
  readonly most?: number;
  run(context: CommandContext, args: readonly string[]): Reply;
}
