import type { AnyScriptName } from '../lua/scripts.js';
import { ShardKeys } from './keys.js';
import { forget, Session } from './session.js';
import type { ShardOpening } from './session.js';
import { enqueueHead } from './enqueue.protocol.js';
import type { RedisConnection } from './redis.connection.js';
import { isOfOlderCall, isOtherShard, isTransient } from './redis.errors.js';
import { ServerClock } from './server-clock.js';
import { parseStep, STEP_SEQUENCE_AT, stepArgs } from './step.protocol.js';
import type { StepReply, StepRequest } from './step.protocol.js';

let sessions = 0;
let workers = 0;

/** The only writer of one shard's job state: typed calls of its scripts. */
export class ShardStore {
  readonly keys: ShardKeys;
  readonly #clock: ServerClock;

  constructor(
    readonly connection: RedisConnection,
    private readonly prefix: string,
    readonly queue: string,
    private readonly index = 0,
    private readonly count = 1,
    /** Asked when the shard is not what we take it for; without it that is final. */
    private readonly opening?: ShardOpening,
    /** Called when a call found the shard empty: the name of the queue may have been removed with it. */
    private readonly onNew?: () => void,
  ) {
    this.keys = new ShardKeys(prefix, queue, index, count);
    this.#clock = new ServerClock(connection.timeoutMs);
  }

  /** The only one of its queue. */
  get isWhole(): boolean {
    return this.count === 1;
  }

  /** Makes all shards of the queue such that may have groups. @throws errors of the connection */
  async beginGroups(): Promise<void> {
    await this.opening?.beginGroups();
  }

  /** Whether the last call found that the queue has groups, priorities or limits. */
  get isLimited(): boolean {
    return this.connection.isLimited(this.keys.due);
  }

  /** The same shard over another connection. */
  over(connection: RedisConnection): ShardStore {
    return new ShardStore(connection, this.prefix, this.queue, this.index, this.count, this.opening, this.onNew);
  }

  /** A new session with a name that was never used. */
  session(): Session {
    return new Session(
      this.connection,
      this.keys,
      `${this.connection.processName}.${(sessions++).toString(36)}`,
      this.#clock,
      this.opening,
    );
  }

  /** @param onRefused called when Redis refuses a step that may have run: it is sent until an answer tells what it did */
  async step(
    session: Session,
    worker: string,
    request: StepRequest,
    giveUp: () => boolean,
    onRefused?: (error: unknown) => void,
  ): Promise<StepReply> {
    const onDoubt = (error: unknown) => {
      if (!isTransient(error)) onRefused?.(error);
    };
    const args = stepArgs(request, worker);
    const reply = parseStep(
      await session.call({ script: 'step', args, sequenceAt: STEP_SEQUENCE_AT, giveUp, isFinal: endsIt, onDoubt }),
    );
    this.learnTime(reply.now);
    if (reply.isNew) this.onNew?.();
    return reply;
  }

  /** An answer of lib/lua/enqueue.lua has come. */
  heard(answer: string): void {
    const { now, isNew } = enqueueHead(answer);
    if (isNew) this.onNew?.();
    this.learnTime(now);
  }

  /** @returns the claim number of the job's own lease; 0 when the job is no longer held by `claim` */
  async extend(session: Session, claim: number, id: string, leaseMs: number, giveUp: () => boolean): Promise<number> {
    const args = [0, claim, id, leaseMs];
    return Number(await session.call({ script: 'extend', args, sequenceAt: 0, giveUp, isFinal: endsIt }));
  }

  /** An answer that has just come says what time it is there. */
  learnTime(serverNow: number): void {
    this.#clock.learn(serverNow);
  }

  /** The name of a worker of this process in the shard. Several may work on the shard: a handler, and code that pulls. */
  workerName(): string {
    return `${this.connection.channel}#${workers++}`;
  }

  /**
   * A worker leaves the shard, and its sessions are forgotten. Only one try: if it fails, its roles run out by the
   * clock.
   */
  async leave(worker: string, [first, ...others]: readonly Session[]): Promise<void> {
    await this.connection.run('leave', this.keys.fixed, first!.key, [worker, first!.expectsCopies ? 'd' : '']);
    await forget(this.connection, others);
  }

  /** A script that only reads, or may run twice. */
  async call(script: AnyScriptName, args: (string | number)[]): Promise<unknown> {
    await this.connection.whenReady();
    const run = () => this.connection.run(script, this.keys.fixed, this.keys.session('none'), args);
    const { opening } = this;
    if (!opening) return run();
    try {
      const answer = await run();
      opening.answered();
      return answer;
    } catch (error) {
      if (!isOtherShard(error)) throw error;
      await opening.open();
      return run();
    }
  }
}

/**
 * Jobs that nobody hears of lose their leases, and one that was alone is charged for that. So a call that may have given this process
 * leases is sent until it is answered, also while the server does not permit it.
 */
function endsIt(error: unknown, mayHaveRun: boolean): boolean {
  return !isTransient(error) && (!mayHaveRun || isOfOlderCall(error));
}
