import { STEP_MAX_JOBS } from '../redis/step.protocol.js';
import type { QuarantineAsk } from './isolation/quarantine-turn.js';
import { PollSchedule } from './poll-schedule.js';

/** The state of one shard's worker that decides the next round trip. Moments are monotonic ms. */
export interface StepView {
  now: number;
  isStopping: boolean;
  /** Steps on their way. */
  stepsOut: number;
  /** Jobs that those may bring. */
  wanted: number;
  /** Jobs that may be asked for. */
  free: number;
  /** Beyond those: jobs that may be asked for before a slot is free. */
  ahead: number;
  /** The most that one claim should bring. */
  claimSize: number;
  /** Slots of the queue in this process. */
  slots: number;
  /** Several shards share them. */
  isShared: boolean;
  /** What each of these shards may have. */
  fairShare: number;
  /** Nobody waits for the jobs: who asked for them is answered at once, with or without. */
  looksOnce: boolean;
  /** Endings that were not sent yet. */
  ended: number;
  /** The last claim brought as many jobs as it had slots for, and one at least. */
  backlog: boolean;
  /** The queue runs as many jobs as its limits allow: what ends here makes room for others, anywhere. */
  isAtLimit: boolean;
  /** A wake-up came. */
  isForced: boolean;
  /** It is time to poll for due jobs. */
  isPollDue: boolean;
  /** The longest sleep that the next answer can lead to. */
  longestPollMs: number;
  /** A lease is to be renewed, or Redis must hear at once that a job shares the process now. */
  heartbeat: boolean;
  /** Claiming does not pause in this process. */
  isOpen: boolean;
  /** No job runs in this process, and no step on its way may bring one. */
  isEmpty: boolean;
  /** The claim from the quarantine whose turn it is. */
  quarantine: QuarantineAsk;
  /** Such a claim is on its way. */
  isQuarantineAsked: boolean;
  asksIsolation: boolean;
  /** Until then Redis has this worker on the list of idle ones; 0 if it has not. */
  idleUntil: number;
  /** Since when it is full although Redis has it on the list of idle workers; Infinity if that is not so. */
  fullSince: number;
}

/** A step as far as it is known before it has taken its endings and its renewals. */
export interface StepDraft {
  readonly limit: number;
  /** Of these only while no other worker waits for jobs. */
  readonly ahead: number;
  readonly quarantineLimit: number;
  readonly quarantinedForMs: number;
  readonly heartbeat: boolean;
  /** It leaves although it settles and renews nothing. */
  readonly saysSomething: boolean;
  readonly isSole: boolean;
  readonly asksIsolation: boolean;
  readonly hasFreeSlots: boolean;
  readonly claimInFlight: boolean;
  readonly idleForMs: number;
  readonly refreshIdle: boolean;
  readonly looksOnce: boolean;
  /** As in `StepView`, once it has left. */
  readonly idleUntil: number;
  /** It claims, so it sees every wake-up until now. */
  readonly looks: boolean;
}

export interface StepPlan {
  /** It joins the queue for a slot that other shards have, whether or not a step leaves. */
  readonly waitsForSlot: boolean;
  /** As in `StepView`, from now on. */
  readonly fullSince: number;
  /** Undefined: no step leaves now. */
  readonly request: StepDraft | undefined;
}

/** From this concurrency on a claim asks for half the slots, so that Redis works on one step while Node works on the other. */
export const SPLIT_FROM = 32;
/**
 * A worker that is full for longer tells Redis; most jobs of a backlog end sooner, and then the next claim tells it. So does the next call
 * of pull(), and a worker that stops and runs nothing leaves sooner.
 */
export const FULL_FOR_MS = 20;

/**
 * Whether a claim leads at once to the next one. One without a slot that brings nothing does not: no job is due, another worker waits for
 * them, or the queue has limits, and asking again before a slot is free would bring nothing either.
 */
export function isSupplied(slots: number, jobs: number): boolean {
  return jobs >= Math.max(1, slots);
}

/** Decides what the next round trip asks for. A pure function: the worker applies the plan. */
export function planStep(view: StepView): StepPlan {
  const { now, free, slots, isOpen, isStopping } = view;
  const outstanding = view.stepsOut > 0;
  const limit = dueLimit(view);
  // Other shards have all slots: wait for one of them.
  const noSlot = free <= 0 && !isStopping && view.isShared && slots > 0;
  // A step without a free slot takes this worker off the list of those that are woken, also one that only renews leases. The slots
  // may be free again when a step of another shard is answered, which this worker would not hear of. While a claim of its own may need
  // those slots it stays on the list, and that answer makes it plan again. If it waited for a slot all the same, the slots of a vain claim
  // would wake it for another one: each look would cost two steps, and some would go on round trip after round trip.
  const leaves = view.ended > 0 || view.heartbeat || view.asksIsolation;
  const waitsForSlot = noSlot && !hasClaimInFlight(view) && (view.backlog || view.isPollDue || leaves);
  // Claiming pauses in this process, or other shards have all slots. The step only shows that this worker lives, and
  // that others should be woken instead.
  const waitsForTurn = (noSlot || (free > 0 && !isOpen)) && !outstanding && view.isPollDue;
  // Redis still lists this worker as idle, although nothing will make it claim: two overlapping claims filled its slots, each of which had
  // told Redis that slots were left; or its concurrency became smaller, as when a call of pull() ends; or it stops. Take it off the list.
  // Shards of one queue hear of each other's slots instead.
  const hearsOfSlots = view.isShared && slots > 0 && !isStopping;
  const full = !hearsOfSlots && free <= 0 && !outstanding && view.idleUntil > now;
  const fullSince = full ? Math.min(view.fullSince, now) : Infinity;
  const leavesIdle = now >= fullSince + FULL_FOR_MS;
  const saysSomething = limit > 0 || view.quarantine.jobs > 0 || view.asksIsolation || waitsForTurn || leavesIdle;
  const carries = view.ended + limit;
  // The second session is for throughput. For less than a quarter of the slots it costs less to wait for the first one.
  const canWait =
    outstanding && !view.heartbeat && !view.isForced && !makesRoom(view) && carries < (view.fairShare + view.ahead) / 4;
  if (canWait || (view.ended === 0 && !saysSomething && !view.heartbeat))
    return { waitsForSlot, fullSince, request: undefined };
  return { waitsForSlot, fullSince, request: draft(view, limit, waitsForTurn, saysSomething) };
}

/** Due jobs to ask for. */
function dueLimit(view: StepView): number {
  const room = view.free + view.ahead;
  if (room <= 0 || !view.isOpen || view.quarantine.jobs > 0 || view.isQuarantineAsked) return 0;
  if (view.stepsOut > 0 && !view.backlog && !view.isForced && !makesRoom(view)) return 0;
  if (view.ended === 0 && !view.heartbeat && !view.isPollDue) return 0;
  return Math.min(room, view.claimSize, STEP_MAX_JOBS);
}

/** A place of a limit is free as soon as Redis hears of it, and the step that tells of it may take it again. */
function makesRoom({ isAtLimit, ended }: StepView): boolean {
  return isAtLimit && ended > 0;
}

/** A claim of this worker may need all slots that it could ask for. */
function hasClaimInFlight({ free, wanted, isStopping, isOpen, looksOnce }: StepView): boolean {
  return free <= 0 && wanted > 0 && !isStopping && isOpen && !looksOnce;
}

function draft(view: StepView, limit: number, waitsForTurn: boolean, saysSomething: boolean): StepDraft {
  const { now, free, wanted, isOpen, asksIsolation, heartbeat, looksOnce } = view;
  const mayWait = isOpen && !looksOnce;
  const { jobs: quarantineLimit, quarantinedForMs } = view.quarantine;
  const hasFreeSlots = free > 0 && mayWait && (free > limit || wanted > 0);
  const claimInFlight = hasClaimInFlight(view);
  const ahead = Math.max(0, limit - Math.max(0, free));
  // Redis lists who asks for jobs that have slots: not who asks for some ahead of these.
  const asks = limit > ahead && !looksOnce;
  const idle = !asks && !hasFreeSlots && !claimInFlight ? 0 : view.idleUntil;
  // The next claim may be a whole sleep away. An entry that ended before it would leave this worker out of all wake-ups meanwhile.
  const mustLastUntil = now + view.longestPollMs + PollSchedule.IDLE_SLACK_MS / 2;
  const refreshIdle = (asks || hasFreeSlots) && idle < mustLastUntil;
  const idleForMs = Math.ceil(view.longestPollMs + PollSchedule.IDLE_SLACK_MS);
  return {
    limit,
    ahead,
    quarantineLimit,
    quarantinedForMs,
    heartbeat,
    saysSomething,
    // A step in flight that claims nothing, such as one that settles, brings no other job.
    isSole: limit + quarantineLimit > 0 && view.isEmpty,
    asksIsolation,
    hasFreeSlots,
    claimInFlight,
    idleForMs,
    refreshIdle,
    looksOnce,
    idleUntil: refreshIdle ? now + idleForMs : idle,
    looks: limit > 0 || waitsForTurn,
  };
}
