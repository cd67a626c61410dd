import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';

/** What an act did, for its page, and for the log. */
export interface Acted {
  readonly answer: object;
  /** Jobs that it changed, or would change. */
  readonly count: number;
  /** How many jobs met which end: `{ cancelled: 12, running: 1 }`. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** It changed nothing, because that was asked for. */
  readonly dryRun: boolean;
}

export type Act = (view: InstanceView, queue: string, body: Fields) => Promise<Acted>;

export type Read = (view: InstanceView, query: Fields) => Promise<object>;

export function countedBy<Result extends { outcome: string }>(results: readonly Result[]): Record<string, number> {
  const outcomes: Record<string, number> = {};
  for (const { outcome } of results) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  return outcomes;
}
