import { DRAIN_MS } from './application.js';
import type { Member } from './fleet.js';
import type { Simulation } from './simulation.js';

/** Until a new process works. */
const BOOT_MS = 3_000;

/** A process is gone at once, and starts again. */
export function crash(simulation: Simulation, member: Member, downMs: number): void {
  simulation.fleet.kill(member);
  simulation.fleet.reboot(member, downMs);
  simulation.troubles.mark(member.process.name, downMs + BOOT_MS);
}

/**
 * A process that is asked to end: it drains, and is killed when that takes too long. Then it starts again. That is no trouble, neither for
 * itself, which keeps its leases until it hands them back, nor for others, which take over.
 */
export function closeInstanceOf(simulation: Simulation, member: Member, downMs: number): void {
  const { troubles, engine, patrol, configuration } = simulation;
  const wasCalm = troubles.calmSince(member.process.name) < engine.now;
  member.stoppingAt = engine.now;
  const end = () => {
    if (!member.isAlive) return;
    if (member.isClosed) {
      simulation.fleet.kill(member);
      simulation.fleet.reboot(member, downMs);
    } else crash(simulation, member, downMs);
  };
  const close = async () => {
    await member.instance?.close();
    member.isClosed = true;
    if (wasCalm) patrol.afterDrain(member);
    end();
  };
  engine.after(0, () => void close(), member.process);
  engine.after(DRAIN_MS + 3 * configuration.commandTimeoutMs, end);
}
