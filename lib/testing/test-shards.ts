import { parseCounts } from '../redis/counts.protocol.js';
import type { ShardStore } from '../redis/shard-store.js';
import { queueNamesKey, scheduleKeys, ShardKeys } from '../redis/keys.js';
import { NOTHING_ASKED } from '../redis/step.protocol.js';
import { countIn } from '../shards/shard-state.js';
import type { DelayQueueRunner } from '../worker/delay-queue.runner.js';
import type { QueueWorker } from '../worker/queue-worker.js';
import type { TestStore } from './test-store.js';
import { TestWorker } from './test-worker.js';

/** One shard as the harness sees it. */
export interface TestShard {
  readonly store: ShardStore;
  /** Its keys by name. */
  readonly key: Readonly<Record<'due' | 'running' | 'leases' | 'quarantine' | 'dead' | 'meta' | 'completed', string>>;
  /** What works on it here, if anything does. */
  readonly worker: TestWorker | undefined;
  /** Name of the handler, for messages. */
  readonly handler: string | undefined;
  /** Claims whose leases are renewed here. */
  readonly kept: readonly number[];
}

/** One in which something could run at once, and how many jobs are due in it. */
export interface WaitingShard extends TestShard {
  readonly due: number;
}

/** Jobs that one sweep buries or forgets at most (lib/lua/step.lua); more of them need more sweeps. */
const MOST_SWEEPS = 1_000;
/** One that was on its way, and one for what is needed now. */
const MOST_TICKS = 3;

/** All shards of an application's queues: what is stored in them that time concerns. */
export class TestShards {
  constructor(
    private readonly runner: DelayQueueRunner,
    private readonly store: TestStore,
  ) {}

  /** Queues that were ever used, and those that are handled here. */
  async all(): Promise<TestShard[]> {
    const { runner, store } = this;
    const names = (await store.command('SMEMBERS', queueNamesKey(runner.options.prefix))) as string[];
    return this.#of(new Set([...runner.workers.keys(), ...names]));
  }

  async #of(queues: Iterable<string>): Promise<TestShard[]> {
    const { runner } = this;
    const known = await Promise.all(
      Array.from(queues, async (queue) => ({ queue, stores: await this.#storesOf(queue) })),
    );
    // Nothing is awaited from here on: who waits next must know the claims of this moment.
    return known.flatMap(({ queue, stores }) => {
      const workers = runner.workers.get(queue);
      const handled = workers ? testWorkers(workers) : [];
      const pulls = runner.pullers.filter((puller) => puller.queue === queue).map(testWorkers);
      return stores.map((shard, index) => {
        return {
          store: shard,
          key: shard.keys.named('due', 'running', 'leases', 'quarantine', 'dead', 'meta', 'completed'),
          worker: handled[index],
          handler: workers && runner.handlers.get(queue)?.name,
          kept: [handled, ...pulls].flatMap((of) => of[index]?.keptClaims ?? []),
        };
      });
    });
  }

  /** Of a queue that is not ours as many shards as it has, which only those know who work on it. */
  async #storesOf(queue: string): Promise<readonly ShardStore[]> {
    const { workers, pulled, options, shards } = this.runner;
    if (workers.has(queue) || pulled.has(queue) || options.queues[queue]?.shards !== undefined)
      return shards.stores(queue);
    const { meta } = new ShardKeys(options.prefix, queue).named('meta');
    const count = countIn((await this.store.command('HGET', meta, 'needs')) as string | null);
    return count === undefined ? shards.stores(queue) : shards.storesFor(queue, count);
  }

  /** Those in which something could run at once. */
  async waiting(): Promise<WaitingShard[]> {
    const { store } = this;
    const found: WaitingShard[] = [];
    for (const shard of await this.#workedOn()) {
      const quarantine = Number(await store.command('ZCARD', shard.key.quarantine));
      const limits = await this.#limitsOf(shard);
      if (limits) {
        const { nextStartAt = Infinity, limited } = limits;
        if (nextStartAt <= store.serverNow() || (quarantine > 0 && !limited)) found.push({ ...shard, due: limits.due });
        continue;
      }
      const due = Number(await store.command('ZCOUNT', shard.key.due, '-inf', String(store.serverNow())));
      if (due + quarantine > 0) found.push({ ...shard, due });
    }
    return found;
  }

  /** Waits until the schedules stand in Redis that handlers declare. The application began with it at its boot. */
  async declared(): Promise<void> {
    for (const ticker of this.runner.tickers.all.values()) {
      for (let tries = 0; tries < MOST_TICKS && !ticker.hasBegun; tries++) await ticker.tick();
    }
  }

  /** The same where all was removed. Told by the tickers from what they miss, and not from when it is made: time may stand still. */
  async declaredAnew(): Promise<void> {
    for (const ticker of this.runner.tickers.all.values()) {
      // One that was on its way has looked before.
      await ticker.tick();
      await ticker.tick();
    }
  }

  /** Makes the occurrences of schedules that are needed by now. */
  async tick(): Promise<void> {
    for (const [queue, ticker] of this.runner.tickers.all) {
      for (const shard of this.runner.shards.stores(queue)) {
        // A tick that was on its way may have looked before the time was moved.
        for (let tries = 0; tries < MOST_TICKS && (await this.#nextTick(shard)) <= this.store.serverNow(); tries++) {
          await ticker.tick();
        }
      }
    }
  }

  async #nextTick({ keys }: ShardStore): Promise<number> {
    const [, head] = (await this.store.command(
      'ZRANGE',
      scheduleKeys(keys.fixed)[1]!,
      '0',
      '0',
      'WITHSCORES',
    )) as string[];
    return head === undefined ? Infinity : Number(head);
  }

  /** What holds jobs of this shard back, if it uses groups, priorities or limits. */
  async #limitsOf({ store, key }: TestShard) {
    const needs = (await this.store.command('HGET', key.meta, 'needs')) as string | null;
    if (!needs?.split(' ').includes('limits')) return undefined;
    const { limits, due } = parseCounts(await store.call('counts', []));
    return limits && { ...limits, due };
  }

  /**
   * The next moment at which a job becomes due here, or a lease ends that nobody here renews; and, if `ticks`, at which a schedule
   * needs more occurrences.
   */
  async nextMoment(ticks: boolean): Promise<number> {
    let next = Infinity;
    for (const shard of await this.#workedOn()) {
      if (ticks) {
        const tick = await this.#nextTick(shard.store);
        if (tick > this.store.serverNow()) next = Math.min(next, tick);
      }
      const limits = await this.#limitsOf(shard);
      if (limits) {
        next = Math.min(next, limits.nextStartAt ?? Infinity);
        continue;
      }
      const [, head] = (await this.store.command('ZRANGE', shard.key.due, '0', '0', 'WITHSCORES')) as string[];
      if (head !== undefined) next = Math.min(next, Number(head));
    }
    for (const shard of await this.all()) next = Math.min(next, await this.#nextLoss(shard));
    return next;
  }

  /** Takes back what lost its lease, forgets what is too old, in all shards. */
  async sweep(): Promise<void> {
    for (const shard of await this.all()) await this.#sweep(shard, () => this.#isTooOld(shard));
  }

  /** Takes back what lost its lease: workers would, too, by the process's clock. */
  async takeBack(): Promise<void> {
    for (const shard of await this.all()) {
      const isLost = async () => (await this.#nextLoss(shard)) <= this.store.serverNow();
      if (await isLost()) await this.#sweep(shard, isLost);
    }
  }

  async #sweep({ store, worker }: TestShard, again: () => Promise<boolean>): Promise<void> {
    const { defaults, deadLetters } = this.runner.options;
    const settings = this.runner.workers.get(store.queue)?.settings;
    const request = {
      ...NOTHING_ASKED,
      sweep: true,
      leaseMs: settings?.leaseMs ?? defaults.leaseMs,
      keepCompleted: settings?.keepCompleted,
      deadLetters,
    };
    const [session, name] = [store.session(), store.workerName()];
    // The clock was moved by hand, and this one try must not be refused for an idea of the time from before.
    store.learnTime(this.store.serverNow());
    for (let sweeps = 0; sweeps < MOST_SWEEPS; sweeps++) {
      await store.step(session, name, request, () => true);
      if (!(await again())) break;
    }
    worker?.wake();
  }

  async #isTooOld({ store, key }: TestShard): Promise<boolean> {
    const { deadLetters } = this.runner.options;
    const before = (ms: number) => String(this.store.serverNow() - ms);
    if (Number(await this.store.command('ZCOUNT', key.dead, '-inf', before(deadLetters.maxAgeMs))) > 0) return true;
    const kept = this.runner.workers.get(store.queue)?.settings.keepCompleted;
    return !!kept && Number(await this.store.command('ZCOUNT', key.completed, '-inf', before(kept.ageMs))) > 0;
  }

  async #nextLoss({ key, kept }: TestShard): Promise<number> {
    const flat = (await this.store.command('ZRANGE', key.leases, '0', '-1', 'WITHSCORES')) as string[];
    for (let at = 0; at < flat.length; at += 2) {
      if (!kept.includes(Number(flat[at]))) return Math.floor(Number(flat[at + 1])) + 1;
    }
    return Infinity;
  }

  /** Those that have a handler here and are not paused; what others wait for is not ours to run. */
  async #workedOn(): Promise<(TestShard & { worker: TestWorker })[]> {
    const found: (TestShard & { worker: TestWorker })[] = [];
    for (const shard of await this.#of(this.runner.workers.keys())) {
      const { worker } = shard;
      if (worker && (await this.store.command('HGET', shard.key.meta, 'paused')) !== '1') {
        found.push({ ...shard, worker });
      }
    }
    return found;
  }
}

/** One per shard. */
export function testWorkers({ shards }: QueueWorker): TestWorker[] {
  return Array.from(shards, (shard) => new TestWorker(shard));
}
