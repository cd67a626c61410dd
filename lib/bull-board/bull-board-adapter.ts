import { InvalidOptionError } from '../delay-queue.errors.js';
import type { DelayQueueInspector } from '../inspection/delay-queue.inspector.js';
import { queueNameOf } from '../job/queue-definition.js';
import type { QueueRef } from '../job/queue-definition.js';
import type { DelayQueueProducer } from '../producer/delay-queue.producer.js';
import type { JobState } from '../redis/letters.js';
import { BoardJob, STATUSES } from './board-job.js';

/** What the board asks of one queue. */
export interface BoardServices {
  readonly inspector: DelayQueueInspector;
  readonly producer: DelayQueueProducer;
}

const PAGE = 200;
/** The board pages by offset, for which all jobs before it are read. */
const MOST_BEFORE = 10_000;
const STATES = new Map(Object.entries(STATUSES).map(([state, status]) => [status as string, state as JobState]));

function refuse(act: string, instead: string): never {
  throw new InvalidOptionError(`The board cannot ${act} of nestjs-delay-queue. ${instead}`);
}

/** What the board asks of queues of BullMQ, and this library has not. */
const ABSENT = {
  getJobLogs: async () => [],
  getMetrics: async () => ({ meta: { count: 0, prevTS: 0, prevCount: 0 }, data: [], count: 0 }),
  getRedisInfo: async () => null,
  getGlobalConcurrency: async () => null,
  setGlobalConcurrency: async () => refuse('limit a queue', 'Set its `limits`.'),
  getJobSchedulers: async () => [],
  getJobSchedulersCount: async () => 0,
  removeJobScheduler: async () => false,
  updateJobScheduler: async () => 'not-found',
  runJobSchedulerNow: async () => 'not-found',
};

/**
 * Experimental: a queue of this library on a bull-board, beside those of Bull and BullMQ.
 *
 * @param BaseAdapter the class of your bull-board, from `@bull-board/api/dist/queueAdapters/base.js`: one of another version
 *   would make the whole board fail
 * @param options those of the board's adapters: `readOnlyMode`, `description`, `prefix`, `delimiter`, ...
 */
export function delayQueueBoardAdapter<Base extends object>(
  BaseAdapter: { readonly prototype: Base },
  ref: QueueRef,
  { inspector, producer }: BoardServices,
  options: object = {},
): Base {
  const queue = queueNameOf(ref);
  const Parent = BaseAdapter as unknown as new (type: string, options: object) => { readonly prefix: string };
  const toBoard = (job: ConstructorParameters<typeof BoardJob>[0]) => new BoardJob(job, inspector, producer);

  class DelayQueueBoardAdapter extends Parent {
    constructor() {
      // It must be one of the two that the board knows.
      super('bullmq', options);
      Object.assign(this, ABSENT);
    }
    getName = () => `${this.prefix}${queue}`;
    getStatuses = () => ['latest', ...STATES.keys()];
    getJobStatuses = () => [...STATES.keys()];
    getJobCounts = async () => {
      const counts = await inspector.counts(queue);
      return Object.fromEntries([...STATES].map(([status, state]) => [status, counts[state]]));
    };
    getJobs = async (statuses: readonly string[], start = 0, end = -1) => {
      const states = statuses.map((status) => STATES.get(status)).filter((state) => state !== undefined);
      // To BullMQ an end of -1 is the last job. Nobody looks through more of them, and all are held in memory.
      const last = end < 0 ? MOST_BEFORE - 1 : end;
      const pages = await Promise.all(states.map((state) => jobsBetween(inspector, queue, state, start, last)));
      return pages.flat().map(toBoard);
    };
    getJob = async (id: string) => {
      const job = await producer.get(queue, id);
      return job && toBoard(job);
    };
    addJob = async (_: string, data: unknown, { delay, attempts, jobId }: Record<string, any> = {}) => {
      const { id } = await producer.enqueue(queue, data, {
        ...(delay !== undefined && { delay }),
        ...(attempts !== undefined && { attempts }),
        ...(jobId !== undefined && { id: jobId }),
      });
      return this.getJob(id);
    };
    isPaused = async () => (await inspector.counts(queue)).paused;
    pause = () => inspector.pause(queue);
    resume = () => inspector.resume(queue);
    clean = async (status: string) => {
      if (status === 'failed') await inspector.removeDead(queue, 'all');
      else if (status === 'completed') await inspector.purge(queue, { states: ['completed'] });
      else refuse(`clean ${status} jobs`, 'DelayQueueInspector.bulk.cancel() takes those of a range of due times.');
    };
    empty = async () => refuse('empty a queue', 'DelayQueueInspector.purge() does it in bounded steps.');
    obliterate = async () => refuse('obliterate a queue', 'DelayQueueInspector.remove() deletes one with its keys.');
    promoteAll = async () =>
      refuse(
        'promote all jobs',
        'DelayQueueInspector.bulk.runNow() takes those of a range, and bulk.reschedule() spreads them.',
      );
  }
  return new DelayQueueBoardAdapter() as unknown as Base;
}

async function jobsBetween(inspector: DelayQueueInspector, queue: string, state: JobState, start: number, end: number) {
  if (start >= MOST_BEFORE) {
    refuse(
      `show jobs behind the first ${MOST_BEFORE}`,
      'DelayQueueInspector.list() has a cursor, and ranges of due times.',
    );
  }
  const found = [];
  let cursor: string | undefined;
  do {
    const limit = Math.min(PAGE, end + 1 - found.length);
    if (limit <= 0) break;
    const page = await inspector.list(queue, state, { limit, ...(cursor !== undefined && { cursor }) });
    found.push(...page.jobs);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found.slice(start, end + 1);
}
