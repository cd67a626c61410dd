import { isDeepStrictEqual } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { fixed } from '../../../lib/index.js';
import type { ClaimedJob, ScheduleOptions, ScheduleTimes } from '../../../lib/index.js';
import { occurrenceId } from '../../../lib/job/job-id.js';
import type { Tally } from '../tally.js';
import type { Command, CommandOf, DefinitionData, Sequence } from './commands.js';
import { ScheduleModel } from './model.js';
import type { Definition } from './model.js';
import type { ScheduleSystem, StoredSchedules } from './system.js';

const HOUR = 3_600_000;
/** On Redis, whose clock goes on: steps are long beside what a sequence takes. */
const DRIFT_MS = 60_000;
/** In which an occurrence that waits asks again. */
const ASKED_AGAIN_MS = 2_000;

/** What makes occurrences at once. */
const MAKES = new Set<Command['do']>(['schedule', 'change', 'resumeSchedule', 'trigger', 'backfill']);

/** Executes one command on both sides and compares the answers. @returns the answer in words; undefined when there was nothing to do it with */
type Acts = { readonly [C in Command as C['do']]: (play: SchedulePlay, command: C) => Promise<string | undefined> };

/** One sequence of commands, on a queue of its own. */
export class SchedulePlay {
  readonly log: string[] = [];
  readonly model: ScheduleModel;
  readonly held = new Map<string, ClaimedJob>();
  /** Of each schedule what it was told last. */
  readonly definitions = new Map<string, Definition>();
  stepMs = HOUR;

  constructor(
    readonly system: ScheduleSystem,
    private readonly tally: Tally,
    /** For what a worker tells after its caller was answered, such as that an occurrence was left out. */
    private readonly patienceMs: number,
  ) {
    this.model = new ScheduleModel(system.clockStands ? 0 : DRIFT_MS);
  }

  async run({ isShort, commands }: Sequence): Promise<void> {
    this.stepMs = isShort && this.system.clockStands ? 10_000 : HOUR;
    // Commands come half a step behind full ones: no time of a cron expression, and no jitter, is nearby.
    await this.system.begin(this.stepMs / 2);
    this.tally.sequences++;
    for (const command of commands) await this.#execute(command);
    await this.#drain();
  }

  /** After a failure: nothing may be left in the hands of this process. */
  async letGo(): Promise<void> {
    await Promise.allSettled([...this.held.values()].map((job) => job.complete()));
  }

  async #execute(command: Command): Promise<void> {
    this.model.now = this.system.now;
    // Who may not publish is refused, which has tests of its own (test/integration/features/pause-publishing.spec.ts).
    if (this.model.publishingPaused && MAKES.has(command.do)) return;
    this.log.push(JSON.stringify(command));
    const act = ACTS[command.do] as (play: SchedulePlay, command: Command) => Promise<string | undefined>;
    const answer = await act(this, command);
    if (answer === undefined) {
      this.log.pop();
      return;
    }
    this.log.push(`  ${answer}`);
    this.tally.commands++;
    this.tally.count(`${command.do}: ${answer}`);
    await this.#compare();
    for (const event of this.model.events.splice(0)) this.tally.count(event);
  }

  async #compare(): Promise<void> {
    const until = performance.now() + this.patienceMs;
    for (;;) {
      const stored = await this.system.stored();
      try {
        this.#compareJobs(stored);
        break;
      } catch (error) {
        if (performance.now() > until) throw error;
        await sleep(2);
      }
    }
    for (;;) {
      try {
        this.#compareTold();
        return;
      } catch (error) {
        if (performance.now() > until) throw error;
        await sleep(2);
      }
    }
  }

  /** What is stored ahead does not count for `maxSize`. What has begun since, or is gone, may count as that until more is made. */
  #compareAhead({ ahead, waiting }: StoredSchedules): void {
    const all = [...this.model.schedules.values()].flatMap(({ id, ahead: times }) => times.map((at) => ({ id, at })));
    // Nor does one count that had begun, and was put off to the very time that it was made for.
    const isAhead = (id: string, at: number) => waiting.get(id) === at && !this.model.jobs.get(id)?.hasBegun;
    const waits = all.filter(({ id, at }) => at > this.model.now && isAhead(occurrenceId(id, at), at));
    if (ahead < waits.length || ahead > all.length)
      throw new Error(
        `${ahead} occurrences count as stored ahead, of which ${waits.length} wait and ${all.length} were made`,
      );
  }

  #compareJobs(stored: StoredSchedules): void {
    const { model } = this;
    this.same('ids of schedules', stored.schedules.map(({ id }) => id).sort(), [...model.schedules.keys()].sort());
    for (const { id, counts } of stored.schedules) model.learnAhead(model.schedules.get(id)!, counts.made);
    for (const told of stored.schedules) {
      const schedule = model.schedules.get(told.id)!;
      const { made, missed, overlapped, paused, lastJob } = schedule;
      const { counts } = told;
      const what = { counts, paused: told.paused, lastJob: told.lastJob, next: told.next?.getTime() };
      const wanted = {
        counts: { made, missed, overlapped },
        paused,
        lastJob,
        next: model.nextOf(schedule, stored.waiting),
      };
      this.same(`schedule ${told.id}`, what, wanted);
    }
    this.#compareAhead(stored);
    const ids = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id).sort();
    this.same('waiting', [...stored.waiting.keys()].sort(), ids(model.waiting));
    this.same('running', stored.running, ids(model.running));
    this.same('dead', stored.dead, ids(model.dead));
    this.same('skipped', stored.skipped, model.skipped);
    this.same('completed', stored.completed, model.completed);
    for (const job of model.waiting) {
      const wrong = model.learnDue(job, stored.waiting.get(job.id)!);
      if (wrong) throw new Error(wrong);
    }
  }

  #compareTold(): void {
    const told = this.system.told.map(({ schedule, reason, count, first, last }) => ({
      schedule,
      reason,
      count,
      first,
      last,
    }));
    const sorted = (all: readonly object[]) => all.map((one) => JSON.stringify(one)).sort();
    this.same('events', sorted(told), sorted(this.model.told));
  }

  readonly same = (what: string, actual: unknown, expected: unknown): void => {
    if (isDeepStrictEqual(actual, expected)) return;
    throw new Error(`${what}: the library says ${show(actual)}, the model ${show(expected)}`);
  };

  /** Nothing waits for the end of what ended: whatever is left runs once its time has come. */
  async #drain(): Promise<void> {
    const { model } = this;
    for (const what of ['queue', 'publishing'] as const) await this.#execute({ do: 'resume', what });
    const finish = async () => {
      while (this.held.size > 0) await this.#execute({ do: 'settle', run: 0, how: 'complete' });
    };
    await finish();
    for (
      let round = 0;
      model.waiting.some(({ hasBegun, isExtra, at }) => hasBegun || isExtra || at <= model.now);
      round++
    ) {
      if (round === 100) throw new Error('some occurrences never come to their turn');
      await this.#execute({ do: 'advance', steps: 1 });
      await this.#execute({ do: 'pull', max: 50 });
      await finish();
    }
  }

  /** What these data mean now. */
  definitionOf(data: DefinitionData): Definition {
    const { stepMs } = this;
    const full = Math.floor(this.model.now / stepMs) * stepMs;
    const hasGrid = data.cron || data.from !== undefined;
    // With `overlap: 'allow'` and `missed: 'all'` no policy asks where within a step it is due.
    const jitters = data.overlap === 'allow' && data.missed === 'all' ? data.jitter : Math.min(data.jitter, 0.4);
    const from = data.from === undefined ? undefined : full + data.from * stepMs;
    const until = data.until === undefined ? undefined : Math.max(from ?? full, full) + data.until * stepMs;
    return {
      stepMs: data.steps * stepMs,
      cron: data.cron ? cronOf(data.steps, stepMs) : undefined,
      from,
      until,
      limit: data.limit,
      jitterMs: hasGrid ? jitters * stepMs : 0,
      missed: data.missed,
      graceMs: data.grace === undefined ? 60_000 : data.grace * stepMs,
      most: data.most ?? 1_000,
      overlap: data.overlap,
      attempts: data.attempts,
      backoffMs: 1.5 * stepMs,
      payload: data.payload,
    };
  }

  async schedule(id: string, given: Definition): Promise<string> {
    const definition = withoutIdle(given);
    const { cron, stepMs, from, until, limit, jitterMs, missed, graceMs, most, overlap, attempts } = definition;
    const times: ScheduleTimes = cron === undefined ? { every: stepMs } : { cron };
    const options: ScheduleOptions = {
      ...(from !== undefined && { from }),
      ...(until !== undefined && { until }),
      ...(limit !== undefined && { limit }),
      ...(jitterMs > 0 && { jitter: jitterMs }),
      missed,
      ...(missed === 'skip' && { grace: graceMs }),
      ...(missed === 'all' && { most }),
      overlap,
      attempts,
      backoff: fixed(definition.backoffMs),
    };
    const result = await this.system.producer.schedule(this.system.queue, id, times, definition.payload, options);
    const outcome = this.model.schedule(id, definition);
    this.same('outcome', result.outcome, outcome);
    this.definitions.set(id, definition);
    this.model.learnGrid(id, result.next?.getTime());
    return outcome;
  }

  oneOf<T>(which: number, all: readonly T[]): T | undefined {
    return all.length === 0 ? undefined : all[which % all.length];
  }
}

function cronOf(steps: number, stepMs: number): string {
  return stepMs === HOUR ? `0 ${steps === 1 ? '*' : `*/${steps}`} * * *` : `*/${steps * 10} * * * * *`;
}

/** What would have no effect is refused. */
function withoutIdle(definition: Definition): Definition {
  const { cron, stepMs, jitterMs, missed, graceMs, most } = definition;
  return {
    ...definition,
    jitterMs: cron === undefined ? Math.min(jitterMs, stepMs - 1) : jitterMs,
    graceMs: missed === 'skip' ? graceMs : 60_000,
    most: missed === 'all' ? most : 1_000,
  };
}

const OTHERS = { overlap: ['skip', 'queue', 'allow'], missed: ['once', 'skip', 'all'] } as const;

function changed(definition: Definition, { what, to }: CommandOf<'change'>): Definition {
  if (what === 'payload') return { ...definition, payload: to };
  if (what === 'limit') return { ...definition, limit: to === 0 ? undefined : to };
  if (what === 'step') {
    // Every third step of a cron expression of seconds would be no grid.
    return definition.cron ? definition : { ...definition, stepMs: definition.stepMs * (1 + (to % 2)) };
  }
  // Where jitter is wide, no policy may ask for it.
  if (definition.jitterMs > definition.stepMs / 2) return definition;
  const values = OTHERS[what];
  return { ...definition, [what]: values[to % values.length] };
}

const ACTS: Acts = {
  schedule: (play, { id, definition }) => play.schedule(id, play.definitionOf(definition)),

  async change(play, command) {
    const definition = play.definitions.get(command.id);
    return definition && play.schedule(command.id, changed(definition, command));
  },

  async unschedule({ system, model, definitions, same }, { id, running }) {
    const result = await system.producer.unschedule(system.queue, id, { running });
    const occurrences = model.unschedule(id, running);
    definitions.delete(id);
    const outcome = occurrences === undefined ? 'notFound' : 'removed';
    same('answer', result, { id, queue: system.queue, outcome, occurrences: occurrences ?? 0 });
    return outcome;
  },

  async pauseSchedule({ system, model, same }, { id }) {
    const { outcome, next } = await system.producer.pauseSchedule(system.queue, id);
    same('outcome', outcome, model.pause(id));
    same('next', next, undefined);
    return outcome;
  },

  async resumeSchedule({ system, model, same }, { id }) {
    const { outcome, next } = await system.producer.resumeSchedule(system.queue, id);
    same('outcome', outcome, model.resume(id));
    if (model.schedules.has(id)) model.learnGrid(id, next?.getTime());
    return outcome;
  },

  async trigger({ system, model, same }, { id }) {
    // Removed and made again, a schedule does not know of a run that is left: of the same millisecond, the answer names that one. Only
    // where time stands does anybody meet it.
    if (model.hasLeft(id)) return undefined;
    const job = await system.producer.triggerSchedule(system.queue, id);
    if (!model.schedules.has(id)) {
      same('answer', job, undefined);
      return 'notFound';
    }
    const at = parseInt(job!.slice(id.length + 2), 36);
    const { now, driftMs } = model;
    if (at < now - driftMs || at > now + driftMs + 100) throw new Error(`${job} was triggered for ${at}, now ${now}`);
    model.trigger(id, job!, at);
    return 'triggered';
  },

  async backfill({ system, model, stepMs, same }, { id, back, steps }) {
    const schedule = model.schedules.get(id);
    if (schedule && !schedule.definition.cron && Number.isNaN(schedule.anchor)) return undefined;
    const from = model.now - (back + 0.25) * stepMs;
    const to = Math.min(model.now, from + steps * stepMs);
    const count = await system.producer.backfillSchedule(system.queue, id, { from, to });
    same('answer', count, model.backfill(id, from, to));
    return count === undefined ? 'notFound' : count === 0 ? 'none' : 'some';
  },

  async advance({ system, model, stepMs }, { steps }) {
    await system.advance(steps * stepMs);
    model.now = system.now;
    return 'later';
  },

  async tick({ system, model }) {
    await system.tick();
    model.tick();
    return 'ticked';
  },

  async pull({ system, model, held, same }, { max }) {
    // On Redis they may ask again at any moment of this.
    if (!system.clockStands && model.waiting.some(({ due }) => Math.abs(due.seen! - model.now) < ASKED_AGAIN_MS)) {
      await system.advance(2 * ASKED_AGAIN_MS);
      model.now = system.now;
    }
    const jobs = await system.consumer.pull(system.queue, { max });
    for (const job of jobs) held.set(job.id, job);
    same('begun', jobs.map(({ id }) => id).sort(), model.pull(max).sort());
    for (const { id, job } of jobs) {
      const { at, next, schedule, definition } = model.jobs.get(id)!;
      same(`schedule of ${id}`, job.schedule && { ...job.schedule, at: job.schedule.at.getTime() }, {
        id: schedule,
        at,
        next: next === undefined ? undefined : new Date(next),
      });
      same(`payload of ${id}`, job.payload, definition.payload);
    }
    return jobs.length === 0 ? 'none' : 'some';
  },

  async settle(play, { run, how }) {
    const { held, model, stepMs } = play;
    const id = play.oneOf(run, [...held.keys()].sort());
    if (id === undefined) return undefined;
    const job = held.get(id)!;
    held.delete(id);
    const before = model.jobs.get(id)!.isCancelled ? 'cancelled' : how;
    if (how === 'complete') await job.complete();
    if (how === 'fail') await job.fail(new Error('failed'));
    if (how === 'discard') await job.discard('discarded');
    if (how === 'snooze') await job.snooze(1.5 * stepMs);
    model.settle(id, how);
    return before === how ? `${how}: ${model.jobs.get(id)?.state ?? 'gone'}` : before;
  },

  async cancel(play, { which }) {
    const job = play.oneOf(which, play.model.waiting);
    if (!job) return undefined;
    const { outcome } = await play.system.producer.cancel(play.system.queue, job.id);
    play.same('outcome', outcome, 'cancelled');
    play.model.cancel(job.id);
    return outcome;
  },

  async runNow(play, { which }) {
    const job = play.oneOf(which, play.model.waiting);
    if (!job) return undefined;
    const { outcome } = await play.system.producer.runNow(play.system.queue, job.id);
    play.same('outcome', outcome, 'rescheduled');
    play.model.runNow(job.id);
    return outcome;
  },

  async reschedule(play, { which, steps }) {
    const job = play.oneOf(which, play.model.waiting);
    if (!job) return undefined;
    const delay = steps * play.stepMs;
    const { outcome } = await play.system.producer.reschedule(play.system.queue, job.id, { delay });
    play.same('outcome', outcome, 'rescheduled');
    play.model.reschedule(job.id, play.model.now + delay);
    return outcome;
  },

  async pause({ system, model }, { what }) {
    if (what === 'queue') await system.inspector.pause(system.queue);
    else await system.inspector.pausePublishing(system.queue);
    model[what === 'queue' ? 'queuePaused' : 'publishingPaused'] = true;
    return what;
  },

  async resume({ system, model }, { what }) {
    if (what === 'queue') await system.inspector.resume(system.queue);
    else await system.inspector.resumePublishing(system.queue);
    model[what === 'queue' ? 'queuePaused' : 'publishingPaused'] = false;
    return what;
  },
};

function show(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => (inner === undefined ? 'undefined' : inner));
}
