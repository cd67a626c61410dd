import type { InstanceContext } from '../instance/instance-context.js';
import { reportSkipped } from './skipped.js';

/** Occurrences of one schedule: how many, and the first and the last of their times. */
export interface Stretch {
  readonly count: number;
  readonly first: number;
  readonly last: number;
}

/** What one call gives up of a schedule, in however many parts: it says so once. */
export class GivenUp {
  #all: Stretch | undefined;

  add(part: Stretch | undefined): void {
    if (!part || part.count === 0) return;
    const { count, first, last } = this.#all ?? { count: 0, first: Infinity, last: -Infinity };
    this.#all = {
      count: count + part.count,
      first: Math.min(first, part.first),
      last: Math.max(last, part.last),
    };
  }

  addTimes(times: readonly number[]): void {
    for (const at of times) this.add({ count: 1, first: at, last: at });
  }

  report({ connection, logger }: InstanceContext, queue: string, schedule: string): void {
    if (!this.#all) return;
    reportSkipped(logger, { instance: connection.instance, queue, schedule, reason: 'missed', ...this.#all });
  }
}
