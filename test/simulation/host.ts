import type { Connection } from './network.js';

/** Whatever takes connections: a server, or a Sentinel. */
export abstract class Host {
  protected readonly clients = new Set<Connection>();

  /** @param network has all connections */
  constructor(private readonly network: { forget(connection: Connection): void }) {}

  accept(connection: Connection): void {
    this.clients.add(connection);
  }

  closed(connection: Connection): void {
    if (connection.serverIsGone) return;
    connection.serverIsGone = true;
    this.clients.delete(connection);
    this.network.forget(connection);
  }

  /** All of them are told. */
  protected dropAll(): void {
    for (const client of this.clients) client.reset(false);
  }
}
