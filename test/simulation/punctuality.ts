import type { Member } from './fleet.js';
import type { JobHistory } from './history.js';
import { TOLD_AGAIN_MS } from './limited-store.js';
import { longestBetweenTakesMs } from './pullers.js';
import { isPlain, queueOf, TAKEN } from './queues.js';
import type { Simulation } from './simulation.js';

/** After trouble: how long until who had it must be as punctual as ever. The role of a dead leader runs out in that time. */
const RECOVERED_MS = 6_000;
/** While a job of the quarantine has a process for itself, due jobs wait; see docs/decisions/0005-quarantine.md. */
const LONGEST_PAUSE_MS = 4_000;
/** The longest sleep of a worker whom no wake-up reaches; see lib/worker/poll-schedule.ts. */
const REREAD_MS = 5_000;
/** How late a worker may be that stands in for the leader, where few others wait. */
const BACKUP_MS = 250;
const LOOSE_MS = 300;
/** How long an answer takes, in the latency of the network. */
const TURN = 3;
/** When a worker that drains tells that it is not the leader any more; see lib/worker/step-planner.ts. */
const TELLS_AFTER_MS = 20;

/** How long a job may wait, and how long it has waited through nobody's fault but the library's. */
export interface Wait {
  readonly waitedMs: number;
  readonly allowedMs: number;
}

/**
 * A job that is due on a healthy fleet starts at once: its leader knows when it is due, or is told. On a fleet with trouble it starts as
 * soon as any healthy worker polls. Whoever is full, cannot be reached or has been told to wait does not count.
 */
export class Punctuality {
  /** When a process paused for the quarantine for the last time, or may have. */
  quarantineAt = -Infinity;
  /**
   * A healthy fleet is late by a few round trips. A worker with fewer slots than shards asks some of them after others, each of which may have
   * nothing for the slot.
   */
  readonly #promptMs: number;

  constructor(private readonly simulation: Simulation) {
    const { latency, shards, concurrency } = simulation.configuration;
    const turns = Math.ceil(shards / concurrency) - 1;
    this.#promptMs = 30 + (25 + TURN * turns) * latency;
  }

  /** The worst of what can be said of one job, now. @param lateMs by how much it is overdue */
  waitOf(dueKey: string, job: JobHistory, lateMs: number): Wait {
    const { engine, oracle, troubles, fleet } = this.simulation;
    const queue = queueOf(dueKey);
    // It alone was told when the job is due: the others find it when they look by themselves.
    const isSlowlyLed = oracle.slowLeader.hasLedSince(dueKey, engine.now - lateMs);
    const rereadMs = this.#rereadMs(queue);
    if (!this.simulation.isSimple) return this.#looselyWaits(dueKey, job, lateMs, isSlowlyLed ? rereadMs : 0);
    const least = Math.max(
      job.dueSetAt,
      oracle.lastRollbackAt + RECOVERED_MS,
      oracle.limits.mayStartSince(dueKey, job.id),
    );
    const pauseMs = this.quarantineAt + LONGEST_PAUSE_MS > engine.now ? LONGEST_PAUSE_MS : 0;
    const free = fleet.living.filter(
      (member) => !member.isStopping && !member.isBroken && member.queues.includes(queue),
    );
    const waited = (since: number) => Math.min(lateMs, engine.now - Math.max(least, since));
    // Whoever is free is woken where the one who works leaves behind what is overdue for so long.
    const helpMs = oracle.backlogs.wasThereSince(dueKey, engine.now - lateMs) ? TOLD_AGAIN_MS : 0;
    const freeSince = Math.min(...free.map((member) => member.freeSince(queue)));
    const prompt = {
      // Who takes looks by itself from time to time.
      waitedMs:
        queue === TAKEN || isSlowlyLed ? -Infinity : waited(Math.max(freeSince, troubles.calmSince() + RECOVERED_MS)),
      allowedMs: (this.#hasLeader(lateMs) ? this.#promptMs : BACKUP_MS + this.#promptMs) + helpMs + pauseMs,
    };
    const healthySince = Math.min(...free.map((member) => this.#healthySince(member, queue)));
    const polled = { waitedMs: waited(healthySince), allowedMs: rereadMs + BACKUP_MS + this.#promptMs + pauseMs };
    return polled.waitedMs > polled.allowedMs ? polled : prompt;
  }

  #rereadMs(queue: string): number {
    const { configuration } = this.simulation;
    return queue === TAKEN ? longestBetweenTakesMs(configuration) : Math.min(REREAD_MS, configuration.leaseMs / 3);
  }

  /** Excused: a leader that has just begun to drain, and has not said so. */
  #hasLeader(lateMs: number): boolean {
    const { engine, fleet } = this.simulation;
    const dueAt = engine.now - lateMs;
    return !fleet.living.some(
      ({ stoppingAt }) => dueAt < stoppingAt + TELLS_AFTER_MS + this.#promptMs && stoppingAt < engine.now,
    );
  }

  /** In a world of many servers and builds nobody counts on a leader. */
  #looselyWaits(dueKey: string, job: JobHistory, lateMs: number, rereadMs: number): Wait {
    const { engine, oracle, troubles, fleet, configuration } = this.simulation;
    const queue = queueOf(dueKey);
    const quiet = Math.max(troubles.calmSince(), oracle.lastRollbackAt) + RECOVERED_MS;
    const members = fleet.living.filter((one) => !one.isStopping && !one.isBroken && one.queues.includes(queue));
    const free = isPlain(queue) ? Math.min(...members.map((one) => one.freeSince(queue))) : Infinity;
    const mayStart = oracle.limits.mayStartSince(dueKey, job.id);
    const since = Math.max(job.dueSetAt, quiet, this.quarantineAt + LONGEST_PAUSE_MS, free, mayStart);
    const allowedMs = LOOSE_MS * (1 + configuration.latency) + rereadMs;
    return { waitedMs: Math.min(lateMs, engine.now - since), allowedMs };
  }

  #healthySince(member: Member, queue: string): number {
    return Math.max(this.simulation.troubles.calmSince(member.process.name) + RECOVERED_MS, member.freeSince(queue));
  }
}
