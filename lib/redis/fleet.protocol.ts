import type { DeadReason } from '../job/error-record.js';

/** What a process tells the others about a job. `error` is one line, and holds no value of the payload. */
export type FleetNews = { readonly id: string; readonly attempt: number; readonly latenessMs: number } & (
  | { readonly type: 'completed'; readonly durationMs?: number }
  | { readonly type: 'snoozed'; readonly durationMs?: number; readonly delayMs: number }
  | { readonly type: 'failed'; readonly durationMs?: number; readonly error: string }
  | { readonly type: 'retried'; readonly durationMs?: number; readonly error: string; readonly delayMs: number }
  | { readonly type: 'deadLettered'; readonly durationMs?: number; readonly error: string; readonly reason: DeadReason }
  | { readonly type: 'expired' }
  | { readonly type: 'leaseLost' }
);

export type FleetNewsType = FleetNews['type'];

/** The stream of a queue, whatever its number of shards. */
export function fleetKey(prefix: string, queue: string): string {
  return `${prefix}:{${queue}}:events`;
}

const LETTERS: Record<FleetNewsType, string> = {
  completed: 'c',
  snoozed: 's',
  failed: 'f',
  retried: 'r',
  deadLettered: 'd',
  expired: 'x',
  leaseLost: 'l',
};
const TYPES = new Map(Object.entries(LETTERS).map(([type, letter]) => [letter, type as FleetNewsType]));

type Row = readonly [letter: string, id: string, attempt: number, latenessMs: number, durationMs: number, ...string[]];

/** One entry: all that a process learned in one turn, which is mostly one step. In rows, because an entry may tell of 200 jobs. */
export function encodeNews(news: readonly FleetNews[]): string {
  return JSON.stringify(news.map(rowOf));
}

function rowOf(one: FleetNews): (string | number)[] {
  const { type, id, attempt, latenessMs } = one;
  const duration = 'durationMs' in one && one.durationMs !== undefined ? Math.round(one.durationMs * 10) / 10 : -1;
  const row = [LETTERS[type], id, attempt, Math.round(latenessMs), duration];
  if ('error' in one) row.push(one.error);
  if ('delayMs' in one) row.push(one.delayMs);
  if ('reason' in one) row.push(one.reason);
  return row;
}

/** @returns what this library can read of it: a newer one may tell of more */
export function decodeNews(text: string): FleetNews[] {
  let rows: unknown;
  try {
    rows = JSON.parse(text);
  } catch {
    return [];
  }
  return Array.isArray(rows) ? rows.filter(Array.isArray).flatMap((row) => newsOf(row as unknown as Row) ?? []) : [];
}

function newsOf([letter, id, attempt, latenessMs, duration, ...details]: Row): FleetNews | undefined {
  const type = TYPES.get(letter);
  if (type === undefined || typeof id !== 'string') return undefined;
  const about = { id, attempt, latenessMs };
  const ran = duration >= 0 ? { ...about, durationMs: duration } : about;
  const [first, second] = details;
  switch (type) {
    case 'completed':
      return { type, ...ran };
    case 'snoozed':
      return { type, ...ran, delayMs: Number(first) };
    case 'failed':
      return { type, ...ran, error: String(first) };
    case 'retried':
      return { type, ...ran, error: String(first), delayMs: Number(second) };
    case 'deadLettered':
      return { type, ...ran, error: String(first), reason: second as DeadReason };
    default:
      return { type, ...about };
  }
}
