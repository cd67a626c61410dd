import type { OnDuplicate } from '../../lib/index.js';
import type { Settlement } from '../../lib/worker/settlement.js';
import { TestSession } from './peer.js';
import type { Peer } from './peer.js';
import { HOUR, payloadOf } from './shard.js';
import type { Shard } from './shard.js';

const IDS = ['A', 'B', 'C', 'D'];
const MODES: OnDuplicate[] = ['keep', 'replace', 'reschedule', 'reject'];
const ENDS: Settlement[] = [
  { verb: 'complete' },
  { verb: 'retry', delayMs: 0, error: '{}' },
  { verb: 'snooze', delayMs: 0 },
  { verb: 'release', dueAt: 1_000 },
  { verb: 'dead', reason: 'exhausted', error: '{}', charge: true },
  { verb: 'expired' },
];

/** Numbers that look random and are the same for the same seed (mulberry32). */
export function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Two workers, a producer and somebody who moves jobs to another queue, who do whatever comes to their mind, and a record of who believes to hold what. */
export class Crowd {
  readonly log: string[] = [];
  /** Payloads of which Redis accepted that they run, and that did not run yet, were not replaced nor taken away. */
  readonly owed = new Map<string, number>();
  readonly #peers: Peer[];
  readonly #held: { claim: number; id: string }[] = [];
  readonly #mover: TestSession;
  /** On their way to another queue. */
  readonly #moving: { claim: string; id: string }[] = [];
  #version = 0;

  constructor(
    private readonly shard: Shard,
    private readonly random: (below: number) => number,
  ) {
    this.#peers = [shard.peer(), shard.peer()];
    this.#mover = new TestSession(shard);
  }

  async act(): Promise<void> {
    const acts = [
      () => this.#enqueue(),
      () => this.#enqueue(),
      () => this.#claim(),
      () => this.#claim(),
      () => this.#settle(),
      () => this.#settle(),
      () => this.#change(),
      () => this.#change(),
      () => this.#reserve(),
      () => this.#unreserve(),
      () => this.#lose(),
      () => this.#wait(),
    ];
    await this.#pick(acts)();
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.random(list.length)]!;
  }

  async #enqueue(): Promise<void> {
    const [id, onDuplicate, payload] = [this.#pick(IDS), this.#pick(MODES), ++this.#version];
    const delay = this.random(4) === 0 ? HOUR : 0;
    this.log.push(`enqueue ${id} ${onDuplicate} v${payload} +${delay}`);
    const result = await this.shard.producer
      .enqueue(this.shard.queue, payload, { id, onDuplicate, delay })
      .catch(() => undefined);
    if (result?.outcome === 'created' && this.owed.has(id)) throw new Error(`v${this.owed.get(id)} of ${id} got lost`);
    if (result && ['created', 'replaced'].includes(result.outcome)) this.owed.set(id, payload);
  }

  async #claim(): Promise<void> {
    const isolates = this.random(3) === 0;
    const peer = this.#pick(this.#peers);
    const ask = isolates ? { quarantineLimit: 1 + this.random(3) } : { limit: 1 + this.random(3) };
    const { claim, jobs } = await peer.step({ ...ask, isSole: this.random(2) === 0, sweep: this.random(2) === 0 });
    this.log.push(
      `${isolates ? 'isolated' : 'claim'} ${claim}: ${jobs.map(({ id, envelope }) => `${id} v${String(payloadOf(envelope))}`).join(' ')}`,
    );
    for (const { id, envelope } of jobs) {
      this.#held.push({ claim, id });
      if (this.owed.get(id) === payloadOf(envelope)) this.owed.delete(id);
    }
  }

  async #settle(): Promise<void> {
    if (this.#held.length === 0) return;
    const { claim, id } = this.#held[this.random(this.#held.length)]!;
    const settlement = this.#pick(ENDS);
    const { lost } = await this.#pick(this.#peers).step({
      settle: [[claim, id, settlement]],
      keepCompleted: { count: 2, ageMs: HOUR },
    });
    this.log.push(`${settlement.verb} ${id} ${claim}${lost.length > 0 ? ' lost' : ''}`);
  }

  async #change(): Promise<void> {
    const { producer, inspector, queue } = this.shard;
    const id = this.#pick(IDS);
    const changes: Record<string, () => Promise<{ outcome?: string; removed?: number }>> = {
      cancel: () => producer.cancel(queue, id),
      'cancel running': () => producer.cancel(queue, id, { running: true }),
      reschedule: () => producer.reschedule(queue, id, { delay: this.random(2) * HOUR }),
      'run now': () => producer.runNow(queue, id),
      'requeue dead': async () => ({
        removed: (await inspector.requeueDead(queue, [id], { resetAttempts: this.random(2) === 0 })).requeued,
      }),
      'remove dead': () => inspector.removeDead(queue, [id]),
    };
    const name = this.#pick(Object.keys(changes));
    const { outcome, removed } = await changes[name]!();
    this.log.push(`${name} ${id}: ${outcome ?? removed}`);
    if (
      outcome === 'cancelled' ||
      (name === 'cancel running' && outcome === 'running') ||
      (name === 'remove dead' && removed)
    ) {
      this.owed.delete(id);
    }
  }

  async #reserve(): Promise<void> {
    const ids = IDS.slice(this.random(2), 2 + this.random(3));
    const [claim, ...words] = String(await this.#mover.call('reserve', [0, HOUR, 9e9, ...ids])).split(' ');
    this.log.push(`reserve ${claim}: ${ids.map((id, n) => `${id} ${words[n]}`).join(', ')}`);
    for (const [n, id] of ids.entries()) if (words[n]!.startsWith('h')) this.#moving.push({ claim: claim!, id });
  }

  async #unreserve(): Promise<void> {
    if (this.#moving.length === 0) return;
    const { claim, id } = this.#moving[this.random(this.#moving.length)]!;
    const word = await this.#mover.call('unreserve', [0, claim, this.random(2), id]);
    this.log.push(`unreserve ${id} ${claim}: ${String(word)}`);
    if (word === 'g') this.owed.delete(id);
  }

  /** A worker is cut off for longer than its lease. */
  async #lose(): Promise<void> {
    const claims = Object.keys((await this.shard.read()).leases);
    if (claims.length === 0) return;
    const claim = this.#pick(claims);
    this.log.push(`lose ${claim}`);
    await this.shard.expire(Number(claim));
    await this.#pick(this.#peers).step({ sweep: true });
  }

  /** Time goes by. */
  async #wait(): Promise<void> {
    this.log.push('an hour later');
    for (const id of IDS) await this.shard.world.makeDue(this.shard.queue, id, 1);
  }

  /** Runs whatever is left, one after the other, until nothing is. */
  async drain(): Promise<void> {
    const [peer] = this.#peers;
    await this.#wait();
    for (const claim of Object.keys((await this.shard.read()).leases)) await this.shard.expire(Number(claim));
    await this.shard.inspector.requeueDead(this.shard.queue, 'all');
    for (let round = 0; round < 30; round++) {
      await this.#wait();
      for (const ask of [{ limit: 9, sweep: true }, { quarantineLimit: 9 }]) {
        const { claim, jobs } = await peer!.step(ask);
        for (const { id, envelope } of jobs) {
          if (this.owed.get(id) === payloadOf(envelope)) this.owed.delete(id);
        }
        await peer!.step({ settle: jobs.map(({ id }) => [claim, id, { verb: 'complete' }] as const) });
      }
    }
  }
}
