/** An id of a stream: milliseconds, and a number among those of one millisecond. */
export type StreamId = readonly [ms: number, count: number];

export interface StreamEntry {
  readonly id: StreamId;
  /** Fields and values in turn. */
  readonly fields: readonly string[];
}

/** A log of entries in the order of their ids. */
export class Stream {
  last: StreamId = [0, 0];

  constructor(readonly entries: StreamEntry[] = []) {
    if (entries.length > 0) this.last = entries.at(-1)!.id;
  }

  add(id: StreamId, fields: readonly string[]): void {
    this.entries.push({ id, fields });
    this.last = id;
  }

  /** Keeps the newest ones. */
  trim(most: number): void {
    this.entries.splice(0, Math.max(0, this.entries.length - most));
  }

  /** @param from, to both included */
  between(from: StreamId, to: StreamId): readonly StreamEntry[] {
    return this.entries.filter(({ id }) => compareIds(id, from) >= 0 && compareIds(id, to) <= 0);
  }
}

export function compareIds([ms, count]: StreamId, [otherMs, otherCount]: StreamId): number {
  return ms - otherMs || count - otherCount;
}
