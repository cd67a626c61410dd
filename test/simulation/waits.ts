import type { Engine } from './engine.js';
import type { Connection } from './network.js';
import type { Disk } from './disk.js';
import type { Replicas } from './replicas.js';

const LOOK_EVERY_MS = 1;
const FOR_EVER_MS = 60_000;

/** What WAIT and WAITAOF need of their server. */
export interface WaitingServer {
  readonly disk: Disk;
  readonly replicas: Replicas | undefined;
  readonly isListening: boolean;
}

/** A command that holds up its connection until replicas, or the disk, have what the connection has written. */
export class Waits {
  constructor(
    private readonly engine: Engine,
    private readonly server: WaitingServer,
    private readonly answer: (connection: Connection, reply: number | [number, number]) => void,
  ) {}

  begin(connection: Connection, name: string, args: readonly string[]): void {
    const [first, second, third] = args.slice(1).map(Number) as [number, number, number];
    const isOfDisk = name === 'WAITAOF';
    const timeoutMs = (isOfDisk ? third : second) || FOR_EVER_MS;
    const until = this.engine.now + timeoutMs;
    connection.isWaiting = true;
    const look = () => {
      if (connection.serverIsGone || !this.server.isListening) return;
      const { disk, replicas } = this.server;
      const having = replicas?.having(connection.written) ?? 0;
      const local = disk.synced >= connection.written ? 1 : 0;
      const isReached = isOfDisk ? local >= first && having >= second : having >= first;
      if (!isReached && this.engine.now < until) return void this.engine.after(LOOK_EVERY_MS, look);
      connection.isWaiting = false;
      this.answer(connection, isOfDisk ? [local, having] : having);
    };
    look();
  }
}
