import { stateOf } from './letters.js';
import type { JobState } from './letters.js';

/** A job as lib/lua/enqueue.lua takes it. */
export interface EnqueueItem {
  readonly id: string;
  readonly spec: string;
  readonly content: string;
  /** Of a job that has a group or a priority: its place (lib/job/place.ts). */
  readonly place?: string | undefined;
}

/** What became of a job. Jobs in a row of which the script says the same share it. */
export interface EnqueueReply {
  /** Server time of the call, epoch ms. */
  readonly now: number;
  readonly outcome: EnqueueOutcome;
  /** Of the job that was found under the id; undefined without one. */
  readonly state: JobState | undefined;
  /** Of one that a full queue has refused instead: how many jobs wait and run there. */
  readonly dueAt: number;
  /** Replicas that have it, or 1 when the append-only file has it; undefined when nobody asked. */
  readonly reached: number | undefined;
}

export type EnqueueOutcome = (typeof OUTCOMES)[keyof typeof OUTCOMES];

const OUTCOMES = {
  c: 'created',
  k: 'kept',
  p: 'replaced',
  r: 'rescheduled',
  x: 'duplicate',
  f: 'queueFull',
  b: 'publishingPaused',
} as const;

/** What one call of the script takes. */
export const MAX_JOBS = 200;
export const MAX_BYTES = 1024 * 1024;
/** Where the script expects the sequence number. */
export const SEQUENCE_AT = 0;

/** What a job adds to a script call, about. */
export function bytesOf({ id, content }: Pick<EnqueueItem, 'id' | 'content'>): number {
  return id.length + content.length;
}

/** What is asked for again and again is said once. */
export function enqueueArgs(items: readonly EnqueueItem[]): (string | number)[] {
  const args: (string | number)[] = [0];
  for (let at = 0, end = 0; at < items.length; at = end) {
    const { spec } = items[at]!;
    const isPlaced = items[at]!.place !== undefined;
    while (items[end]?.spec === spec && (items[end]!.place !== undefined) === isPlaced) end++;
    args.push((end - at > 1 ? `${end - at}*${spec}` : spec) + (isPlaced ? ' @' : ''));
    for (let n = at; n < end; n++) {
      const { id, content, place } = items[n]!;
      args.push(id, content);
      if (place !== undefined) args.push(place);
    }
  }
  return args;
}

/** The server's time, and whether nothing of the shard was stored before. */
export function enqueueHead(answer: string): { now: number; isNew: boolean } {
  return { now: Number.parseInt(answer, 10), isNew: answer.startsWith('+') };
}

/** Reads what became of each job, one after the other; undefined after the last one. */
export function enqueueReplies(answer: string, reached: number | undefined): () => EnqueueReply | undefined {
  const words = answer.split(' ');
  const now = Number(words[0]);
  let at = 1;
  let reply: EnqueueReply | undefined;
  let more = 0;
  return () => {
    if (more > 0) {
      more--;
    } else if (at < words.length) {
      const outcome = OUTCOMES[words[at] as keyof typeof OUTCOMES];
      reply = { now, outcome, state: stateOf(words[at + 1]), dueAt: Number(words[at + 2]), reached };
      at += 3;
      if (words[at]?.startsWith('=')) more = Number(words[at++]!.slice(1));
    } else {
      reply = undefined;
    }
    return reply;
  };
}
