import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Settlement } from '../../lib/worker/settlement.js';
import type { Ending, Peer } from './peer.js';
import { place } from './placed.js';
import type { PlacedJob } from './placed.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

const here = shards();
const SEQUENCES = 30;
const OPERATIONS = 40;
const GROUPS = [undefined, 'a', 'b', 'c'] as const;
const seed = Number(process.env['GROUPS_SEED'] ?? Date.now() % 1_000_000);

interface Limits {
  count: number;
  groupCount: number;
}

function atMost(what: string, running: number, most: number): void {
  if (running > most) throw new Error(`${what} runs ${running} jobs, and may run ${most}`);
}

/** Any sequence of calls by three workers, of which some die. */
class Sequence {
  readonly #peers: readonly Peer[];
  readonly #groups = new Map<string, string | undefined>();
  /** What workers run: claim numbers by id. */
  readonly #running = new Map<string, number>();
  #limits: Limits = { count: 1_000, groupCount: 1_000 };
  #jobs = 0;
  #state: number;

  constructor(
    private readonly shard: Shard,
    start: number,
  ) {
    this.#state = start;
    this.#peers = [1, 2, 3].map(() => shard.peer());
  }

  #random(below: number): number {
    this.#state = (this.#state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((this.#state / 2 ** 31) * below);
  }

  #one<T>(all: readonly T[]): T {
    return all[this.#random(all.length)]!;
  }

  async run(): Promise<void> {
    const { shard } = this;
    const acts = [
      () => this.#store(),
      () => this.#store(),
      () => this.#claim(),
      () => this.#claim(),
      () => this.#end(),
      () => this.#end(),
      () => this.#die(),
      () => this.#quarantined(),
      () => shard.producer.cancel(shard.queue, this.#anyId(), { running: this.#random(2) === 1 }),
      () => shard.producer.reschedule(shard.queue, this.#anyId(), { delay: this.#random(2) * HOUR }),
      () => this.#replace(),
      () => this.#limit(),
    ];
    for (let n = 0; n < OPERATIONS; n++) {
      await this.#one(acts)();
      const problems = await shard.problems();
      if (problems.length > 0) throw new Error(problems.join(', '));
    }
    await this.#drain();
  }

  #anyId(): string {
    return `j${this.#random(Math.max(1, this.#jobs))}`;
  }

  async #store(): Promise<void> {
    const now = await this.shard.now();
    const jobs: PlacedJob[] = [];
    for (let n = 1 + this.#random(4); n > 0; n--) {
      const [id, group] = [`j${this.#jobs++}`, this.#one(GROUPS)];
      this.#groups.set(id, group);
      const priority = this.#random(3) * 4;
      const at = now - this.#random(5) * 60_000 + (this.#random(5) === 0 ? HOUR : 0);
      jobs.push({ id, group, priority, spec: `ka${at}` });
    }
    await place(this.shard, ...jobs);
  }

  /** A waiting job may change its group; one that runs does so when its run has ended. */
  async #replace(): Promise<void> {
    const [id, group] = [this.#anyId(), this.#one(GROUPS)];
    const { state } = await this.shard.see(id);
    if (state === 'none') return;
    if (state !== 'running') this.#groups.set(id, group);
    const asRunning = state === 'running' ? this.#groups.get(id) : group;
    await place(this.shard, { id, group: asRunning, priority: 1, spec: 'pd0', payload: 'new' });
  }

  async #limit(): Promise<void> {
    this.#limits = { count: 1 + this.#random(5), groupCount: 1 + this.#random(2) };
    const text = `count:${this.#limits.count} groupCount:${this.#limits.groupCount}`;
    await this.shard.run('limit', this.shard.keys.session('none'), [text, 'c']);
  }

  async #claim(settle: readonly Ending[] = []): Promise<void> {
    const before = new Set(this.#running.keys());
    const { claim, jobs } = await this.#one(this.#peers).step({ limit: 1 + this.#random(6), settle });
    for (const { id } of jobs) {
      if (before.has(id)) throw new Error(`${id} was claimed while it ran`);
      this.#running.set(id, claim);
    }
    if (jobs.length > 0) await this.#checkLimits(jobs.map(({ id }) => id));
  }

  /** Of what just started: neither its group nor the queue has more than it may. */
  async #checkLimits(started: readonly string[]): Promise<void> {
    const { running, quarantine } = await this.shard.read();
    atMost('the queue', Object.keys(running).length, this.#limits.count);
    const held = [...Object.keys(running), ...Object.keys(quarantine)].map((id) => this.#groups.get(id));
    for (const group of new Set(started.map((id) => this.#groups.get(id)))) {
      if (group === undefined) continue;
      atMost(`group ${group}`, held.filter((of) => of === group).length, this.#limits.groupCount);
    }
    if (new Set(started).size < started.length) throw new Error('a job was claimed twice at once');
  }

  async #end(): Promise<void> {
    const [id, claim] = this.#one([...this.#running]) ?? [];
    if (id === undefined) return;
    this.#running.delete(id);
    const settlement = this.#one<Settlement>([
      { verb: 'complete' },
      { verb: 'complete' },
      { verb: 'retry', delayMs: 0, error: '{}' },
      { verb: 'snooze', delayMs: this.#random(2) * HOUR },
      { verb: 'release', dueAt: (await this.shard.now()) - 1 },
      { verb: 'dead', reason: 'discarded', error: '{}', charge: false },
    ]);
    await this.#claim([[claim!, id, settlement]]);
  }

  /** A process is killed, and another one finds its lease over. */
  async #die(): Promise<void> {
    const [, claim] = this.#one([...this.#running]) ?? [];
    if (claim === undefined) return;
    for (const [id, of] of this.#running) if (of === claim) this.#running.delete(id);
    if ((await this.shard.read()).leases[claim] === undefined) return;
    await this.shard.expire(claim);
    await this.#one(this.#peers).step({ sweep: true });
  }

  async #quarantined(): Promise<void> {
    const { claim, jobs } = await this.#one(this.#peers).step({ quarantineLimit: 2, isSole: true });
    for (const { id } of jobs) this.#running.set(id, claim);
  }

  /** Nothing that is due is left where there is room for it. */
  async #drain(): Promise<void> {
    for (let round = 0; round < 200; round++) {
      const settle = [...this.#running].map(([id, claim]): Ending => [claim, id, { verb: 'complete' }]);
      this.#running.clear();
      await this.#claim(settle);
      await this.#quarantined();
      const { due } = await this.shard.read();
      const now = await this.shard.now();
      const left = Object.values(due).some((at) => at <= now);
      const problems = await this.shard.problems();
      if (problems.length > 0) throw new Error(`while jobs drain: ${problems.join(', ')}`);
      if (!left && this.#running.size === 0) return;
    }
    throw new Error('jobs are due, and nobody gets them');
  }
}

describe('any sequence of calls by workers of which some die', () => {
  let shard: Shard;
  beforeEach(() => {
    shard = here.fresh();
  });

  it(`keeps indexes and limits, and leaves no job behind (GROUPS_SEED=${seed})`, async () => {
    for (let n = 0; n < SEQUENCES; n++) {
      const each = here.fresh();
      await new Sequence(each, seed + n).run().catch((error: unknown) => {
        throw new Error(`sequence ${n}: ${String(error)}`, { cause: error });
      });
    }
    expect(await shard.problems()).toEqual([]);
  });
});
