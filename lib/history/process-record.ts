import { hostname } from 'node:os';
import { pid, version as node } from 'node:process';
import type { InstanceContext } from '../instance/instance-context.js';
import { performance } from '../time-and-randomness.js';
import type { DelayQueueRunner } from '../worker/delay-queue.runner.js';
import { LIBRARY_VERSION } from '../version.js';

/** One queue that a process works on. */
export interface ProcessQueue {
  queue: string;
  /** Slots in which a job runs, or a batch gathers or runs. */
  busy: number;
  slots: number;
  /** Ms since the claim loop was last answered, when the process showed itself. */
  lastClaimMs: number;
  /** Handlers that run on after their timeout. */
  zombies: number;
  paused: boolean;
}

/** A process that showed itself within the last 45 s. */
export interface LiveProcess {
  /** Of this start of the process: another one has another name. */
  name: string;
  host: string;
  pid: number;
  /** Of this package. */
  version: string;
  node: string;
  startedAt: Date;
  /** When it last showed itself, by the clock of Redis. */
  seenAt: Date;
  /** It is shutting down. */
  draining: boolean;
  /** At most 200. */
  queues: ProcessQueue[];
}

/** As it is stored. */
type Stored = Omit<LiveProcess, 'name' | 'startedAt' | 'seenAt'> & { upMs: number; at: number };

const MOST_QUEUES = 200;

export function describeProcess({ connection }: InstanceContext, runner: DelayQueueRunner | undefined, at: number) {
  const now = performance.now();
  const workers = [...(runner?.workers.values() ?? []), ...(runner?.pullers ?? [])];
  const queues = workers.slice(0, MOST_QUEUES).map((worker) => ({
    queue: worker.queue,
    busy: Math.ceil(worker.running / worker.batchSize),
    slots: worker.concurrency,
    lastClaimMs: Math.max(0, Math.round(now - worker.lastAnswerAt)),
    zombies: worker.zombies,
    paused: worker.paused,
  }));
  const draining = runner?.draining ?? false;
  const stored: Stored = { host: hostname(), pid, version: LIBRARY_VERSION, node, upMs: now, at, draining, queues };
  return { name: connection.processName, text: JSON.stringify(stored) };
}

/** @returns undefined for what no process of this library wrote */
export function parseProcess(name: string, text: string | null): LiveProcess | undefined {
  try {
    const { upMs, at, host, pid: id, version, node: runs, draining, queues } = JSON.parse(text ?? '') as Stored;
    if (typeof at !== 'number' || typeof upMs !== 'number' || !Array.isArray(queues)) return undefined;
    const times = { startedAt: new Date(at - upMs), seenAt: new Date(at) };
    return { name, host, pid: id, version, node: runs, ...times, draining, queues };
  } catch {
    return undefined;
  }
}
