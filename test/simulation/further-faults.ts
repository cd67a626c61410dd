import type { KindForGood } from './fault-kinds.js';
import type { Inject, Injection } from './injection.js';
import { Random } from './random.js';
import { ALL, CLOCK } from './troubles.js';

/** An old master goes on for at most so long beside the new one. */
const LONGEST_SPLIT_MS = 8_000;

type Kind =
  | 'killedOne'
  | 'refused'
  | 'inPieces'
  | 'messagesLost'
  | 'splitBrain'
  | 'replicasLag'
  | 'slotMoves'
  | 'nodeFails'
  | 'nodeClockSteps'
  | 'busy'
  | 'diskFull'
  | 'tooManyClients'
  | KindForGood;

export const FURTHER_INJECTIONS: Readonly<Record<Kind, Inject>> = {
  // CLIENT KILL, or a server that drops a client which reads too slowly.
  killedOne({ fault, connections, took, troubles }) {
    const connection = connections[Math.floor(fault.a * connections.length)];
    if (!connection) return;
    connection.reset(false);
    troubles(0);
    took();
  },
  refused({ simulation, fault, member, connections, took, troubles }) {
    const ms = 300 + fault.a * 6_000;
    for (const connection of connections) connection.reset(fault.b < 0.5);
    simulation.network.refused.set(member.process.name, { until: simulation.engine.now + ms, took });
    troubles(ms);
  },
  // TCP keeps the order of bytes, and knows nothing of commands and answers.
  inPieces({ simulation, fault, connections, took }) {
    for (const connection of connections) {
      const pieces = { took, atMost: 1 + Math.floor(fault.b * 200) };
      connection.inPieces = pieces;
      simulation.engine.after(500 + 3_000 * fault.a, () => (connection.inPieces = undefined));
    }
  },
  // The subscriber goes on, and hears nothing: Redis drops messages of slow clients, and a proxy may drop them all.
  messagesLost({ simulation, fault, connections, took, troubles }) {
    const ms = 500 + 5_000 * fault.a;
    for (const connection of connections) {
      if (connection.isSubscriber) connection.messagesLost = { until: simulation.engine.now + ms, took };
    }
    troubles(ms);
  },
  splitBrain(injection) {
    const { simulation, node, fault, took, allTroubles } = injection;
    const ms = 200 + LONGEST_SPLIT_MS * fault.a;
    const unreplicated = Math.floor(fault.c * 40);
    if (simulation.sentinels) {
      if (!simulation.sentinels.change(ms, unreplicated, fault.b)) return;
    } else if (simulation.cluster) {
      if (!simulation.cluster.splitBrain(node, simulation.keptByReplica(node, unreplicated), ms)) return;
    } else if (simulation.server.isListening) simulation.splitBrain(ms, unreplicated);
    else return;
    allTroubles(ms + 3_000);
    took();
  },
  // Writes that are confirmed by the master alone are lost with it, and WAIT is short of replicas.
  replicasLag({ node, fault, took }) {
    node.replicas?.stall(500 + 8_000 * fault.a, fault.b, took);
  },
  slotMoves({ simulation, fault, took, allTroubles }) {
    const { cluster, shardBases, seed } = simulation;
    const base = shardBases[Math.floor(fault.b * shardBases.length)]!;
    const ms = 20 + 3_000 * fault.a * fault.a;
    if (cluster?.migrate(base, fault.c, ms, new Random(seed, `slots of ${fault.n}`), took)) allTroubles(ms + 1_000);
  },
  // Its replica takes over; sometimes it lives all the time, and takes writes that nobody will see.
  nodeFails({ simulation, node, fault, took, allTroubles }) {
    const ms = 300 + 4_000 * fault.a * fault.a;
    const keep = simulation.keptByReplica(node, Math.floor(fault.b * 40));
    const goesOn = fault.b < 0.4;
    if (simulation.cluster?.failOver(node, keep, ms, goesOn, took)) allTroubles(2 * ms + 3_000);
  },
  // Its shards go by it, and those of other nodes do not. Two leases later it is right again.
  nodeClockSteps({ simulation, node, fault, took }) {
    const { leaseMs } = simulation.configuration;
    const most = fault.b < 0.3 ? 500 : fault.b < 0.7 ? leaseMs : 120_000;
    // Where the number is, among those that choose this node.
    const part = (fault.c * simulation.nodes.length) % 1;
    const ms = Math.floor((fault.a < 0.5 ? 1 : -1) * most * part);
    const forMs = 2 * leaseMs + 3_000 * part;
    if (simulation.clocks.step(node, ms, forMs, took)) simulation.troubles.mark(CLOCK, forMs + 4 * leaseMs);
  },
  busy(injection) {
    refuse(injection, 'busy');
  },
  diskFull(injection) {
    refuse(injection, 'diskFull');
  },
  tooManyClients({ simulation, fault, member, connections, took, troubles }) {
    const ms = 300 + fault.a * 4_000;
    for (const connection of connections) connection.reset(true);
    simulation.network.tooMany.set(member.process.name, { until: simulation.engine.now + ms, took });
    troubles(ms);
  },
  goneForGood(injection) {
    const { simulation, member, took } = injection;
    broken(injection);
    simulation.fleet.kill(member);
    took();
  },
  frozenForGood(injection) {
    const { member, took } = injection;
    broken(injection);
    member.process.freeze(FOR_GOOD_MS);
    took();
  },
  cutOffForGood(injection) {
    const { simulation, member, connections, took } = injection;
    broken(injection);
    for (const connection of connections) connection.isHalfOpen = took;
    simulation.network.cutOff.set(member.process.name, { until: Infinity, took });
  },
  // It connects anew, and nothing of what it then sends arrives.
  halfOpenForGood(injection) {
    const { simulation, member, connections, took } = injection;
    broken(injection);
    for (const connection of connections) connection.isHalfOpen = took;
    simulation.network.halfOpen.set(member.process.name, took);
  },
  // It is connected to a server that was a master once.
  readOnlyForGood(injection) {
    const { simulation, member, took } = injection;
    broken(injection);
    for (const node of simulation.nodes) node.readOnlyFor.set(member.process.name, took);
  },
  slowForGood(injection) {
    const { simulation, member, connections, took } = injection;
    broken(injection);
    simulation.network.slow.set(member.process.name, took);
    for (const connection of connections) {
      connection.slowness = 200;
      connection.slowed = took;
    }
  },
};

const FOR_GOOD_MS = 1e12;

/** The rules hold for the others, as soon as what it held is theirs. */
function broken({ simulation, member, fault }: Injection): void {
  const { troubles, configuration, engine } = simulation;
  member.brokenAt = engine.now;
  troubles.markForGood(member.process.name);
  troubles.mark(ALL, 5_000 + 2 * configuration.leaseMs + 3 * configuration.commandTimeoutMs);
  if (fault.replacedAfterMs !== undefined) engine.after(fault.replacedAfterMs, () => simulation.fleet.replace(member));
}

function refuse({ node, fault, took, allTroubles }: Injection, kind: 'busy' | 'diskFull'): void {
  const ms = 300 + fault.a * 4_000;
  node.refuse(kind, ms, took);
  allTroubles(ms);
}
