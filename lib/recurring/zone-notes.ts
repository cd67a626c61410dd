import type { Failure } from '../producer/call.js';
import type { EnqueueBatcher } from '../producer/enqueue-batcher.js';
import type { PlannedJob } from '../producer/job-planner.js';
import { OncePerTurn } from '../once-per-turn.js';
import { MAX_JOBS } from '../redis/enqueue.protocol.js';
import { ZONE_DATA } from './zone-data.js';

type AtLocalTime = Pick<PlannedJob, 'id' | 'zonedAt'>;

/**
 * Notes jobs at a local time before they are stored: a process that dies between the two leaves a note that nobody misses.
 *
 * @returns why they must not be enqueued, in words for one of them; undefined when they are noted
 */
export async function noteZones(
  batcher: EnqueueBatcher,
  jobs: readonly AtLocalTime[],
  call = 'enqueue',
): Promise<Failure | undefined> {
  const notes = jobs.flatMap(({ id, zonedAt }) => (zonedAt === undefined ? [] : [id, zonedAt]));
  if (notes.length === 0) return undefined;
  const answer = await batcher.ask('zone', [ZONE_DATA, ...notes], { call, prepares: true });
  return typeof answer === 'function' ? answer : undefined;
}

/** The same of one job: those of one turn of the event loop travel together. @throws what it must not be enqueued for */
export async function noteZone(batcher: EnqueueBatcher, job: AtLocalTime, call = 'enqueue'): Promise<void> {
  let ofBatcher = notes.get(batcher);
  if (!ofBatcher) notes.set(batcher, (ofBatcher = {}));
  const failure = await (ofBatcher[call] ??= new NotesOfATurn(batcher, call)).add(job);
  if (failure) throw failure(job.id);
}

const notes = new WeakMap<EnqueueBatcher, Record<string, NotesOfATurn>>();

interface Noted {
  readonly job: AtLocalTime;
  readonly tell: (failure: Failure | undefined) => void;
}

/** A call for each of them would make many at once wait for each other until their time is over. */
class NotesOfATurn {
  #waiting: Noted[] = [];
  readonly #sendSoon = new OncePerTurn(() => this.#send());

  constructor(
    private readonly batcher: EnqueueBatcher,
    private readonly call: string,
  ) {}

  add(job: AtLocalTime): Promise<Failure | undefined> {
    return new Promise((tell) => {
      this.#waiting.push({ job, tell });
      this.#sendSoon.schedule();
    });
  }

  #send(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (let at = 0; at < waiting.length; at += MAX_JOBS) void this.#sendTogether(waiting.slice(at, at + MAX_JOBS));
  }

  async #sendTogether(together: readonly Noted[]): Promise<void> {
    const jobs = together.map(({ job }) => job);
    const failure = await noteZones(this.batcher, jobs, this.call);
    for (const { tell } of together) tell(failure);
  }
}
