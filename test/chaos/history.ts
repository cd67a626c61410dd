import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

/**
 * What the processes of a fault run write down, one JSON line each, appended before they go on: a SIGKILL loses nothing
 * that was written.
 *
 * `at` is the wall clock in ms. The servers of a run share this machine's clock, so it is also Redis' time; the run
 * checks that at its start. `mono` is the machine's monotonic clock in ms, `p` the process: its name and incarnation.
 */
export type HistoryEvent = Stamp & (ProducerEvent | ScheduleEvent | WorkerEvent | DirectorEvent);

export interface Stamp {
  readonly p: string;
  readonly at: number;
  readonly mono: number;
}

export type Asked = 'enqueue' | 'reschedule' | 'cancel';

export type ProducerEvent =
  /** `version` names the payload; `due` is the earliest time that the call can have meant (Infinity for a cancel). */
  | {
      readonly ev: 'asked';
      readonly op: number;
      readonly what: Asked;
      readonly id: string;
      readonly version?: string;
      readonly due?: number;
      /** Of a run with groups: that of the job, always the same. */
      readonly group?: string;
    }
  | { readonly ev: 'answered'; readonly op: number; readonly outcome: string; readonly state?: string }
  /** `maybe`: the call may have taken effect all the same. */
  | { readonly ev: 'failed'; readonly op: number; readonly code: string; readonly maybe: boolean };

/** id, due time by the index, losses in a row */
export type ClaimedJob = readonly [id: string, due: number, losses: number];
/** verb is that of lib/worker/settlement.ts; `value` its delay or due time in ms */
export type SettledJob = readonly [id: string, token: number, verb: string, value: number];

/** What a process asked of the schedules of the run, which each one makes when it begins, and what they came to at the end. */
export type ScheduleEvent =
  | { readonly ev: 'scheduled'; readonly id: string; readonly outcome: string; readonly next?: number }
  | {
      readonly ev: 'counted';
      readonly id: string;
      readonly made: number;
      readonly missed: number;
      readonly overlapped: number;
    };

export type WorkerEvent =
  /** `now` is the server time at which the claim was made. */
  | { readonly ev: 'claimed'; readonly token: number; readonly now: number; readonly jobs: readonly ClaimedJob[] }
  | {
      readonly ev: 'start';
      readonly id: string;
      readonly token: number;
      readonly version: string;
      readonly attempt: number;
      readonly maxAttempts: number;
    }
  /** `how` the handler ended or what it did: ok, failed, snoozed, discarded, hung. `token` is that of its start. */
  | { readonly ev: 'effect'; readonly id: string; readonly token: number; readonly how: string }
  | { readonly ev: 'settleSent'; readonly step: number; readonly jobs: readonly SettledJob[] }
  | { readonly ev: 'settleAnswer'; readonly step: number; readonly lost: readonly string[] }
  /** Confirmed renewals: `sent` before they were. `left`: of these claims only these ids were still held. */
  | {
      readonly ev: 'renewed';
      readonly sent: number;
      readonly tokens: readonly number[];
      readonly left: readonly (readonly [token: number, ids: readonly string[]])[];
    }
  | {
      readonly ev: 'extended';
      readonly id: string;
      readonly from: number;
      readonly to: number;
      readonly sent: number;
      readonly leaseMs: number;
    }
  | { readonly ev: 'session'; readonly key: string }
  /** The event loop did not turn between these moments. */
  | { readonly ev: 'stall'; readonly from: number; readonly to: number };

/** Behind the name of a session that says it is over. */
export const OVER = ' (over)';

export interface Indexes {
  readonly due: readonly string[];
  readonly running: readonly string[];
  readonly quarantine: readonly string[];
  /** id and reason */
  readonly dead: readonly (readonly [id: string, reason: string])[];
  readonly jobs: readonly string[];
  readonly followups: readonly string[];
}

/** What a queue with groups stores besides; see test/helpers/groups.ts. */
export interface GroupIndexes {
  /** Server time, ms. */
  readonly now: number;
  readonly needs: string;
  readonly due: Readonly<Record<string, number>>;
  readonly grouped: Readonly<Record<string, number>>;
  readonly ring: Readonly<Record<string, number>>;
  readonly held: Readonly<Record<string, number>>;
  /** Ids that had attempts. */
  readonly attempts: readonly string[];
}

export interface Rate {
  readonly max: number;
  readonly perMs: number;
}

/** Under which a run is, as `groupConcurrency` jobs of one group at a time. */
export interface LimitsOfRun {
  readonly concurrency: number;
  readonly rate: Rate;
  readonly groupConcurrency: number;
  readonly groupRate: Rate;
}

/** A schedule that all processes of a run make. */
export interface ScheduleOfRun {
  readonly id: string;
  readonly everyMs: number;
  readonly until: number;
  readonly missed: 'once' | 'skip' | 'all';
  readonly overlap: 'skip' | 'queue' | 'allow';
  /** How long its handler takes. */
  readonly ms: number;
}

export type DirectorEvent =
  | { readonly ev: 'schedules'; readonly schedules: readonly ScheduleOfRun[] }
  | ({ readonly ev: 'limits' } & LimitsOfRun)
  | { readonly ev: 'planned'; readonly faults: Readonly<Record<string, number>> }
  /** `target` is a process without its incarnation, or `redis`. `effect`: it was seen to happen. */
  | {
      readonly ev: 'fault';
      readonly kind: string;
      readonly target: string;
      readonly begin: number;
      readonly end: number;
      readonly effect: boolean;
      readonly note?: string;
    }
  | { readonly ev: 'exit'; readonly of: string; readonly how: string; readonly asked: boolean }
  /** Read in one transaction; `keys` (with what a TTL leaves them, -1 for none) only when the run is over. */
  | {
      readonly ev: 'store';
      readonly final: boolean;
      readonly indexes: Indexes;
      readonly groups?: GroupIndexes | undefined;
      readonly keys?: readonly (readonly [name: string, ttlMs: number])[];
    };

/** The events of these files, file by file: within a process their order is that of the lines. */
export async function* readHistory(files: readonly string[]): AsyncGenerator<HistoryEvent> {
  for (const file of files) {
    for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
      // Only the last line of a killed process may be cut off.
      const event = parse(line);
      if (event) yield event;
    }
  }
}

function parse(line: string): HistoryEvent | undefined {
  try {
    return JSON.parse(line) as HistoryEvent;
  } catch {
    return undefined;
  }
}

/** `w2.3` is the third incarnation of `w2`. */
export function nameOf(p: string): string {
  return p.split('.')[0]!;
}

/** Of the id of an occurrence; undefined for that of another job. */
export function occurrenceIn(id: string): { schedule: string; at: number } | undefined {
  const [, schedule, time] = /^\{([^{}]+)\}([0-9a-z]+)$/.exec(id) ?? [];
  return schedule === undefined ? undefined : { schedule, at: parseInt(time!, 36) };
}

/** Names the payload of all occurrences of a schedule. */
export function versionOf(schedule: string): string {
  return `{${schedule}}`;
}
