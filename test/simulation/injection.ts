import type { Member } from './fleet.js';
import type { Connection, Took } from './network.js';
import type { Fault } from './plan.js';
import type { Server } from './server.js';
import type { Simulation } from './simulation.js';

/** What a fault is given to work with. */
export interface Injection {
  readonly simulation: Simulation;
  readonly fault: Fault;
  readonly member: Member;
  /** The server, or the node of a Cluster, that it concerns. */
  readonly node: Server;
  readonly connections: readonly Connection[];
  /** To be called when it takes effect. */
  readonly took: Took;
  /** Something may be wrong with this process for so long, and while its connections are made anew. */
  readonly troubles: (forMs: number) => void;
  /** The same of all processes. */
  readonly allTroubles: (forMs: number) => void;
}

export type Inject = (injection: Injection) => void;
