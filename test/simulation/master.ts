import type { Reply } from '../../lib/memory/memory.replies.js';
import type { Connection } from './network.js';
import type { Server } from './server.js';

/** What the rules and the plan ask of the server, be it one or several. */
export interface Master {
  /** Reads what is stored, and no witness hears of it. */
  peek(name: string, args: readonly string[]): Reply;
  /** How many writes there were. */
  readonly disk: { readonly length: number };
  readonly isListening: boolean;
  readonly commands: number;
  /** @param key of a Cluster: by the clock of the node that has it */
  clockMs(key?: string): number;
  sync(): void;
}

/** The Cluster that a server is a node of. */
export interface Union extends Master {
  /** The number of one more write. */
  counted(): number;
  holds(server: Server, queue: string, shard?: string): boolean;
  publish(from: Server, channel: string, message: string): void;
  redirect(node: Server, connection: Connection, name: string, args: readonly string[]): Buffer | undefined;
  clusterCommand(connection: Connection, args: readonly string[]): Buffer;
}
