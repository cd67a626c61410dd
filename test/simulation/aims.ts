import { crash } from './ending.js';
import type { Member } from './fleet.js';
import type { Connection, Took } from './network.js';
import type { Simulation } from './simulation.js';

/** How often an adversary looks. */
const EVERY_MS = 20;
/** From how far a late copy of a step comes: the sender has given it up by then, and the server would still take it. */
const GIVEN_UP = 1.05;
const STILL_TAKEN = 1.95;
const MOST_MS = 20_000;

/** Of all moments at which the bytes of a step could arrive after its sender has given them up: the first one when a job is due. */
export function aimLateStep(simulation: Simulation, connection: Connection, took: Took): void {
  const { engine, configuration } = simulation;
  const { commandTimeoutMs } = configuration;
  const until = engine.now + commandTimeoutMs * STILL_TAKEN;
  const letGo = connection.holdUp(took);
  engine.after(commandTimeoutMs * GIVEN_UP, () => atNextDue(simulation, until, letGo));
}

/** When the next job of any shard becomes due, before whoever sleeps until then can have heard of it. */
function atNextDue(simulation: Simulation, until: number, run: () => void): void {
  const { engine } = simulation;
  const left = simulation.untilNextDue();
  if (engine.now >= until || left <= 0) return run();
  if (left <= EVERY_MS) engine.after(left, run);
  else engine.after(EVERY_MS, () => atNextDue(simulation, until, run));
}

/** Of all moments at which a frozen process could wake: when another one has begun what it ran. @param frozen called while it is */
export function aimFreeze(simulation: Simulation, member: Member, took: Took, frozen: (forMs: number) => void): void {
  const { engine } = simulation;
  const until = engine.now + MOST_MS + 3 * simulation.configuration.leaseMs;
  const look = () => {
    if (engine.now >= until || !member.isAlive || member.isStopping) return;
    const held = new Set([...member.unfinished].map(({ id }) => id));
    const isTaken = (other: Member) => other !== member && [...other.unfinished].some(({ id }) => held.has(id));
    if (held.size > 0 && simulation.fleet.living.some(isTaken)) return took();
    if (held.size > 0) {
      member.process.freeze(EVERY_MS + 1);
      frozen(EVERY_MS);
    }
    engine.after(EVERY_MS, look);
  };
  look();
}

/** Of all moments at which a process could die: when its claim has taken jobs, and nobody there knows it. */
export function aimCrash(simulation: Simulation, member: Member, downMs: number, took: Took): void {
  const { engine, oracle } = simulation;
  const until = engine.now + MOST_MS;
  oracle.onClaim(member, () => {
    if (engine.now >= until) return;
    engine.after(0, () => {
      if (!member.isAlive || member.isStopping) return;
      crash(simulation, member, downMs);
      took();
    });
  });
}
