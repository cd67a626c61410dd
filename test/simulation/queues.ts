/** What a queue is for says its name: how its jobs are taken differs. */
export interface QueuesOfPlan {
  /** How many queues there are beside `jobs` that work in the same way. */
  readonly queues: number;
  readonly pull: boolean;
  readonly batch: boolean;
  /** Workers work on the queue that jobs are moved to, although none may be: they are never idle in one queue only. */
  readonly moved: boolean;
  /** How many schedules there are. */
  readonly schedules: number;
  /** Jobs are moved to another queue. */
  readonly transfers: number;
}

/** Jobs of this one are deleted when they are read. */
export const TAKEN = 'taken';
/** Of the jobs that schedules make. */
export const RECURRING = 'recurring';
/** Where jobs are moved to from `jobs`. */
export const MOVED = 'moved';

/** `queue` of many. */
export function nameOfMany(index: number): string {
  return `many${index}`;
}

/** A handler takes its jobs one by one, and as soon as they are due. */
export function isPlain(queue: string): boolean {
  return queue === 'jobs' || queue === MOVED || queue === RECURRING || queue.startsWith('many');
}

export function queuesOfWorkers({ queues, batch, moved, transfers, schedules }: QueuesOfPlan): string[] {
  const many = Array.from({ length: queues }, (_, index) => nameOfMany(index));
  return [
    'jobs',
    ...(moved || transfers > 0 ? [MOVED] : []),
    ...many,
    ...(batch ? ['batched'] : []),
    ...(schedules > 0 ? [RECURRING] : []),
  ];
}

export const QUEUES_OF_PULLERS: readonly string[] = ['pulled', TAKEN];

/** What the keys of each shard begin with. Only `jobs` is split. */
export function shardBasesOf(plan: QueuesOfPlan, shards: number): string[] {
  const others = queuesOfWorkers(plan).filter((queue) => queue !== 'jobs');
  return [...basesOfShards(shards), ...[...others, ...(plan.pull ? QUEUES_OF_PULLERS : [])].map(baseOf)];
}

export function basesOfShards(shards: number): string[] {
  return shards === 1 ? [baseOf('jobs')] : Array.from({ length: shards }, (_, index) => baseOf(`jobs:${index}`));
}

/** `dq:{jobs:1}:due` -> `dq:{jobs:1}:` */
export function baseOfKey(key: string): string {
  return key.slice(0, key.indexOf('}:') + 2);
}

/** `dq:{jobs:1}:due` -> `jobs` */
export function queueOf(key: string): string {
  return /\{([^:}]*)/.exec(key)![1]!;
}

/** What the keys of a shard begin with. */
export function baseOf(tag: string): string {
  return `dq:{${tag}}:`;
}
