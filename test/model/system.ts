import type { ClaimedJob, DelayQueueConsumer, DelayQueueInspector, DelayQueueProducer } from '../../lib/index.js';

export const HOUR = 3_600_000;

/** What loses its next answer: the producer and inspector, or a process by its number. */
export type Side = 'producer' | number;

/**
 * What the model is compared with: the library over some store, whose time can be moved on. Times that it gives are ms
 * since `begin()`, all advances included.
 */
export interface System {
  readonly queue: string;
  readonly producer: DelayQueueProducer;
  readonly inspector: DelayQueueInspector;
  /** One per process. */
  readonly consumers: readonly DelayQueueConsumer[];
  /** A queue that was never used before. */
  begin(): Promise<void>;
  /** Time goes by in `advance()` only. */
  readonly clockStands: boolean;
  /** Time goes by while no lease is looked at. `held`: what the processes have in their hands. */
  advance(ms: number, held: readonly ClaimedJob[]): Promise<void>;
  /** ms since `begin()` of a moment that the library told. */
  since(time: Date | number): number;
  /** The moment to tell the library for these ms. */
  moment(sinceMs: number): number;
  /** The next call that writes runs and its answer is lost, or it is lost on its way. Where nothing can be lost: nothing. */
  loseNext(side: Side, what: 'answer' | 'request'): void;
  /** Where `loseNext()` met no call. */
  loseNothing(): void;
  /** The lease of this running job, and of all that was claimed with it, ends at once. */
  expireLease(id: string): Promise<void>;
  stored(): Promise<Stored>;
  /** Where the invariant of the storage is broken. */
  problems(): Promise<string[]>;
  /** Forgets the queue. */
  end(): Promise<void>;
  close(): Promise<void>;
}

/** Which job is where, as stored. Times are ms since `begin()`. */
export interface Stored {
  readonly now: number;
  readonly due: ReadonlyMap<string, number>;
  /** id -> token of its claim */
  readonly running: ReadonlyMap<string, number>;
  /** Tokens of the claims that have a lease -> it is marked as alone in its process */
  readonly leases: ReadonlyMap<number, boolean>;
  /** id -> attempts that count, of those that had any */
  readonly charged: ReadonlyMap<string, number>;
  /** id -> when it was taken back */
  readonly quarantine: ReadonlyMap<string, number>;
  /** id -> time of death */
  readonly dead: ReadonlyMap<string, number>;
}
