import { AsyncLocalStorage } from 'node:async_hooks';
import type { ClientProxy } from '@nestjs/microservices';
import type { RelayHeaders } from './relay-headers.js';

/** The headers of the message that is being sent. A client makes its packet only once it is connected. */
const current = new AsyncLocalStorage<RelayHeaders>();
const prepared = new WeakSet<object>();

interface Dispatching {
  onDispatchHook?: (packet: Packet) => void;
  setOnDispatchHook?(hook: (packet: Packet) => void): void;
}

interface Packet {
  metadata?: Record<string, string>;
}

/**
 * From now on the client's packets carry what `withMetadata()` says. A hook that the application has set before stays in
 * place, around this one. Nest 11 has no hooks: nothing is carried there.
 */
export function prepareMetadata(client: ClientProxy): void {
  const dispatching = client as unknown as Dispatching;
  if (typeof dispatching.setOnDispatchHook !== 'function' || prepared.has(client)) return;
  prepared.add(client);
  const before = dispatching.onDispatchHook;
  dispatching.setOnDispatchHook((packet) => {
    before?.(packet);
    const headers = current.getStore();
    if (headers) packet.metadata = { ...headers, ...packet.metadata };
  });
}

export function withMetadata<T>(headers: RelayHeaders, call: () => T): T {
  return current.run(headers, call);
}
