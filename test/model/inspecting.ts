import type { ListedState } from '../../lib/index.js';
import type { Job, Model } from './model.js';
import type { Acts, Play } from './play.js';
import { compareJob } from './snapshot.js';
import { HOUR } from './system.js';

export const INSPECTING: Pick<Acts, 'inspect' | 'requeueDead' | 'removeDead' | 'purge'> = {
  async inspect(play, { page }) {
    const compare = () =>
      Promise.all([
        compareCounts(play),
        compareTotals(play),
        ...(['delayed', 'due', 'running', 'dead'] as const).map((state) => compareList(play, state, page)),
        ...play.ids.map((id) => compareJob(play, id)),
        play.system.problems().then((problems) => play.same('problems', problems, [])),
      ]);
    await play.looking(compare);
    return 'inspect';
  },

  async requeueDead(play, command) {
    const { model } = play;
    const { which, limit, delay, resetAttempts } = command;
    const ids = chosen(play, which);
    const reason = command.reason ? model.dead[0]?.reason : undefined;
    play.lose(command, 'producer');
    const options = { delay: delay * HOUR, resetAttempts, limit, reason };
    const answer = await play.system.inspector.requeueDead(play.queue, ids, options);
    if (answer.requeued + answer.remaining !== model.dead.length) model.takeBack(); // See `noticeSweep`: it made dead letters.
    const matching = deadOf(model, ids).filter((job) => reason === undefined || job.reason === reason);
    const moved = matching.slice(0, limit);
    for (const job of moved) model.requeue(job, delay, resetAttempts);
    play.same('requeueDead', answer, { requeued: moved.length, remaining: model.dead.length });
    return `requeueDead ${which === 'all' ? 'all' : 'ids'} → ${moved.length > 0 ? 'some' : 'none'}`;
  },

  async removeDead(play, command) {
    const { model } = play;
    const { which, limit } = command;
    const ids = chosen(play, which);
    play.lose(command, 'producer');
    const answer = await play.system.inspector.removeDead(play.queue, ids, { limit });
    if (answer.removed + answer.remaining !== model.dead.length) model.takeBack();
    const removed = deadOf(model, ids).slice(0, limit);
    for (const job of removed) {
      model.remove(job);
      play.promised.takenAway(job.id);
    }
    play.same('removeDead', answer, { removed: removed.length, remaining: model.dead.length });
    return `removeDead ${which === 'all' ? 'all' : 'ids'} → ${removed.length > 0 ? 'some' : 'none'}`;
  },

  async purge(play, { states }) {
    const { model } = play;
    const { removed } = await play.system.inspector.purge(play.queue, { states });
    const goes = () => [
      ...(states.includes('waiting') ? [...model.delayed, ...model.due, ...model.quarantined] : []),
      ...(states.includes('dead') ? model.dead : []),
    ];
    if (removed !== goes().length) model.takeBack();
    const gone = goes();
    for (const job of gone) {
      model.remove(job);
      play.promised.takenAway(job.id);
    }
    play.same('purge', removed, gone.length);
    return `purge ${states.join(' and ')} → ${removed > 0 ? 'some' : 'none'}`;
  },
};

/** Mostly dead letters. */
function chosen({ ids, model }: Play, which: number[] | 'all'): string[] | 'all' {
  if (which === 'all') return which;
  const dead = model.dead.map(({ id }) => id);
  const id = (n: number) => (dead.length > 0 && n > 3 ? dead[n % dead.length]! : ids[n % ids.length]!);
  return [...new Set(which.map(id))];
}

/** Dead letters in the order in which they are taken. */
function deadOf(model: Model, ids: string[] | 'all'): Job[] {
  if (ids === 'all') return model.dead;
  return ids.map((id) => model.jobs.get(id)).filter((job) => job?.state === 'dead') as Job[];
}

async function compareCounts({ system, model, queue, same }: Play): Promise<void> {
  const { lagMs, nextDueAt, limited, groups: _, ...counts } = await system.inspector.counts(queue);
  const { due, delayed, quarantined, running, dead, paused } = model;
  same('counts', counts, {
    delayed: delayed.length,
    due: due.length + quarantined.length,
    running: running.length,
    dead: dead.length,
    completed: 0, // kept ones: nothing here asks for that
    paused,
    publishingPaused: false,
    schedules: 0,
    schedulesLateMs: 0,
  });
  const { isLimited = limited } = model.turns ?? { isLimited: false };
  if ((limited ?? false) !== (isLimited ?? false))
    throw new Error(`counts: limited is ${limited}, the model says ${isLimited}`);
  const overdue = [due[0]?.exact, quarantined[0]?.since].filter((time) => time !== undefined);
  const oldest = overdue.length > 0 ? Math.min(...overdue) : undefined;
  same('nextDueAt', nextDueAt && system.since(nextDueAt), oldest ?? delayed[0]?.exact);
  const { now } = await system.stored();
  const age = oldest === undefined ? 0 : now - oldest;
  // Leases that nobody has recovered lag as well. A step of the model ends them by the hour or half of it, the store within a moment.
  const left = model.overdue.map(([, { deadline }]) => (model.now - deadline) * HOUR);
  const most = Math.max(age, ...left.map((ms) => ms + HOUR));
  // What waits for a limit is not late.
  const least = model.turns ? 0 : Math.max(0, age - HOUR / 4, ...left.map((ms) => ms - HOUR));
  if (lagMs < least || lagMs > most) throw new Error(`lagMs: the library says ${lagMs}, the model ${least} to ${most}`);
}

async function compareTotals({ system, model, queue, same }: Play): Promise<void> {
  const { since: _, ...totals } = await system.inspector.totals(queue);
  same('totals', totals, model.totals);
}

/** What the model knows of; it keeps no completed jobs. */
type ModelState = Exclude<ListedState, 'completed'>;

/** Page by page; all pages together are the whole list, in order. */
async function compareList({ system, model, queue, same }: Play, state: ModelState, limit: number): Promise<void> {
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await system.inspector.list(queue, state, { limit, cursor });
    found.push(...page.jobs.map(({ id }) => id));
    cursor = page.cursor;
  } while (cursor !== undefined && found.length <= model.jobs.size);
  const expected = state === 'due' ? [...model.due, ...model.quarantined] : model[state];
  const ids = state === 'running' ? byClaim(expected) : expected;
  same(
    `list of ${state}`,
    found,
    ids.map(({ id }) => id),
  );
}

function byClaim(jobs: readonly Job[]): Job[] {
  return [...jobs].sort((a, b) => a.claim! - b.claim! || (a.id < b.id ? -1 : 1));
}
