import type { Instance } from '../../lib/instance/start-instance.js';
import type { ScheduleOptions } from '../../lib/recurring/schedule-options.js';
import type { Member } from './fleet.js';
import type { Configuration, RunPlan } from './plan.js';
import { EPOCH } from './process.js';
import { baseOf, RECURRING } from './queues.js';
import { rounded } from './random.js';
import type { Random } from './random.js';
import { gridTimes } from './schedule-rules.js';
import type { Simulation } from './simulation.js';

/** What a schedule is to be. All of them are of one queue. */
export interface ScheduleOperation {
  readonly kind: 'schedule';
  readonly at: number;
  readonly id: string;
  readonly everyMs: number;
  /** The same times by a cron expression. */
  readonly isCron: boolean;
  readonly missed: 'once' | 'skip' | 'all';
  readonly graceMs: number;
  readonly most: number;
  readonly overlap: 'skip' | 'allow' | 'queue';
  readonly run: RunPlan;
}

interface OfSchedule {
  readonly at: number;
  readonly id: string;
}

export type OperationOfSchedules =
  | ScheduleOperation
  | (OfSchedule & { readonly kind: 'unschedule'; readonly running: boolean })
  | (OfSchedule & { readonly kind: 'pauseSchedule'; readonly forMs: number })
  | (OfSchedule & { readonly kind: 'triggerSchedule' })
  | (OfSchedule & { readonly kind: 'backfillSchedule'; readonly spanMs: number })
  /** Nobody makes more occurrences, so that a run comes to its end. */
  | (OfSchedule & { readonly kind: 'endSchedule' });

/** The number of the first payload. */
const FIRST_N = 20_000_000;
const FIRST_MS = 1_200;
const MOST_BACKFILLED = 12;

/** One run in four has some. */
export function drawScheduleCount(random: Random, { older }: Configuration): Pick<Configuration, 'schedules'> {
  const schedules = random.chance(0.25) ? random.whole(1, 3) : 0;
  return { schedules: older ? 0 : schedules };
}

export function drawSchedules(random: Random, configuration: Configuration): OperationOfSchedules[] {
  const { schedules, faultsMs, mendingMs, calmMs } = configuration;
  const found: OperationOfSchedules[] = [];
  for (let i = 0; i < schedules; i++) {
    const id = `s${i}`;
    let n = FIRST_N + 1_000 * i;
    found.push(drawSchedule(random, configuration, id, n++, rounded(random.between(FIRST_MS, faultsMs / 3))));
    for (let count = random.whole(0, 8); count > 0; count--) {
      const at = rounded(random.between(2_000, faultsMs));
      const kind = random.pick(CHANGES);
      if (kind === 'schedule') found.push(drawSchedule(random, configuration, id, n++, at));
      else found.push(drawChange(random, kind, id, at));
    }
    found.push({ kind: 'endSchedule', at: faultsMs + mendingMs + rounded(random.between(0, calmMs)), id });
  }
  return found;
}

const CHANGES = [
  'schedule',
  'unschedule',
  'pauseSchedule',
  'triggerSchedule',
  'triggerSchedule',
  'triggerSchedule',
  'backfillSchedule',
  'backfillSchedule',
] as const;

function drawSchedule(
  random: Random,
  { attempts, nights }: Configuration,
  id: string,
  n: number,
  at: number,
): ScheduleOperation {
  const missed = random.pick(['once', 'skip', 'all'] as const);
  // Ticks look at each time of a cron expression, and of what makes up for all: after a month of seconds that takes too long here.
  const isLong = nights > 0 && missed === 'all';
  const everyMs = isLong ? 10_000 : random.pick([1_000, 2_000, 5_000, 10_000]);
  // Some outlast the time until the next one.
  const work = rounded(random.between(0, random.pick([20, 20, 0.5 * everyMs, 1.5 * everyMs])));
  const fails = attempts > 2 && random.chance(0.4) ? random.whole(1, 2) : 0;
  return {
    kind: 'schedule',
    at,
    id,
    everyMs,
    isCron: random.chance(0.3) && nights === 0,
    missed,
    graceMs: random.pick([200, 1_000, 60_000]),
    most: random.pick([1, 3, 20]),
    overlap: random.pick(['skip', 'queue', 'allow'] as const),
    // Those that were missed gather, and one worker with one slot must be through with them before the end.
    run: { n, work: rounded(Math.min(work, 3_000 / (1 + fails))), ...(fails > 0 && { fails }) },
  };
}

function drawChange(
  random: Random,
  kind: Exclude<(typeof CHANGES)[number], 'schedule'>,
  id: string,
  at: number,
): OperationOfSchedules {
  switch (kind) {
    case 'unschedule':
      return { kind, at, id, running: random.chance(0.5) };
    case 'pauseSchedule':
      return { kind, at, id, forMs: random.whole(100, 8_000) };
    case 'backfillSchedule':
      return { kind, at, id, spanMs: random.whole(1_000, 60_000) };
    default:
      return { kind, at, id };
  }
}

/** What the application asks of its schedules. */
export class ScheduleCalls {
  constructor(
    private readonly simulation: Simulation,
    /** Again and again, until it was answered. */
    private readonly untilDone: (afterMs: number, call: (instance: Instance) => Promise<unknown>) => void,
  ) {}

  perform(member: Member, instance: Instance, operation: OperationOfSchedules): void {
    const { producer } = instance;
    const { schedules, calls } = this.simulation.oracle;
    const { id } = operation;
    switch (operation.kind) {
      case 'schedule': {
        return this.untilDone(0, (by) => {
          schedules.changes(id);
          return by.producer.schedule(RECURRING, id, timesOf(operation), operation.run, optionsOf(operation));
        });
      }
      case 'unschedule':
        schedules.changes(id);
        return calls.unwaited(producer.unschedule(RECURRING, id, { running: operation.running }));
      case 'pauseSchedule':
        schedules.changes(id);
        calls.unwaited(producer.pauseSchedule(RECURRING, id));
        return this.untilDone(operation.forMs, (by) => {
          schedules.changes(id);
          return by.producer.resumeSchedule(RECURRING, id);
        });
      case 'triggerSchedule':
        return calls.unwaited(this.#trigger(member, instance, id));
      case 'backfillSchedule':
        return calls.unwaited(this.#backfill(member, instance, id, operation.spanMs));
      case 'endSchedule':
        return this.untilDone(0, (by) => {
          schedules.changes(id);
          return by.producer.unschedule(RECURRING, id);
        });
    }
  }

  async #trigger(member: Member, { producer }: Instance, id: string): Promise<void> {
    const { schedules } = this.simulation.oracle;
    const changes = schedules.changesOf(id);
    schedules.addsTo(id);
    const occurrence = await producer.triggerSchedule(RECURRING, id);
    if (occurrence !== undefined) schedules.acknowledged(member.process, id, occurrence, changes);
  }

  /** Of the last minute, at most. */
  async #backfill(member: Member, { producer }: Instance, id: string, spanMs: number): Promise<void> {
    const { oracle, engine, clocks, weather } = this.simulation;
    const changes = oracle.schedules.changesOf(id);
    const grid = oracle.schedules.gridOf(id);
    const askedAt = engine.now;
    if (!grid) return;
    const to = Math.floor(this.simulation.clockMs(baseOf(RECURRING))) - 1;
    const from = to - Math.min(spanMs, MOST_BACKFILLED * grid.everyMs);
    const times = gridTimes(grid, from, to);
    oracle.schedules.addsTo(id, times);
    const idOf = (at: number) => `{${id}}${at.toString(36)}`;
    // One that the clock has just passed may not have run yet, and is not made again; or the clock slips back behind it, and it is yet to come.
    const isStored = (at: number) => oracle.peek('HEXISTS', `${baseOf(RECURRING)}jobs`, idOf(at)) === 1;
    const slippedMs = 2 * (weather?.mostSlippedMs ?? 0);
    const stored = times.filter((at) => isStored(at) || at > to - slippedMs).length;
    const count = await producer.backfillSchedule(RECURRING, id, { from, to });
    if (count === undefined || oracle.schedules.changesOf(id) !== changes) return;
    // The clock has gone back meanwhile, so that some of these times were yet to come.
    const goesBack = clocks.jumpsOf(`${baseOf(RECURRING)}due`).some(({ at, ms }) => ms < 0 && at > askedAt);
    if (goesBack) return;
    // A change that was asked for before, and was made only now.
    const present = oracle.schedules.gridOf(id);
    if (JSON.stringify(present) !== JSON.stringify(grid)) return;
    // A master that has been deposed goes by a clock of its own, which no jump of the other one moves, and by the schedule that it has.
    const isDeceived = this.simulation.isDeceived(member.process);
    if (!isDeceived && (count > times.length || count < times.length - stored)) {
      oracle.report('occurrence', `backfill of ${id} made ${count} occurrences of ${times.length}`);
    }
    for (const at of times) oracle.schedules.acknowledged(member.process, id, idOf(at), changes);
  }
}

function timesOf({ everyMs, isCron }: ScheduleOperation) {
  if (!isCron) return { every: everyMs };
  return { cron: `*/${everyMs / 1_000} * * * * *`, timeZone: 'Europe/Berlin' };
}

function optionsOf({ missed, graceMs, most, overlap, at, run: { group } }: ScheduleOperation): ScheduleOptions {
  const ofMissed = { once: {}, skip: { grace: graceMs }, all: { most } }[missed];
  return { group, missed, ...ofMissed, overlap, from: Math.floor(EPOCH + at) };
}
