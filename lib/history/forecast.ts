import type { Timeline } from '../inspection/timeline.js';
import { MOST_BUCKETS } from '../inspection/timeline.js';
import { parseInstant } from '../job/duration.js';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import type { ShardCounts } from '../redis/counts.protocol.js';
import type { HistoryReader } from './history-reader.js';
import { MINUTE_MS } from './history.keys.js';
import { added, sum } from './minute-counts.js';
import type { MinuteCounts } from './minute-counts.js';
import { limitedRate } from './limited-rate.js';
import type { LimitedRate } from './limited-rate.js';
import { coarsest, predict, predictWindows } from './predict.js';
import type { Arrivals, Backlog } from './predict.js';

export interface ForecastOptions {
  /** How far it looks. Default: 24 hours ahead. */
  to?: Date | number;
  /** Jobs that all processes together start in a second when there is enough to do. Default: as measured. */
  rate?: number;
}

/** A time in which jobs start late, because more are due than can be started. */
export interface ForecastPeak {
  /** Due time of its first job. */
  from: Date;
  /** When its last job starts: from then on jobs start on time. */
  until: Date;
  jobs: number;
  /** How late its latest job starts, and when that is due. */
  latestMs: number;
  latestDueAt: Date;
}

export interface Forecast {
  /** When it was made, by the clock of Redis. */
  at: Date;
  /** Jobs per second; undefined when nothing was measured, and none was given: then there are no peaks. */
  rate: number | undefined;
  /**
   * `'measured'`: while there was more to do than could be started. `'slots'`: there was no such time in the last hour; from slots
   * and the duration of runs, which is the most that can be expected.
   */
  basis: 'given' | 'measured' | 'slots' | undefined;
  /** The limit of the queue that decides the rate, if one does: the processes would start more. */
  limit: LimitedRate['limit'];
  /** Live processes that work on the queue. */
  processes: number;
  /** Then the forecast is as if it were resumed now. */
  paused: boolean;
  /** Jobs that are due now. */
  due: number;
  /** When they will all have started; undefined without them or without a rate. */
  clearAt: Date | undefined;
  /** In which a job starts a second late, or later: at most 20, the first ones. */
  peaks: ForecastPeak[];
}

const RULES: OptionRules<ForecastOptions, { to?: number; rate?: number }> = {
  to: (draft, value, field) => {
    draft.to = parseInstant(value, field);
  },
  rate: (draft, value, field) => {
    if (typeof value !== 'number' || !(value > 0) || value === Infinity) {
      throw new InvalidOptionError(`${field}: must be a number of jobs per second, more than 0.`);
    }
    draft.rate = value;
  },
};

const LENGTH_MS = 24 * 3_600_000;
const LATE_MS = 1_000;
const MOST_PEAKS = 20;
/** Looks at single buckets of the timeline, besides the two that every forecast makes. */
const MOST_LOOKS = 16;
/** How far back a rate is looked for, and how much busy time of a process is enough to know it. */
const RATE_WITHIN_MS = 60 * MINUTE_MS;
const ENOUGH_BUSY_MS = 10_000;

/** Says what becomes of the jobs of one queue, from their due times and the rate at which its processes start jobs. */
export class Forecaster {
  constructor(
    private readonly reader: HistoryReader,
    private readonly queue: string,
  ) {}

  async forecast(options: ForecastOptions): Promise<Forecast> {
    const naming = (option: string) => `forecast("${this.queue}", { ${option} })`;
    const given = readOptions(options, RULES, {} as { to?: number; rate?: number }, naming);
    const shards = await this.reader.present(this.queue);
    const now = Math.max(...shards.map((counts) => counts.now));
    const to = given.to ?? now + LENGTH_MS;
    if (to <= now) throw new InvalidOptionError(`${naming('to')}: is not in the future.`);
    const minutes = (await this.reader.counts(this.queue, now - RATE_WITHIN_MS, now)).map(([, counts]) => counts);
    const { rate: ofProcesses, basis, processes } = await this.#rate(given.rate, minutes);
    const limited = ofProcesses === undefined ? undefined : await this.#limited(ofProcesses, minutes, shards[0]!);
    const rate = limited?.rate;
    const forecast: Forecast = {
      at: new Date(now),
      rate,
      basis,
      limit: limited?.limit,
      processes,
      paused: shards.some(({ paused }) => paused),
      due: sum(shards.map(({ due }) => due)),
      clearAt: undefined,
      peaks: [],
    };
    if (rate === undefined) return forecast;
    const arrivals = await this.#arrivals(now, to, rate / 1_000);
    const backlogs = limited?.window
      ? predictWindows(arrivals, now, ofProcesses! / 1_000, limited.window)
      : predict(arrivals, now, rate / 1_000);
    const [first] = backlogs;
    if (forecast.due > 0 && first) forecast.clearAt = new Date(first.until);
    forecast.peaks = backlogs
      .filter(({ latestMs }) => latestMs >= LATE_MS)
      .slice(0, MOST_PEAKS)
      .map(shown);
    return forecast;
  }

  /** What is due when, as finely as the rate asks for. */
  async #arrivals(now: number, to: number, perMs: number): Promise<Arrivals[]> {
    const ahead = await this.#look(now, to);
    const behind = ahead.firstDueAt && ahead.firstDueAt.getTime() < now ? ahead.firstDueAt.getTime() : now;
    const before = behind < now ? spansOf(await this.#look(behind, now)) : [];
    // In quarantine jobs have no due time.
    const others = Math.max(0, ahead.overdue - ahead.before);
    let spans = [...before, { from: now, to: now, jobs: others }, ...spansOf(ahead)];
    for (let n = 0; n < MOST_LOOKS; n++) {
      const coarse = coarsest(spans, perMs);
      if (!coarse) break;
      const finer = spansOf(await this.#look(coarse.from, coarse.to));
      spans = spans.flatMap((span) => (span === coarse ? finer : span));
    }
    return spans;
  }

  #look(from: number, to: number): Promise<Timeline> {
    return this.reader.timeline(this.queue, from, to, MOST_BUCKETS);
  }

  /** The limits of a queue hold over all processes, whatever these could start. */
  async #limited(rate: number, minutes: readonly MinuteCounts[], shard: ShardCounts): Promise<LimitedRate> {
    const limits = shard.limits ? await this.reader.limits(this.queue) : undefined;
    return limitedRate(rate, limits, added(minutes), shard);
  }

  async #rate(
    given: number | undefined,
    minutes: readonly MinuteCounts[],
  ): Promise<Pick<Forecast, 'rate' | 'basis' | 'processes'>> {
    const live = await this.reader.processes();
    const workers = live.flatMap(({ queues }) =>
      queues.filter(({ queue, slots }) => queue === this.queue && slots > 0),
    );
    const processes = workers.length;
    if (given !== undefined) return { rate: given, basis: 'given', processes };
    const measured = startsPerSecond(minutes, Math.max(1, processes));
    if (measured !== undefined && processes > 0) return { rate: measured * processes, basis: 'measured', processes };
    const { ran = 0, ranMs = 0 } = added(minutes);
    const slots = sum(workers.map((worker) => worker.slots));
    if (ran > 0 && ranMs > 0 && slots > 0) return { rate: (slots * 1_000 * ran) / ranMs, basis: 'slots', processes };
    return { rate: undefined, basis: undefined, processes };
  }
}

/**
 * Of one process while there was enough to do. The latest minutes come first, because processes and handlers may have changed since.
 * Beginnings and ends of backlogs are taken only where nothing else is known.
 */
function startsPerSecond(minutes: readonly MinuteCounts[], processes: number): number | undefined {
  for (const [msField, claimedField] of [
    ['busyMs', 'busyClaimed'],
    ['edgeMs', 'edgeClaimed'],
  ] as const) {
    let [ms, claimed] = [0, 0];
    for (const counts of minutes.toReversed()) {
      if (ms >= ENOUGH_BUSY_MS * processes) break;
      ms += counts[msField] ?? 0;
      claimed += counts[claimedField] ?? 0;
    }
    if (ms > 0) return (claimed * 1_000) / ms;
  }
  return undefined;
}

function spansOf({ from, to, widthMs, counts }: Timeline): Arrivals[] {
  return counts.flatMap((jobs, n) => {
    const start = from.getTime() + n * widthMs;
    return jobs === 0 ? [] : [{ from: start, to: Math.min(start + widthMs, to.getTime()), jobs }];
  });
}

function shown({ from, until, jobs, latestMs, latestDueAt }: Backlog): ForecastPeak {
  return {
    from: new Date(from),
    until: new Date(Math.ceil(until)),
    jobs,
    latestMs: Math.ceil(latestMs),
    latestDueAt: new Date(latestDueAt),
  };
}
