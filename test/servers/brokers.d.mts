import type { Tether } from '../../tools/tether.mjs';

export type BrokerName = 'rabbitmq-server' | 'nats-server' | 'mosquitto';

export interface Broker {
  readonly port: number;
  /** Sends a signal that ends it, and waits for the end. SIGKILL by default. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Ends it by SIGKILL if it still runs, and starts it again, on the same port and over the same folder. */
  restart(): Promise<void>;
}

/** Installs the packages that are missing, which only root on Debian or Ubuntu can. */
export function obtainBrokers(): Promise<void>;
export function startBroker(tether: Tether, name: BrokerName): Promise<Broker>;
