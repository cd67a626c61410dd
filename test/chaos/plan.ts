import { randomOf } from './random.mjs';

export const FAULTS = {
  kill: 'SIGKILL of a process, which is started again',
  freeze: 'SIGSTOP of a process for one and a half leases',
  block: 'a worker blocks its event loop for one and a half leases',
  terminate: 'SIGTERM of a worker, which drains and is started again',
  drop: 'a process sends and hears nothing for 8 s, and its connections stay dead',
  loseReplies: 'each third reply to a process is lost with its connection, for 2 s',
  killRedis: 'SIGKILL of Redis, which is started again over its append-only file',
  readOnly: 'Redis is a replica without a master for 2 s (READONLY)',
  pause: 'CLIENT PAUSE for 2 s',
  flushScripts: 'SCRIPT FLUSH',
  fillMemory: 'no memory left for 2 s (maxmemory with noeviction)',
} as const;

export type FaultKind = keyof typeof FAULTS;

export interface PlannedFault {
  readonly atMs: number;
  readonly kind: FaultKind;
  /** From 0 to below 1: which of the processes that can be hit at that time; and the variant, where there is one. */
  readonly pick: number;
  readonly variant: number;
}

/** Runs end when their faults are over. */
export const LONGEST_FAULT_MS = 8_000;

const TWICE: readonly FaultKind[] = ['kill', 'freeze'];

/** The same seed makes the same faults. Each kind comes up again and again, so that none is left to luck. */
export function planFaults(seed: number, durationMs: number, everyMs: number): PlannedFault[] {
  const random = randomOf(seed);
  const bag: FaultKind[] = [];
  const planned: PlannedFault[] = [];
  for (let atMs = everyMs; atMs <= durationMs; atMs += everyMs) {
    if (bag.length === 0) bag.push(...random.shuffle([...(Object.keys(FAULTS) as FaultKind[]), ...TWICE]));
    planned.push({ atMs, kind: bag.pop()!, pick: random.next(), variant: random.next() });
  }
  return planned;
}
