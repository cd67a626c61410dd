/** A job as lib/lua/enqueue.lua takes it. */
export interface EnqueueItem {
  readonly id: string;
  readonly spec: string;
  readonly content: string;
}

/** What a job adds to a script call, about. */
export function bytesOf({ id, content }: Pick<EnqueueItem, 'id' | 'content'>): number {
  return id.length + content.length;
}
