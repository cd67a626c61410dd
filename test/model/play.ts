import { isDeepStrictEqual } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClaimedJob } from '../../lib/index.js';
import type { Command } from './commands.js';
import { INSPECTING } from './inspecting.js';
import { Model } from './model.js';
import type { Job } from './model.js';
import { PRODUCING } from './producing.js';
import { Promised } from './promised.js';
import { HOUR } from './system.js';
import type { Side, Stored, System } from './system.js';
import type { Tally } from './tally.js';
import { Process } from './workers.js';
import type { Run } from './workers.js';
import { WORKING } from './working.js';

/** Executes one command on both sides and compares the answers. @returns the answer in words; undefined when there was nothing to do it with */
export type Act<C extends Command = Command> = (play: Play, command: C) => Promise<string | undefined>;
export type Acts = { readonly [C in Command as C['do']]: Act<C> };

/** One sequence of commands, on a queue of its own. */
export class Play {
  readonly model: Model;
  readonly processes: readonly Process[];
  /** Jobs in somebody's hands, those included whose lease was lost. */
  readonly held: { readonly run: Run; readonly job: ClaimedJob }[] = [];
  readonly promised = new Promised();
  readonly log: string[] = [];
  /** Ids that were ever used, and one that never was. */
  readonly ids: string[] = ['nobody'];
  readonly #queue: string;
  #payloads = 0;
  #tags = 0;

  constructor(
    readonly system: System,
    readonly tally: Tally,
    /** For what a worker tells after its caller was answered, such as that a job had expired. */
    private readonly patienceMs: number,
    /** Groups, priorities and limits are used. */
    withLimits = false,
  ) {
    this.#queue = system.queue;
    this.model = new Model(system.clockStands, withLimits);
    this.processes = system.consumers.map((_, number) => new Process(number));
  }

  get queue(): string {
    return this.#queue;
  }

  newPayload(): number {
    return ++this.#payloads;
  }

  newTag(): number {
    return ++this.#tags;
  }

  async run(commands: readonly Command[]): Promise<void> {
    this.tally.sequences++;
    for (const command of commands) await this.#execute(command);
    await this.#drain();
  }

  async #execute(command: Command): Promise<void> {
    const act = ACTS[command.do] as Act;
    this.log.push(JSON.stringify(command));
    this.model.command++;
    if (command.pauseMs) await sleep(command.pauseMs);
    const answer = await act(this, command);
    if (command.lose) this.system.loseNothing();
    if (answer === undefined) {
      this.log.pop();
      return;
    }
    this.log.push(`  ${answer}`);
    this.tally.commands++;
    this.tally.count(answer);
    if (command.do !== 'get' && command.do !== 'inspect') {
      await this.#compareStored();
      if (this.model.turns && this.system.clockStands) this.same('problems', await this.system.problems(), []);
    }
    for (const event of this.model.events.splice(0)) this.tally.count(`job ${event}`);
  }

  /** Whoever this concerns loses what the command says. */
  lose({ lose }: Command, side: Side): void {
    if (!lose) return;
    this.tally.count(`lost: ${lose} of ${side === 'producer' ? 'the producer' : 'a worker'}`);
    this.system.loseNext(side, lose);
  }

  readonly same = (what: string, actual: unknown, expected: unknown): void => {
    if (isDeepStrictEqual(actual, expected)) return;
    throw new Error(`${what}: the library says ${show(actual)}, the model ${show(expected)}`);
  };

  /** A whole hour, and as many ms of it as may have passed since the sequence began. */
  sameTime(what: string, ms: number, hours: number, now = Infinity): void {
    const rest = ms - hours * HOUR;
    if (rest >= 0 && rest <= Math.min(HOUR / 4, now)) return;
    throw new Error(`${what}: the library says ${ms / HOUR} h, the model ${hours} h`);
  }

  // --- What is stored -----------------------------------------------------------------------------------------------------

  async #compareStored(): Promise<void> {
    const until = performance.now() + this.patienceMs;
    for (;;) {
      try {
        return this.#compareWith(await this.system.stored());
      } catch (error) {
        if (performance.now() > until) throw error;
        await sleep(5);
      }
    }
  }

  #compareWith(stored: Stored): void {
    const { model } = this;
    if (this.sweptAway(stored)) model.takeBack();
    const ids = (jobs: Job[]) => jobs.map(({ id }) => id).sort();
    const state = (map: ReadonlyMap<string, number>) => [...map.keys()].sort();
    this.same('waiting', state(stored.due), ids([...model.due, ...model.delayed]));
    this.same('running', state(stored.running), ids(model.running));
    this.same('quarantine', state(stored.quarantine), ids(model.quarantined));
    this.same('dead', state(stored.dead), ids(model.dead));
    for (const job of model.jobs.values()) this.#learn(job, stored);
    this.#compareTokens();
  }

  /** Takes over the ms that the model does not know. */
  #learn(job: Job, stored: Stored): void {
    const { id } = job;
    if (job.state === 'waiting') {
      job.exact = stored.due.get(id)!;
      this.sameTime(`due time of ${id}`, job.exact, job.due, stored.now % HOUR);
      if (job.version.due === job.due) job.version.exact ??= job.exact;
    } else if (job.state === 'running') {
      const lease = this.model.leases.get(job.claim!)!;
      lease.token ??= stored.running.get(id)!;
      this.same(`claim of ${id}`, stored.running.get(id), lease.token);
      this.same(`mark of ${id} as alone`, stored.leases.get(lease.token), lease.alone);
    } else {
      job.since = (job.state === 'dead' ? stored.dead : stored.quarantine).get(id)!;
    }
  }

  /** Within one command two steps of a worker may be on their way at the same time. */
  #compareTokens(): void {
    const claims = [...this.model.leases.values()].map(({ command, token }) => ({ command, token: token! }));
    const tokens = claims.sort((a, b) => a.command - b.command || a.token - b.token).map(({ token }) => token);
    if (tokens.some((token, n) => n > 0 && token <= tokens[n - 1]!)) {
      throw new Error(`claim numbers do not rise: ${tokens.join(', ')}`);
    }
  }

  /** Did somebody take back leases that are over? Any step of any worker may. */
  sweptAway(stored: Stored): boolean {
    return this.model.overdue.some(([claim, { token }]) =>
      this.model.heldBy(claim).some(({ id }) => stored.running.get(id) !== token),
    );
  }

  /**
   * A worker's step that comes after what is stored was looked at, and before this call, takes back what is over. The call shows it: it
   * found a job that the model has as running in another state, or gone.
   */
  noticeSweep(id: string, found: string | undefined): void {
    const { model } = this;
    if (found !== 'running' && model.overdue.some(([claim]) => model.heldBy(claim).some((job) => job.id === id)))
      model.takeBack();
  }

  /** What only looks looks again when such a step came before it. */
  async looking<T>(look: () => Promise<T>): Promise<T> {
    try {
      return await look();
    } catch (error) {
      if (!this.sweptAway(await this.system.stored())) throw error;
      await this.#compareStored();
      return look();
    }
  }

  // --- The end ------------------------------------------------------------------------------------------------------------

  /** Runs whatever is left. Then all that was ever accepted has run, is dead, or was taken away. */
  async #drain(): Promise<void> {
    const { model } = this;
    await this.#execute({ do: 'inspect', page: 2 });
    if (model.turns) await this.#execute({ do: 'setLimits', limits: undefined });
    while (this.held.length > 0) await this.#execute({ do: 'settle', run: 0, how: 'complete', delay: 0 });
    if (model.paused) await this.#execute({ do: 'resume' });
    for (let round = 0; model.jobs.size > model.dead.length; round++) {
      if (round === 40) throw new Error('some jobs never come to their turn');
      const { overdue } = model;
      if (model.due.length > 0 || overdue.length > 0) {
        await this.#execute({ do: 'pull', process: 0, worker: 'starts', max: 20 });
      } else if (model.quarantined.length > 0)
        await this.#execute({ do: 'pullQuarantined', process: 1, beside: false });
      else await this.#execute({ do: 'advance', hours: 3 });
      while (this.held.length > 0) await this.#execute({ do: 'settle', run: 0, how: 'complete', delay: 0 });
    }
    this.same('what never ran', this.promised.missing(model), []);
    this.same('problems', await this.system.problems(), []);
  }

  /** After a failure: nothing may be left in the hands of the processes. */
  async letGo(): Promise<void> {
    await Promise.allSettled(this.held.map(({ job }) => job.release()));
  }
}

const ACTS: Acts = { ...PRODUCING, ...WORKING, ...INSPECTING };

function show(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => (inner === undefined ? 'undefined' : inner));
}
