import { LeaseLostError } from '../../lib/index.js';
import type { ClaimedJob, DelayedJob, QueueLimits } from '../../lib/index.js';
import type { Command } from './commands.js';
import type { Job } from './model.js';
import type { Acts, Play } from './play.js';
import { HOUR } from './system.js';
import type { LimitsData } from './turns.js';
import { LEASE, Worker } from './workers.js';
import type { HowToEnd, Run } from './workers.js';

export const WORKING: Pick<
  Acts,
  | 'pull'
  | 'pullQuarantined'
  | 'settle'
  | 'extend'
  | 'expireLease'
  | 'crash'
  | 'advance'
  | 'pause'
  | 'resume'
  | 'setLimits'
> = {
  async pull(play, command) {
    const process = play.processes[command.process % play.processes.length]!;
    const { workers } = process;
    const starts = command.worker === 'starts' || workers.length === 0;
    const worker = starts
      ? new Worker(play.model, process, play.newTag())
      : workers[(command.worker as number) % workers.length]!;
    play.lose(command, process.number);
    const { given, why } = await pull(play, worker, command.max, starts, command.lose !== undefined);
    return `pull → ${given.length > 0 ? `${given.length} jobs` : `none (${why})`}`;
  },

  /** A worker learns of the quarantine by the answer to its first look. */
  async pullQuarantined(play, { process: number, beside }) {
    const process = play.processes[number % play.processes.length]!;
    if (process.runs.length > 0) return undefined;
    const worker = new Worker(play.model, process, play.newTag());
    const first = await pull(play, worker, 1, true);
    if (first.given.length > 0) return 'pullQuarantined → a due job first';
    const { given } = await pull(play, worker, 3, false);
    if (given.length === 0) return `pullQuarantined → none`;
    if (given[0]!.isolatedAt === undefined) return 'pullQuarantined → a due job';
    if (beside) {
      const { given: more, why } = await pull(play, new Worker(play.model, process, play.newTag()), 1, true);
      play.tally.count(`pull → ${more.length > 0 ? `${more.length} jobs` : `none (${why})`}`);
    }
    return 'pullQuarantined → one of them';
  },

  async settle(play, command) {
    if (play.held.length === 0) return undefined;
    const n = command.run % play.held.length;
    const [{ run, job }] = play.held.splice(n, 1) as [Play['held'][number]];
    const how = endOf(command);
    play.lose(command, run.worker.process.number);
    const followed = play.model.jobs.get(run.id)?.next;
    const late = play.model.jobs.get(run.id)?.state === 'quarantined';
    const counted = await counts(() => tell(job, how));
    // It ended before its process had heard that it lost the lease, and nobody has taken the job: that counts.
    if (counted && run.lostByHeartbeat) run.lost = false;
    const stored = await play.system.stored();
    // The step that told it may take back, after it has settled: at most once a second, so only in a slow sequence.
    const swept = () => play.sweptAway(stored);
    play.same(`${how.how} of ${run.id}`, counted, run.worker.end(run, how, swept));
    if (!counted) return `${how.how} → leaseLost`;
    if (late) return `${how.how} → done, late`;
    const after = followed === undefined ? '' : followed === 'cancelled' ? ', cancelled' : ', replaced';
    const dead = play.model.jobs.get(run.id)?.state === 'dead' ? ' (dead)' : '';
    return `${how.how} → done${after}${dead}`;
  },

  async extend(play, command) {
    if (play.held.length === 0) return undefined;
    const { run, job } = play.held[command.run % play.held.length]!;
    play.lose(command, run.worker.process.number);
    const counted = await counts(() => job.extend(command.hours * HOUR));
    play.same(`extend of ${run.id}`, counted, run.worker.extend(run, command.hours));
    return `extend → ${counted ? 'done' : 'leaseLost'}`;
  },

  async expireLease(play, { run: which }) {
    const owned = play.held.filter(({ run }) => holds(play, run));
    if (owned.length === 0) return undefined;
    await expire(play, owned[which % owned.length]!.run);
    return 'expireLease';
  },

  /** Its leases run out, and a worker that starts elsewhere takes back what it held. What it then says comes too late. */
  async crash(play, { process: number, max }) {
    const process = play.processes[number % play.processes.length]!;
    const owned = process.runs.filter((run) => holds(play, run));
    if (owned.length === 0) return undefined;
    for (const run of owned) await expire(play, run);
    const other = play.processes[(process.number + 1) % play.processes.length]!;
    await pull(play, new Worker(play.model, other, play.newTag()), max, true);
    return `crash → of ${owned.length === 1 ? 'one job' : 'several jobs'}`;
  },

  async advance(play, { hours }) {
    // A step that came since the last look took back what was over before the time goes by.
    if (play.model.overdue.length > 0 && play.sweptAway(await play.system.stored())) play.model.takeBack();
    play.model.now += hours;
    await play.system.advance(
      hours * HOUR,
      play.held.map(({ job }) => job),
    );
    return 'advance';
  },

  async pause(play) {
    await play.system.inspector.pause(play.queue);
    play.model.paused = true;
    return 'pause';
  },

  async setLimits(play, { limits }) {
    await play.system.inspector.setLimits(play.queue, limits && limitsOf(limits));
    play.model.turns!.set(limits ?? {});
    return `setLimits → ${limits ? 'some' : 'none'}`;
  },

  async resume(play) {
    await play.system.inspector.resume(play.queue);
    play.model.paused = false;
    return 'resume';
  },
};

function limitsOf({ count, rate, groupCount, groupRate, blocks }: LimitsData): QueueLimits {
  const rateOf = (of: LimitsData['rate']) => of && { rateLimit: { max: of.max, per: of.per * HOUR } };
  const groups = {
    ...(groupCount !== undefined && { concurrency: groupCount }),
    ...rateOf(groupRate),
    ...(blocks && groupCount === 1 && { retries: 'block' as const }),
  };
  return { ...(count !== undefined && { globalConcurrency: count }), ...rateOf(rate), groups };
}

function holds({ model }: Play, run: Run): boolean {
  const job = model.jobs.get(run.id);
  return job?.state === 'running' && job.claim === run.claim;
}

async function expire(play: Play, run: Run): Promise<void> {
  await play.system.expireLease(run.id);
  play.model.leases.get(run.claim)!.deadline = play.model.now - 0.5;
}

async function counts(act: () => Promise<void>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    if (error instanceof LeaseLostError) return false;
    throw error;
  }
}

function endOf({ how, delay }: Extract<Command, { do: 'settle' }>): HowToEnd {
  if (how === 'fail') return { how, error: 'it failed' };
  if (how === 'discard') return { how, reason: 'nobody wants it' };
  if (how === 'retry' || how === 'snooze') return { how, delay };
  return { how };
}

function tell(job: ClaimedJob, end: HowToEnd): Promise<void> {
  switch (end.how) {
    case 'fail':
      return job.fail(new Error(end.error));
    case 'retry':
      return job.retry({ delay: end.delay * HOUR });
    case 'snooze':
      return job.snooze(end.delay * HOUR);
    case 'discard':
      return job.discard(end.reason);
    default:
      return job[end.how]();
  }
}

function startOf({ id, payload, attempt, maxAttempts, snoozes }: DelayedJob | Run) {
  return { id, payload, attempt, maxAttempts, snoozes };
}

async function pull(play: Play, worker: Worker, max: number, starts: boolean, mayBeReordered = false) {
  const { model, system } = play;
  const { process } = worker;
  const jobs = await system.consumers[process.number]!.pull(play.queue, {
    max,
    lease: LEASE * HOUR + worker.tag,
    autoExtend: false,
  });
  const stored = await system.stored();
  const took = ({ id, state }: Job) => !(state === 'quarantined' ? stored.quarantine : stored.due).has(id);
  const silent = (claim: number) => {
    const [job] = model.heldBy(claim);
    const token = model.leases.get(claim)!.token ?? stored.running.get(job?.id ?? '');
    // What was told of a claim that the same pull has taken back shows in whether the loss is charged.
    const isOver = job && !stored.leases.has(token!);
    return isOver ? stored.charged.get(job.id) !== job.charged : stored.leases.get(token!) !== false;
  };
  // Where the connection was lost, what another worker of the process says (that it goes on, alone) may come after this one's
  // step; and there is a second look, once it is there again.
  const swept = play.sweptAway(stored);
  if (mayBeReordered && swept) {
    for (const [claim, lease] of model.overdue) {
      if (stored.leases.has(lease.token!)) continue;
      if (!silent(claim)) model.mark(claim, false);
      model.takeBack((other) => other === claim);
    }
  }
  const knowsLoss = (run: Run) => play.held.some(({ run: other, job }) => other === run && job.job.signal.aborted);
  const tokenOf = ({ id }: Job) => stored.running.get(id);
  const witness = { took, silent, knowsLoss, tokenOf };
  const given = worker.pull(max, { swept: starts || swept, ...witness });
  if (mayBeReordered && given.length === 0 && jobs.length > 0)
    given.push(...worker.pull(max, { swept: false, ...witness }));
  // A claim whose answer was lost is read again, by id, and what it was due by is read from the job.
  // While a claim from the quarantine is on its way, another one of the same pull may bring what is due.
  if (mayBeReordered || model.turns || given.some(({ fromQuarantine }) => fromQuarantine)) {
    const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
    given.sort(byId);
    jobs.sort(byId);
  }
  play.same(
    'pull',
    jobs.map(({ job }) => startOf(job)),
    given.map(startOf),
  );
  for (const [n, run] of given.entries()) {
    const job = jobs[n]!;
    const dueAt = system.since(job.job.dueAt);
    const { version } = model.jobs.get(run.id)!;
    if (mayBeReordered && dueAt === version.exact) Object.assign(run, { due: version.due, exact: dueAt });
    play.same(`due time of ${run.id}`, dueAt, run.exact);
    play.promised.started(run.id, run.payload);
    play.held.push({ run, job });
  }
  const why = model.paused
    ? 'paused'
    : process.isolated(model.now).length > 0
      ? 'while one from the quarantine runs'
      : model.turns && model.due.length > 0
        ? 'at a limit'
        : 'nothing is due';
  return { given, why };
}
