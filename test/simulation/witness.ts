import type { Reply } from '../../lib/memory/memory.replies.js';
import type { Connection } from './network.js';

/** One call of a script, as the server runs it. */
export interface ScriptCall {
  readonly connection: Connection;
  readonly source: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** Writes are lost by a server that starts again from its disk, or with a replica that becomes the master. */
export type Rollback = 'restart' | 'failover';

/** Whether a server has this queue, or this very shard of it. */
export type Concerns = (queue: string, shard?: string) => boolean;

/** Sees what happens inside the server: the truth, and not the last word of a client. */
export interface ServerWitness {
  scriptBegins(call: ScriptCall): void;
  /** @param reply undefined when the script failed */
  scriptEnds(reply: Reply | undefined): void;
  /** Each command of each script, before it runs. */
  commandRuns(name: string, args: readonly string[]): void;
  /** Of workers that rest: a process read whether something has changed. */
  looks?(process: object): void;
  /** Only so many writes are left. */
  rolledBack(length: number, lost: number, why: Rollback, concerns: Concerns): void;
}

/** One command of a client, and what became of it. */
export interface ServedCall {
  /** The server's clock, ms. */
  readonly at: number;
  readonly args: readonly string[];
  /** A buffer: an error, as it is sent. */
  readonly reply: Reply | Buffer;
}

/** Of a server that nobody looks at any more. */
export const NOBODY: ServerWitness = {
  scriptBegins: () => {},
  scriptEnds: () => {},
  commandRuns: () => {},
  rolledBack: () => {},
};

/** Tells several witnesses, in their order. Each command of each script comes here, so it asks nobody who does nothing. */
export function witnesses(...all: readonly ServerWitness[]): ServerWitness {
  const hearing = all.filter((one) => one.commandRuns !== NOBODY.commandRuns);
  return {
    scriptBegins: (call) => all.forEach((one) => one.scriptBegins(call)),
    scriptEnds: (reply) => all.forEach((one) => one.scriptEnds(reply)),
    commandRuns: (name, args) => {
      for (const one of hearing) one.commandRuns(name, args);
    },
    looks: (process) => all.forEach((one) => one.looks?.(process)),
    rolledBack: (length, lost, why, concerns) => all.forEach((one) => one.rolledBack(length, lost, why, concerns)),
  };
}
