/** A job as lib/lua/enqueue.lua takes it. */
export interface EnqueueItem {
  readonly id: string;
  readonly spec: string;
  readonly rest: string;
}

/** What a job adds to a script call, about. */
export function bytesOf({ id, rest }: Pick<EnqueueItem, 'id' | 'rest'>): number {
  return id.length + rest.length;
}
