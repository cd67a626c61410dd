import { InvalidOptionError, ShardCountError } from '../delay-queue.errors.js';
import { LEASE_MS } from '../job/queue-definition.js';
import { shardName } from '../redis/keys.js';
import type { RedisConnection } from '../redis/redis.connection.js';
import { baseState, changeState, parseChange, shardTaken, storedCount, WHILE_EMPTY } from './shard-state.js';
import type { ShardChange, ShardState } from './shard-state.js';
import { ShardStore } from '../redis/shard-store.js';
import type { Handover } from '../producer/handover.js';
import { onceOverEachLink, ShardEmptier } from './shard-emptier.js';
import type { Giving } from './shard-emptier.js';
import { limitsFor } from './limits-to-share.js';
import { ShardMarks } from './shard-marks.js';
import { NOTHING_ASKED } from '../redis/step.protocol.js';
import { performance, randomBytes, sleep } from '../time-and-randomness.js';

const LOOK_AGAIN_MS = 200;
const COUNTERS = ['enqueued', 'completed', 'failed', 'retried', 'dead', 'expired', 'skipped'] as const;

export interface ReshardResult {
  readonly from: number;
  readonly to: number;
  /** Jobs, dead letters, uniqueness windows and schedules that changed their shard. */
  readonly moved: number;
}

/**
 * Changes the number of shards of one queue, without losing or doubling a job, in bounded steps.
 *
 * The state under the name of the queue says how far it is (lib/shards/shard-state.ts), so that a run that was killed
 * is finished by the next one. Shards lie in different slots and a script sees one of them: a job is copied to its
 * destination, which ignores jobs that it has already, and then deleted at its origin. Meanwhile every shard is shut,
 * so a copy cannot run while the original is still there. Scripts check the mark of this very change, so a late call
 * changes nothing.
 */
export class Resharding {
  readonly #base: ShardMarks;
  #moved = 0;

  constructor(
    private readonly connection: RedisConnection,
    private readonly prefix: string,
    private readonly queue: string,
    /** Not needed where nothing is to be moved. */
    private readonly handover?: Handover,
  ) {
    this.#base = this.#tag(queue);
  }

  /**
   * @param from refuses when the queue has another number of shards
   * @param waitMs how long running jobs may take to end
   * @throws ShardCountError, InvalidOptionError, InvalidQueueError, errors of the connection
   */
  async run({ from, to, waitMs }: { from?: number; to: number; waitMs: number }): Promise<ReshardResult> {
    for (;;) {
      const begun = await this.#begin(from, to, '');
      if (begun === undefined) return { from: from ?? to, to, moved: this.#moved };
      try {
        if (!(await this.#carryOut(begun, waitMs, ''))) throw this.#stillRunning(begun, waitMs);
        return { from: begun.from, to, moved: this.#moved };
      } catch (error) {
        // Another process has finished the same change meanwhile: read the present state.
        if (!(error instanceof Error && error.message.startsWith('DQMOVED'))) throw error;
        from = undefined;
      }
    }
  }

  /** @returns false, and nothing has changed, when the queue holds anything */
  async runIfEmpty(from: number, to: number): Promise<boolean> {
    for (const tag of this.#tags(from)) {
      const state = await tag.state();
      // Writes the state that is already there: a no-op that only evaluates condition `e`. Test before closing: closing
      // a busy queue in vain stalls its users.
      if ((await tag.mark(state, 'e', [state])).outcome === 'b') return false;
    }
    const begun = await this.#begin(from, to, WHILE_EMPTY);
    return begun === undefined || this.#carryOut(begun, 0, 'e');
  }

  /** Finishes a change that another process began while the queue was empty, or takes it back. */
  async finishIfEmpty(change: ShardChange): Promise<void> {
    if (change.phase === '^') await this.#finishTakingBack(change);
    else await this.#carryOut(change, 0, 'e');
  }

  async #begin(from: number | undefined, to: number, kind: string): Promise<ShardChange | undefined> {
    for (;;) {
      const state = await this.#base.state();
      const begun = parseChange(state);
      if (begun?.phase === '^') {
        await this.#finishTakingBack(begun);
      } else if (begun) {
        if (begun.to === to && (from === undefined || from === begun.from)) return begun;
        throw new InvalidOptionError(
          `reshard("${this.queue}", { to: ${to} }): a change from ${begun.from} to ${begun.to} shards was begun. Finish it ` +
            `first, with { to: ${begun.to} }.`,
        );
      } else {
        const stored = storedCount(this.queue, state);
        if (from !== undefined && from !== stored) throw new ShardCountError(this.queue, stored, from);
        if (stored === to) {
          if (to > 1)
            for (const [index, tag] of this.#tags(to).entries()) await this.reopen(index, to, await tag.state());
          return undefined;
        }
        const change: ShardChange = {
          phase: '~',
          from: stored,
          to,
          mark: kind + randomBytes(6).toString('base64url'),
        };
        if ((await this.#base.mark(changeState(change, '~'), '', [state])).outcome === 'y') return change;
      }
    }
  }

  /** @returns false when it had to be taken back: something runs, or is there that should not be */
  async #carryOut(change: ShardChange, waitMs: number, conditions: string): Promise<boolean> {
    if (change.phase === '~') {
      try {
        if (!(await this.#shut(change, waitMs, conditions))) {
          await this.#takeBack(change);
          return false;
        }
      } catch (error) {
        // Nothing has moved: if this run cannot go on, it must not leave the queue shut.
        await this.#takeBack(change);
        throw error;
      }
    }
    if (change.phase !== '<') await this.#move(change, conditions);
    await this.#open(change);
    return true;
  }

  /** From now on no job starts; running jobs may end within `waitMs`. */
  async #shut(change: ShardChange, waitMs: number, conditions: string): Promise<boolean> {
    const [leaving, moving] = [changeState(change, '~'), changeState(change, '>')];
    const olds = this.#tags(change.from);
    for (const [index, tag] of olds.entries()) {
      if (tag.name === this.queue) continue;
      const own = `${index}/${change.from}`;
      await this.#shutOne(tag, change, leaving, [own, leaving, moving], own);
    }
    for (const tag of this.#onlyNew(change)) await this.#shutOne(tag, change, moving, [moving], `-/${change.from}`);
    // From here on nobody sets other limits.
    await limitsFor(this.queue, change.to, olds, conditions);
    const until = performance.now() + waitMs;
    for (const [index, tag] of olds.entries()) {
      const sweeper = new ShardStore(this.connection, this.prefix, this.queue, index, change.from);
      const session = sweeper.session();
      const sweep = { ...NOTHING_ASKED, sweep: true, leaseMs: await this.#leaseOf(tag) };
      for (;;) {
        const { outcome } = await tag.mark(moving, `r${conditions}`, [leaving, moving]);
        if (outcome === 'y') break;
        if (outcome === 'n') throw this.#crossed();
        if (performance.now() >= until) return false;
        // Dead workers cannot end their jobs, and perhaps no other worker is left to recover them.
        await sweeper.step(session, sweeper.workerName(), sweep, () => true);
        await sleep(Math.max(1, Math.min(LOOK_AGAIN_MS, until - performance.now())));
      }
    }
    if (change.from > 1 && (await this.#base.mark(moving, '', [leaving, moving])).outcome !== 'y')
      throw this.#crossed();
    return true;
  }

  /** Of its workers: by a longer one, as `extend()` gives, a jump of the clock looks like a pause, and live workers lose their jobs. */
  async #leaseOf(tag: ShardMarks): Promise<number> {
    const [last, longest] = (await tag.meta(['lease', 'longestLease'])).map(Number);
    const known = [last, longest].find((ms): ms is number => ms !== undefined && ms >= LEASE_MS.min);
    return Math.min(known ?? Infinity, NOTHING_ASKED.leaseMs);
  }

  /**
   * The mark of one shard. Shards lie in other slots than the name of the queue, so a process that was frozen may come with the
   * mark of a change that is over, and would shut an open shard for good.
   *
   * @param free the state to write back when that happened
   */
  async #shutOne(
    tag: ShardMarks,
    change: ShardChange,
    to: ShardState,
    accepted: readonly ShardState[],
    free: ShardState,
  ): Promise<void> {
    const before = await tag.state();
    if (before === changeState(change, '>')) return;
    const other = parseChange(before);
    const left = other && other.mark !== change.mark;
    // The change whose mark this is, and was not taken away, is over for good when the queue is in another one.
    if (left && !(await this.#isStill(change))) throw this.#crossed();
    const usable = left || before === '' || before.startsWith('-/') || accepted.includes(before);
    const { outcome } = await tag.mark(to, 'u', usable ? [before] : []);
    if (await this.#isStill(change)) {
      if (outcome !== 'y') throw outcome === 'n' && usable ? this.#crossed() : this.#inTheWay(tag);
      return;
    }
    if (outcome === 'y') await tag.mark(before === '' ? free : before, '', [to]);
    throw this.#crossed();
  }

  async #isStill({ mark }: ShardChange): Promise<boolean> {
    return parseChange(await this.#base.state())?.mark === mark;
  }

  /**
   * Opens a shard that was left shut by a change which is over, or was ended by one when there were fewer shards.
   *
   * @param found its state, read before the state of the queue; otherwise it could belong to a change that has begun
   *   since
   * @returns false when there is nothing to repair
   */
  async reopen(index: number, count: number, found: ShardState): Promise<boolean> {
    const ended = found.startsWith('-/');
    if (!(ended || parseChange(found)) || (await this.#base.state()) !== baseState(count)) return false;
    const tag = this.#tag(shardName(this.queue, index, count));
    const own = `${index}/${count}`;
    if ((await tag.mark(own, '', [found])).outcome !== 'y') return false;
    // The mark of a change is of that one only; a shard may end more than once, the last time since the queue was looked at.
    if (!ended || (await this.#base.state()) === baseState(count)) return true;
    await tag.mark(found, '', [own]);
    return false;
  }

  /** Unless another process went on to move jobs. */
  async #takeBack(change: ShardChange): Promise<void> {
    const [leaving, back] = [changeState(change, '~'), changeState(change, '^')];
    if ((await this.#base.mark(back, '', [leaving, back])).outcome === 'y') await this.#finishTakingBack(change);
  }

  /** The name of the queue comes last: it tells the next run what to do, if this one is killed as well. */
  async #finishTakingBack(change: ShardChange): Promise<void> {
    const [leaving, moving, back] = (['~', '>', '^'] as const).map((phase) => changeState(change, phase));
    for (const tag of this.#onlyNew(change)) await tag.mark(`-/${change.from}`, '', [moving!]);
    for (const [index, tag] of this.#tags(change.from).entries()) {
      if (tag.name !== this.queue) await tag.mark(`${index}/${change.from}`, '', [leaving!, moving!]);
    }
    await this.#base.mark(baseState(change.from), '', [back!]);
  }

  async #move(change: ShardChange, conditions: string): Promise<void> {
    const moving = changeState(change, '>');
    const news = this.#tags(change.to);
    const leaving: ShardMarks[] = [];
    for (const tag of this.#tags(change.from)) if ((await tag.state()) === moving) leaving.push(tag);
    const limits = await limitsFor(this.queue, change.to, leaving, conditions);
    if (limits) for (const tag of news) await tag.run('takeLimits', [moving, ...limits]);
    const emptier = new ShardEmptier(news, moving, limits !== undefined, this.#give);
    for (const tag of leaving) await emptier.empty(tag);

    const metas = await Promise.all(
      leaving.map((tag) => tag.meta(['paused', 'publishingPaused', 'since', ...COUNTERS])),
    );
    const paused = metas.some(([flag]) => flag === '1') ? 'p' : '';
    const flags = paused + (metas.some(([, flag]) => flag === '1') ? 'b' : '');
    const stays = new Set(news.map(({ name }) => name));
    const adopt = onceOverEachLink([...leaving, ...news], async () => {
      for (const tag of news) {
        const other = leaving.find(({ name }) => name !== tag.name) ?? tag;
        await this.#give(other, tag, 'adoptShard', [moving, flags, '', 0]);
      }
      for (const [at, tag] of leaving.entries()) {
        if (stays.has(tag.name)) continue;
        const [, , since, ...counted] = metas[at]!;
        const sums = COUNTERS.flatMap((name, n) => [name, counted[n] ?? 0]);
        await this.#give(tag, news[0]!, 'adoptShard', [moving, flags, tag.name, since ?? 0, ...sums]);
      }
    });
    await adopt();
    for (const tag of leaving) {
      if (stays.has(tag.name)) continue;
      const ended = tag.name === this.queue ? moving : `-/${change.to}`;
      for (let tries = 0; (await tag.run('endShard', [moving, ended])) !== 'OK'; tries++) {
        if (tries === 3) throw new Error(`DQMOVING: "${tag.name}" does not become empty`);
        await emptier.empty(tag);
      }
    }
    await adopt();
    this.#moved += emptier.moved;
    await this.#base.mark(changeState(change, '<'), '', [moving]);
  }

  async #open(change: ShardChange): Promise<void> {
    const news = this.#tags(change.to);
    if (change.to > 1) {
      for (const [index, tag] of news.entries()) {
        await tag.mark(`${index}/${change.to}`, '', [changeState(change, '>')]);
      }
    }
    // Only now: as long as the first shard is shut, another run may still ask whether it took over a counter.
    await news[0]!.forget(this.#tags(change.from).map(({ name }) => `took:${name}`));
    await this.#base.mark(baseState(change.to), '', [changeState(change, '<')]);
  }

  readonly #give: Giving = async (from, to, script, args) => {
    const give = (over: RedisConnection) => to.over(over).run(script, args);
    if (this.handover) await this.handover.carry(from.keys, to.keys, give);
    else await give(this.connection);
  };

  #tags(count: number): ShardMarks[] {
    return Array.from({ length: count }, (_, index) => this.#tag(shardName(this.queue, index, count)));
  }

  /** Shards that there are only after the change. The name of the queue itself is shut as the place of the change. */
  #onlyNew({ from, to }: ShardChange): ShardMarks[] {
    if (to === 1) return [];
    return from === 1 ? this.#tags(to) : this.#tags(to).slice(from);
  }

  #tag(name: string): ShardMarks {
    return new ShardMarks(this.connection, this.prefix, name);
  }

  /** Another process does the same, and is at another place. Trying again finds out how it went. */
  #crossed(): Error {
    return new Error(`DQMOVING another process changes the shards of queue "${this.queue}" as well`);
  }

  #inTheWay(tag: ShardMarks): Error {
    return shardTaken(this.queue, tag.name);
  }

  #stillRunning({ from, to }: ShardChange, waitMs: number): ShardCountError {
    const message =
      `reshard("${this.queue}", { to: ${to} }): jobs still ran after ${waitMs} ms, so the queue has its ${from} shards as ` +
      'before. Give a longer `wait`, or stop its workers first.';
    return new ShardCountError(this.queue, from, to, { message, retryable: true });
  }
}
