import type { RedisConnection } from '../../redis/redis.connection.js';
import { clearInterval, randomBytes, setInterval, sleep } from '../../time-and-randomness.js';
import { CommandError, EXIT } from '../exit-codes.js';
import { FORGET, GIVE_BACK, KEEP_LOCK, PARKED, TAKE, UNLOCK } from './bullmq-scripts.js';

/** Where a job of BullMQ waits: delayed, in the list, in the list of a paused queue, or among those with a priority. */
export type Place = 'd' | 'w' | 's' | 'p';

/** Of a place: where workers take jobs, or the other one. */
export type End = 'front' | 'back';

export const PLACES: readonly Place[] = ['w', 's', 'p', 'd'];

export interface BullJob {
  readonly id: string;
  readonly place: Place;
  /** In a sorted set, as Redis writes it; else 0. */
  readonly score: string;
  readonly name: string;
  readonly data: string;
  readonly opts: string;
  /** When it was added, and by how much it was put off: ms. */
  readonly timestamp: number;
  readonly delay: number;
  /** Of a delayed one: when it is due. */
  readonly dueAt: number | undefined;
  readonly attemptsMade: number;
  /** Of a scheduler, of a flow. */
  readonly ofScheduler: boolean;
  readonly ofFlow: boolean;
  readonly deduplication: string;
}

/** Noted of a job that is on its way. */
export interface Held {
  readonly job: BullJob;
  readonly parked: boolean;
  /** What the import noted when it took the job. */
  readonly note: string;
}

const NAMES: Record<Place, string> = { d: 'delayed', w: 'wait', s: 'paused', p: 'prioritized' };
const FIELDS = ['name', 'data', 'opts', 'timestamp', 'delay', 'atm', 'rjk', 'parentKey', 'deid'] as const;
/** What a parent knows of its children stands in keys beside its own. */
const CHILDREN = ['dependencies', 'processed', 'failed', 'unsuccessful'] as const;
/** A delayed job has its due time in the upper bits of its score. */
const STEPS_PER_MS = 4_096;
const LOCK_MS = 10_000;
const KEEP_LOCK_EVERY_MS = 2_500;
const ASK_AGAIN_MS = 500;

/** A queue of BullMQ, as versions 5 and 6 store it. */
export class BullmqSource {
  readonly #token = randomBytes(9).toString('base64url');
  #keeping: NodeJS.Timeout | undefined;

  constructor(
    private readonly connection: RedisConnection,
    private readonly prefix: string,
    readonly queue: string,
  ) {}

  key(name: string): string {
    return `${this.prefix}:${this.queue}:${name}`;
  }

  async exists(): Promise<boolean> {
    const { commands } = this.connection;
    const keys = [this.key('meta'), this.key('id'), this.key('dq-import')];
    const found = await Promise.all(keys.map((key) => this.connection.send(() => commands.exists(key), key)));
    return found.some((count) => count > 0);
  }

  /** Jobs that are not for an import. */
  async others(): Promise<{ active: number; failed: number; completed: number }> {
    const { commands } = this.connection;
    const count = (name: string) => this.connection.send(() => commands.zcard(this.key(name)));
    const active = this.connection.send(() => commands.llen(this.key('active')));
    const [running, failed, completed] = await Promise.all([active, count('failed'), count('completed')]);
    return { active: running, failed, completed };
  }

  /** Jobs at a place, from the end where they are taken first or from the other one, behind the `offset` ones that are next to it. */
  async page(place: Place, from: End, offset: number, most: number): Promise<BullJob[]> {
    const { commands } = this.connection;
    const key = this.key(NAMES[place]);
    const isList = place === 'w' || place === 's';
    // Workers take from the right of a list, and from the left of a sorted set.
    const fromLeft = isList === (from === 'back');
    const [start, stop] = fromLeft ? [offset, offset + most - 1] : [-(offset + most), -(offset + 1)];
    const entries: { id: string; place: Place; score: string }[] = [];
    if (isList) {
      const ids = await this.connection.send(() => commands.lrange(key, start, stop), key);
      entries.push(...ids.map((id) => ({ id, place, score: '0' })));
    } else {
      const flat = await this.connection.send(
        () => commands.zrange(key, String(start), String(stop), 'WITHSCORES'),
        key,
      );
      for (let i = 0; i < flat.length; i += 2) entries.push({ id: flat[i]!, place, score: flat[i + 1]! });
    }
    return this.#read(fromLeft ? entries : entries.toReversed());
  }

  async isPaused(): Promise<boolean> {
    const key = this.key('meta');
    const [paused] = await this.connection.send(() => this.connection.commands.hmget(key, 'paused'), key);
    return paused !== null;
  }

  async size(): Promise<number> {
    const { commands } = this.connection;
    const counts = PLACES.map((place) => {
      const key = this.key(NAMES[place]);
      return this.connection.send(
        () => (place === 'w' || place === 's' ? commands.llen(key) : commands.zcard(key)),
        key,
      );
    });
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  }

  async #read(entries: readonly { id: string; place: Place; score: string }[]): Promise<BullJob[]> {
    const { commands } = this.connection;
    return Promise.all(
      entries.map(async ({ id, place, score }) => {
        const key = this.key(id);
        // Of what is no hash nothing can be read, as of what is gone: one such key must not hold up all others.
        const values = await this.connection
          .send(() => commands.hmget(key, ...FIELDS), key)
          .catch((error: Error) => {
            if (error.message.startsWith('WRONGTYPE')) return FIELDS.map(() => null);
            throw error;
          });
        const [name, data, opts, timestamp, delay, atm, rjk, parentKey, deid] = values;
        const ofChildren = CHILDREN.map((kind) => `${key}:${kind}`);
        const isParent = (await this.connection.send(() => commands.exists(...ofChildren), key)) > 0;
        return {
          id,
          place,
          score,
          name: name ?? '',
          data: data ?? '',
          opts: opts ?? '{}',
          timestamp: Number(timestamp ?? 0),
          delay: Number(delay ?? 0),
          dueAt: place === 'd' ? Math.floor(Number(score) / STEPS_PER_MS) : undefined,
          attemptsMade: Number(atm ?? 0),
          ofScheduler: rjk !== null || id.startsWith('repeat:'),
          ofFlow: parentKey !== null || isParent,
          deduplication: deid ?? '',
        };
      }),
    );
  }

  /** Waits for another import that has not shown itself for a while, as one that was killed. @throws CommandError */
  async lock(waiting: () => void): Promise<void> {
    const { commands } = this.connection;
    const key = this.key('dq-import-lock');
    for (let waited = 0; waited <= LOCK_MS + ASK_AGAIN_MS; waited += ASK_AGAIN_MS) {
      if (await this.connection.send(() => commands.set(key, this.#token, 'PX', LOCK_MS, 'NX'), key))
        return this.#keepLock();
      waiting();
      await sleep(ASK_AGAIN_MS);
    }
    throw new CommandError(EXIT.refused, `Another import of "${this.queue}" goes on.`);
  }

  /** Large jobs and slow connections take longer than a lock lasts. That it was lost, the next step says. */
  #keepLock(): void {
    this.#keeping = setInterval(() => void this.#eval(KEEP_LOCK, [], []).catch(() => undefined), KEEP_LOCK_EVERY_MS);
  }

  async unlock(): Promise<void> {
    clearInterval(this.#keeping);
    const key = this.key('dq-import-lock');
    await this.connection.send(() => this.connection.commands.eval(UNLOCK, 1, key, this.#token), key);
  }

  /** Jobs that an import has taken and not brought to an end, a part of them. */
  async held(): Promise<Held[]> {
    const key = this.key('dq-import');
    const [, flat] = await this.connection.send(() => this.connection.commands.hscan(key, '0', 'COUNT', 200), key);
    const notes = [];
    for (let i = 0; i < flat.length; i += 2) {
      const [, phase, place, score, note] = /^(\w) (\w) (\S+) (.*)$/s.exec(flat[i + 1]!) ?? [];
      if (note !== undefined)
        notes.push({ id: flat[i]!, place: place as Place, score: score!, parked: phase === 'p', note });
    }
    const jobs = await this.#read(notes);
    return notes.map(({ parked, note }, n) => ({ job: jobs[n]!, parked, note }));
  }

  /** @returns those that were still there, and due when they were read to be: BullMQ puts off jobs meanwhile */
  async take<Taken extends { job: BullJob; note: string }>(jobs: readonly Taken[]): Promise<Taken[]> {
    const args = jobs.flatMap(({ job, note }) => [job.place, job.id, job.score, note]);
    const gone = (await this.#eval(TAKE, this.#places(), args)) as number[];
    return jobs.filter((_, n) => gone[n] === 1);
  }

  async parked(jobs: readonly BullJob[]): Promise<void> {
    await this.#eval(PARKED, [], jobs.map(({ id }) => id)); // prettier-ignore
  }

  async forget(jobs: readonly BullJob[]): Promise<void> {
    const keys = jobs.flatMap(({ id, deduplication }) => {
      const job = this.key(id);
      return [job, `${job}:logs`, deduplication === '' ? job : this.key(`de:${deduplication}`)];
    });
    await this.#eval(FORGET, keys, jobs.map(({ id }) => id)); // prettier-ignore
  }

  async giveBack(jobs: readonly BullJob[]): Promise<void> {
    if (jobs.length === 0) return;
    await this.#eval(GIVE_BACK, [...this.#places(), this.key('marker')], jobs.map(({ id }) => id)); // prettier-ignore
  }

  #places(): string[] {
    return (['d', 'w', 's', 'p'] as const).map((place) => this.key(NAMES[place]));
  }

  #eval(script: string, others: readonly string[], args: readonly string[]): Promise<unknown> {
    const keys = [this.key('dq-import-lock'), this.key('dq-import'), ...others];
    const { commands } = this.connection;
    return this.connection.send(
      () => commands.eval(script, keys.length, ...keys, this.#token, String(LOCK_MS), ...args),
      keys[0],
    );
  }
}
