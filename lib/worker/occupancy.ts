import { performance } from '../time-and-randomness.js';
import type { Charge, IsolationGate, IsolationMember } from './isolation/isolation-gate.js';
import type { Reservation, SlotPool, SlotUser } from './slot-pool.js';

/** Jobs that one step on its way may bring. */
export class Ask implements Reservation {
  held = true;
  /** The mark by which the gate of the process knows this step. */
  mark = 0;

  constructor(
    readonly user: SlotUser,
    readonly slots: number,
    readonly quarantined: boolean,
    readonly at: number,
  ) {}
}

/**
 * How much runs in one shard. Each change here also changes, in the same call, the queue (its slots) and the process
 * (the gate), so that the three counts always agree.
 */
export class Occupancy {
  /** Jobs that hold a slot. */
  held = 0;
  /** Jobs that steps on their way may bring. */
  wanted = 0;
  /** Steps on their way. */
  stepsOut = 0;
  /** Runs that are over while a change of their lease is still on its way. */
  ending = 0;

  constructor(
    private readonly worker: IsolationMember & SlotUser,
    private readonly pool: SlotPool,
    private readonly gate: IsolationGate,
  ) {
    pool.join(worker);
  }

  /** Nothing runs or is on its way. */
  get isEmpty(): boolean {
    return this.held + this.ending + this.stepsOut === 0;
  }

  /** With `batch`: slots that this shard may fill. */
  get batches(): number {
    return this.pool.batchesOf(this.worker);
  }

  /** A step leaves that may bring so many jobs. */
  ask(slots: number, quarantined: boolean, now: number): Ask {
    const ask = new Ask(this.worker, slots, quarantined, now);
    this.pool.reserve(ask);
    this.stepsOut++;
    this.wanted += slots;
    // Last: the worker whose job was alone in the process hears of this step from the gate, and may plan one of its own at once.
    // If it shares the slots, these are taken.
    if (slots > 0) ask.mark = this.gate.asking(this.worker, slots, quarantined);
    return ask;
  }

  /** The step was answered, or failed. `brought` reports its jobs. */
  arrived({ slots }: Ask): void {
    this.stepsOut--;
    this.wanted -= slots;
  }

  /** @returns how many of the jobs that it brought may start: after a long silence perhaps not all; their slots are taken */
  brought(ask: Ask, jobs: number, charge: Charge): number {
    const starting = this.pool.answered(ask, jobs);
    // First: a worker that the gate tells may plan the next step at once, and these slots are taken.
    this.held += starting;
    const { slots, quarantined, mark } = ask;
    if (slots > 0) this.gate.brought(this.worker, mark, slots, { jobs: starting, quarantined, charge });
    return starting;
  }

  /** A job that had left its slot goes on. It has one again, also where others have taken all of them. */
  resumed(quarantined: boolean): void {
    const ask = this.ask(1, quarantined, performance.now());
    this.arrived(ask);
    this.brought(ask, 1, 'no');
  }

  /** A job leaves its slot. */
  ended(quarantined: boolean): void {
    this.held--;
    this.pool.release(1);
    this.gate.ended(quarantined);
  }

  /** The worker is gone: neither a slot nor an empty process is kept for it. @param goesOn its handlers may go on */
  leave(goesOn: boolean): void {
    this.gate.leave(this.worker, goesOn);
    this.pool.leave(this.worker);
  }
}
