import { aimCrash, aimFreeze, aimLateStep } from './aims.js';
import { DAMAGE_INJECTIONS } from './damage.js';
import { closeInstanceOf, crash } from './ending.js';
import { FURTHER_INJECTIONS } from './further-faults.js';
import { REFUSAL_INJECTIONS } from './refusal-faults.js';
import { SENTINEL_INJECTIONS } from './sentinel-faults.js';
import type { Inject, Injection } from './injection.js';
import { KINDS_FOR_GOOD } from './fault-kinds.js';
import type { FaultKind } from './fault-kinds.js';
import type { Connection } from './network.js';
import type { Fault } from './plan.js';
import type { Simulation } from './simulation.js';
import { ALL, CLOCK } from './troubles.js';
import type { Rollback } from './witness.js';

/** From how far a late copy of a step comes: the sender has given it up by then. */
const GIVEN_UP = 1.05;
/** How long a fault waits for a step, so that it is over when the trouble is: where a connection is hardly used the next one may come hours later. */
const STEP_WITHIN_MS = 4_000;

const INJECTIONS: Readonly<Record<FaultKind, Inject>> = {
  ...FURTHER_INJECTIONS,
  ...REFUSAL_INJECTIONS,
  ...SENTINEL_INJECTIONS,
  ...DAMAGE_INJECTIONS,
  crash({ simulation, fault, member, took }) {
    crash(simulation, member, fault.a * 4_000);
    took();
  },
  terminate({ simulation, fault, member, took }) {
    closeInstanceOf(simulation, member, 200 + fault.a * 2_000);
    took();
  },
  freeze({ simulation, fault, member, took, troubles }) {
    const leases = (fault.a < 0.5 ? 0.6 : 2) * (0.2 + fault.b);
    const ms = leases * simulation.configuration.leaseMs;
    member.process.freeze(ms);
    troubles(ms);
    took();
  },
  aimedCrash({ simulation, fault, member, took }) {
    aimCrash(simulation, member, fault.a * 4_000, took);
  },
  aimedFreeze({ simulation, member, took, troubles }) {
    aimFreeze(simulation, member, took, troubles);
  },
  wallClockJump({ fault, member, took }) {
    member.process.wallClockError += Math.floor((fault.a - 0.5) * 100_000);
    took();
  },
  reset({ fault, connections, took, troubles }) {
    for (const connection of connections) connection.reset(fault.a < 0.5);
    troubles(0);
    if (connections.length > 0) took();
  },
  lostReply({ fault, connections, took, troubles }) {
    for (const connection of commandsOf(connections)) {
      connection.lostReplies = 1 + Math.floor(fault.a * 2);
      connection.replyLost = took;
    }
    troubles(3_000);
  },
  requestHeld({ simulation, fault, connections, took, troubles }) {
    const ms = simulation.configuration.commandTimeoutMs * (0.3 + 3 * fault.a);
    for (const connection of commandsOf(connections)) connection.upHeld = { until: simulation.engine.now + ms, took };
    troubles(ms);
  },
  replyHeld({ simulation, fault, connections, took, troubles }) {
    const ms = simulation.configuration.commandTimeoutMs * (0.3 + 3 * fault.a);
    for (const connection of commandsOf(connections)) connection.downHeld = { until: simulation.engine.now + ms, took };
    troubles(ms);
  },
  // The bytes of the next step stay somewhere, while their process gives them up and sends the step again.
  lateStep({ simulation, fault, connections, took, troubles }) {
    const { commandTimeoutMs } = simulation.configuration;
    const ms = commandTimeoutMs * (GIVEN_UP + 3 * fault.a);
    const hold = (connection: Connection) => (connection.upHeld = { until: simulation.engine.now + ms, took });
    atNextStep(simulation, connections, hold);
    troubles(5_000 + 4 * commandTimeoutMs);
  },
  // The same by an adversary: of all moments at which they could arrive, the first one when a job is due.
  aimedLateStep({ simulation, connections, took, troubles }) {
    const { commandTimeoutMs } = simulation.configuration;
    atNextStep(simulation, connections, (one) => aimLateStep(simulation, one, took));
    troubles(5_000 + 4 * commandTimeoutMs);
  },
  halfOpen({ simulation, connections, took, troubles }) {
    for (const connection of connections) connection.isHalfOpen = took;
    troubles(10_000 + simulation.configuration.commandTimeoutMs);
  },
  halfOpenOne({ simulation, fault, connections, took, troubles }) {
    const connection = connections[Math.floor(fault.a * connections.length)];
    if (!connection) return;
    connection.isHalfOpen = took;
    troubles(10_000 + simulation.configuration.commandTimeoutMs);
  },
  cutOff({ simulation, fault, member, connections, took, troubles }) {
    const ms = 500 + fault.a * 2 * simulation.configuration.leaseMs;
    for (const connection of connections) connection.isHalfOpen = took;
    simulation.network.cutOff.set(member.process.name, { until: simulation.engine.now + ms, took });
    troubles(ms + 15_000);
  },
  slow({ simulation, fault, connections, took, troubles }) {
    for (const connection of connections) {
      connection.slowness = 200;
      connection.slowed = took;
      simulation.engine.after(3_000 * fault.a, () => (connection.slowness = 1));
    }
    troubles(3_000);
  },
  deaf({ connections, took, troubles }) {
    const subscribers = connections.filter(({ isSubscriber }) => isSubscriber);
    for (const connection of subscribers) connection.reset(true);
    troubles(0);
    if (subscribers.length > 0) took();
  },
  serverPause({ simulation, node, fault, took, allTroubles }) {
    const ms = fault.a * 2 * simulation.configuration.commandTimeoutMs;
    node.refuse('paused', ms, took);
    allTroubles(ms);
  },
  restart(injection) {
    restart(injection, injection.node.disk.afterRestart, 'restart');
  },
  failover(injection) {
    restart(
      injection,
      injection.simulation.keptByReplica(injection.node, Math.floor(injection.fault.c * 40)),
      'failover',
    );
  },
  full({ node, fault, took, allTroubles }) {
    node.refuse('full', 500 + fault.a * 4_000, took);
    allTroubles(5_000);
  },
  readOnly({ node, fault, took, allTroubles }) {
    node.refuse('readOnly', 300 + fault.a * 3_000, took);
    allTroubles(5_000);
  },
  scriptsForgotten({ node, took }) {
    node.forgetScripts(took);
  },
  serverClockJump({ simulation, fault, took }) {
    const { leaseMs } = simulation.configuration;
    const most = fault.b < 0.3 ? 500 : fault.b < 0.7 ? leaseMs : 120_000;
    const ms = Math.floor((fault.a < 0.5 ? 1 : -1) * most * fault.c);
    simulation.clocks.moveAll(ms);
    simulation.troubles.mark(CLOCK, Math.min(Math.abs(ms), 2 * leaseMs) + 2 * leaseMs);
    took();
  },
  // The second one while what the first one spoilt has not settled.
  serverClockJumpsTwice({ simulation, fault, took }) {
    const { leaseMs } = simulation.configuration;
    simulation.clocks.moveAll(Math.floor((0.6 + fault.a) * leaseMs));
    simulation.engine.after(0.4 * fault.b * leaseMs, () => {
      simulation.clocks.moveAll(Math.floor((0.6 + 1.5 * fault.c) * leaseMs));
      took();
    });
    simulation.troubles.mark(CLOCK, 5 * leaseMs);
  },
};

/** Lets one fault of the plan happen, to a process that lives. */
export function inject(simulation: Simulation, fault: Fault): void {
  const isForGood = (KINDS_FOR_GOOD as readonly string[]).includes(fault.kind);
  const living = simulation.fleet.living.filter(
    ({ isStopping, isBroken, role }) => !isStopping && !isBroken && (!isForGood || role === 'worker'),
  );
  const member = living[Math.floor(fault.who * living.length)];
  // One worker is always spared.
  if (!member || (isForGood && living.length < 2)) return;
  simulation.engine.trace('fault', fault.kind, member.id);
  simulation.injects(fault);
  // Until a dead connection is found out and another one is made.
  const reconnectMs = 2 * simulation.configuration.commandTimeoutMs + 4_000;
  INJECTIONS[fault.kind]({
    simulation,
    fault,
    member,
    node: simulation.nodes[Math.floor(fault.c * simulation.nodes.length)]!,
    connections: simulation.network.of(member.process),
    took: () => simulation.tookEffect(fault),
    troubles: (forMs) => simulation.troubles.mark(member.process.name, forMs + reconnectMs),
    allTroubles: (forMs) => simulation.troubles.mark(ALL, forMs + reconnectMs),
  });
}

function commandsOf(connections: readonly Connection[]): Connection[] {
  return connections.filter(({ isSubscriber }) => !isSubscriber);
}

function atNextStep(
  { engine }: Simulation,
  connections: readonly Connection[],
  happens: (connection: Connection) => void,
): void {
  const until = engine.now + STEP_WITHIN_MS;
  for (const connection of commandsOf(connections)) {
    connection.nextStep = (one) => {
      if (engine.now <= until) happens(one);
    };
  }
}

function restart({ simulation, node, fault, took, allTroubles }: Injection, keep: number, why: Rollback): void {
  if (!node.isListening || simulation.cluster?.isBusy) return;
  const [downMs, loadMs] = [fault.a * 3_000, fault.b * 1_000];
  node.restart(downMs, loadMs, keep, why, took);
  allTroubles(downMs + loadMs + 3_000);
  took();
}
