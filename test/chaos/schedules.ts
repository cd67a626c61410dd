import type { JobPast, Past, SchedulePast } from './past.js';
import type { Rule } from './rules.js';

export interface ScheduleViolation {
  readonly rule: Rule;
  readonly id?: string;
  readonly what: string;
}

/** Of one schedule: what is wrong once is wrong often. */
const MOST = 5;

/** What came of each time of the schedules of a run. @param dead ids of dead letters at the end */
export function judgeSchedules(past: Past, dead: ReadonlySet<string>): ScheduleViolation[] {
  return [...past.schedules.values()].flatMap((schedule) => [
    ...unaccounted(schedule, dead),
    ...alongside(schedule).slice(0, MOST),
  ]);
}

/** Whatever its policies are, each time has run, is a dead letter, or was counted. */
function unaccounted(schedule: SchedulePast, dead: ReadonlySet<string>): ScheduleViolation[] {
  const { id, first, everyMs, until, counts, occurrences } = schedule;
  const report = (what: string): ScheduleViolation[] => [{ rule: 'accounted', what: `schedule ${id} ${what}` }];
  if (first === undefined) return report('was made by nobody');
  if (!counts) return report('is gone, or nobody looked at it at the end');
  const times = Math.floor((until - first) / everyMs) + 1;
  const { made, missed, overlapped } = counts;
  if (made !== times) return report(`has ${times} times, and counts ${made}`);
  const ran = occurrences.filter((job) => dead.has(job.id) || job.claims.some(({ start }) => start)).length;
  if (ran + missed + overlapped === times) return [];
  return report(`has ${times} times: ${ran} ran, ${missed} were missed and ${overlapped} overlapped`);
}

/**
 * An occurrence that has begun is alive until its job is completed or dead, also between its runs. Only what has begun under a lease that
 * it certainly had counts: a process that lost it may begin at any moment.
 */
function alongside({ id, overlap, occurrences }: SchedulePast): ScheduleViolation[] {
  if (overlap === 'allow') return [];
  const lives = occurrences.flatMap((job) => lifeOf(job) ?? []).sort((a, b) => a.from - b.from);
  return lives.flatMap((life, n) => {
    const before = lives.slice(0, n).find(({ to }) => to > life.from);
    const what = before && `it began ${before.to - life.from} ms before ${before.job.id} of schedule ${id} had ended`;
    return what ? [{ rule: 'alongside', id: life.job.id, what }] : [];
  });
}

function lifeOf(job: JobPast): { job: JobPast; from: number; to: number } | undefined {
  const begun = job.claims.filter(({ start, until }) => start && start.at < until);
  if (begun.length === 0) return undefined;
  const ends = job.claims.flatMap(({ settles }) =>
    settles.flatMap(({ verb, lost, sent }) => (!lost && (verb === 'complete' || verb === 'dead') ? [sent] : [])),
  );
  return { job, from: Math.min(...begun.map(({ start }) => start!.at)), to: Math.min(...ends) };
}
