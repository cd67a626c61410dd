import { BulkEnqueueError, DuplicateJobError } from '../../lib/index.js';
import type { EnqueueOptions, EnqueueResult } from '../../lib/index.js';
import type { JobData } from './commands.js';
import type { EnqueueAnswer, Wish } from './model.js';
import type { Acts, Play } from './play.js';
import { compareJob } from './snapshot.js';
import { HOUR } from './system.js';

const ATTEMPTS = 3;

export const PRODUCING: Pick<
  Acts,
  'enqueue' | 'enqueueMany' | 'cancel' | 'reschedule' | 'update' | 'signal' | 'runNow' | 'get'
> = {
  async enqueue(play, command) {
    const { dead } = play.model;
    const id = command.dead === undefined ? undefined : dead[command.dead % dead.length]?.id;
    const job = { ...command.job, ...(id !== undefined && { id }) };
    const payload = play.newPayload();
    play.lose(command, 'producer');
    const result = await play.system.producer.enqueue(play.queue, payload, optionsOf(play, job)).catch(duplicate);
    return `enqueue ${job.id === undefined ? 'without id' : job.onDuplicate} → ${compare(play, job, payload, 0, result)}`;
  },

  async enqueueMany(play, command) {
    const { jobs, spread } = command;
    const items = jobs.map((job) => ({ payload: play.newPayload(), ...optionsOf(play, job) }));
    play.lose(command, 'producer');
    const results = await play.system.producer
      .enqueueMany(play.queue, items, { spread: spread ? jobs.length * HOUR : 0 })
      .catch((error: unknown) => {
        if (error instanceof BulkEnqueueError) return error.results;
        throw error;
      });
    for (const [n, job] of jobs.entries()) {
      const result = results[n]!;
      compare(play, job, items[n]!.payload, spread ? n : 0, 'error' in result ? duplicate(result.error) : result);
    }
    return `enqueueMany → ${jobs.length} results`;
  },

  async cancel(play, command) {
    const { which, running } = command;
    const id = idOf(play, which);
    play.lose(command, 'producer');
    const { outcome, state } = await play.system.producer.cancel(play.queue, id, { running });
    play.noticeSweep(id, state);
    play.same(`cancel ${id}`, { outcome, state }, play.model.cancel(id, running));
    if (outcome === 'cancelled' || (running && outcome === 'running')) play.promised.takenAway(id);
    return `cancel${running ? ' { running }' : ''} → ${outcome}${inState(outcome, state)}`;
  },

  async reschedule(play, command) {
    const { which, to } = command;
    const id = idOf(play, which);
    play.lose(command, 'producer');
    const target = 'at' in to ? { at: play.system.moment(to.at * HOUR) } : { delay: to.delay * HOUR };
    const due = 'at' in to ? to.at : play.model.now + to.delay;
    const { outcome, state, dueAt } = await play.system.producer.reschedule(play.queue, id, target);
    play.noticeSweep(id, state);
    play.same(`reschedule ${id}`, { outcome, state }, play.model.move(id, due, false));
    if (outcome === 'rescheduled') play.sameTime(`reschedule ${id}`, play.system.since(dueAt!), due);
    return `reschedule → ${outcome}${inState(outcome, state)}`;
  },

  async update(play, command) {
    const id = idOf(play, command.which);
    const payload = play.newPayload();
    play.lose(command, 'producer');
    const { outcome, state, dueAt } = await play.system.producer.update(play.queue, id, payload);
    play.noticeSweep(id, state);
    play.same(`update ${id}`, { outcome, state }, play.model.update(id, payload));
    if (outcome === 'updated') {
      const job = play.model.jobs.get(id)!;
      play.sameTime(`update ${id}`, play.system.since(dueAt!), job.state === 'waiting' ? job.due : job.version.due);
      play.promised.accepted(id, payload);
    }
    return `update → ${outcome}${inState(outcome, state)}`;
  },

  async signal(play, command) {
    const id = idOf(play, command.which);
    const payload = play.newPayload();
    play.lose(command, 'producer');
    const { outcome, state, dueAt } = await play.system.producer.signal(play.queue, id, payload);
    play.noticeSweep(id, state);
    play.same(`signal ${id}`, { outcome, state }, play.model.signal(id, payload));
    if (outcome === 'signalled') {
      const job = play.model.jobs.get(id)!;
      if (job.state === 'waiting') play.sameTime(`signal ${id}`, play.system.since(dueAt!), job.due);
      play.promised.accepted(id, payload);
    }
    return `signal → ${outcome}${inState(outcome, state)}`;
  },

  async runNow(play, command) {
    const id = idOf(play, command.which);
    play.lose(command, 'producer');
    const { outcome, state, dueAt } = await play.system.producer.runNow(play.queue, id);
    play.noticeSweep(id, state);
    play.same(`runNow ${id}`, { outcome, state }, play.model.move(id, play.model.now, true));
    const job = play.model.jobs.get(id);
    const due = job?.state === 'waiting' ? job.due : play.model.now;
    if (outcome === 'rescheduled') play.sameTime(`runNow ${id}`, play.system.since(dueAt!), due);
    return `runNow → ${outcome}${inState(outcome, state)}`;
  },

  async get(play, { which }) {
    const id = idOf(play, which);
    return `get → ${await play.looking(() => compareJob(play, id))}`;
  },
};

/** Mostly that of a job that exists. */
function idOf({ ids, model }: Play, which: number): string {
  const existing = [...model.jobs.keys()];
  return existing.length > 0 && which > 1 ? existing[which % existing.length]! : ids[which % ids.length]!;
}

function optionsOf({ system }: Play, job: JobData): EnqueueOptions {
  const hours = (value: number | undefined) => (value === undefined ? undefined : value * HOUR);
  const { at, delay, expiresIn, uniqueFor, maxWait, ...others } = job;
  return {
    ...others,
    ...(at !== undefined && { at: system.moment(at * HOUR) }),
    delay: hours(delay),
    expiresIn: hours(expiresIn),
    uniqueFor: hours(uniqueFor),
    maxWait: hours(maxWait),
  };
}

function duplicate(error: unknown): DuplicateJobError {
  if (error instanceof DuplicateJobError) return error;
  throw error;
}

/** @returns outcome and state in words */
function compare(
  play: Play,
  job: JobData,
  payload: number,
  later: number,
  result: EnqueueResult | DuplicateJobError,
): string {
  const { model, system } = play;
  const id = job.id ?? result.id;
  play.noticeSweep(id, result.state);
  const known = model.jobs.get(id);
  const before = known?.state;
  const wish: Wish = {
    ...job,
    id,
    payload,
    mode: job.onDuplicate,
    onDeadKeep: job.onDead === 'keep',
    keepsDue: job.dueAt === 'keep',
    delay: (job.delay ?? 0) + later,
    at: job.at === undefined ? undefined : job.at + later,
    attempts: job.attempts ?? ATTEMPTS,
    keepExpired: job.keepExpired ?? false,
    group: job.group,
    priority: job.priority ?? 0,
  };
  const expected = model.enqueue(wish);
  if (!play.ids.includes(id)) play.ids.push(id);
  if (result instanceof DuplicateJobError) {
    play.same(`enqueue ${id}`, { outcome: 'rejected', state: result.state }, shortOf(expected));
    return `rejected (${result.state})`;
  }
  const { outcome, state } = result;
  play.same(`enqueue ${id}`, { id: result.id, outcome, state }, { id, ...shortOf(expected) });
  const due = system.since(result.dueAt);
  play.sameTime(`enqueue ${id}`, due, expected.due);
  if (expected.version) expected.version.exact = due;
  if (outcome === 'created' || outcome === 'replaced') play.promised.accepted(id, payload);
  if (outcome === 'created') return 'created';
  return `${outcome} (${before === 'quarantined' ? 'quarantined' : state})`;
}

function shortOf({ outcome, state }: EnqueueAnswer) {
  return { outcome, state };
}

function inState(outcome: string, state: string | undefined): string {
  return state === undefined || state === outcome ? '' : ` (${state})`;
}
