import { HEALTH_DEFAULTS } from '../../defaults.js';
import type { HistoryCounts } from '../../history/history-reader.js';
import { LATENESS_BOUNDS_MS } from '../../history/lateness.js';
import { serverTime } from '../../history/server-time.js';
import { sumCounts } from '../../inspection/queue-counts.js';
import { queueNameOf } from '../../job/queue-definition.js';
import { typedError } from '../../redis/redis.errors.js';
import type { LatenessCounts, LatenessResponse, ProcessesResponse } from '../api.js';
import type { Fields } from '../fields.js';
import type { InstanceView } from '../instance-view.js';

const HOUR_MS = 3_600_000;
/** The minutes of a day are 1,440 keys, and they change once a minute. */
const VALID_MS = 5_000;
const PROCESSES_VALID_MS = 2_000;

/** What all processes that keep history did with the jobs of a queue. */
export async function readLateness(view: InstanceView, query: Fields): Promise<LatenessResponse> {
  const queue = queueNameOf(query.text('queue'));
  const [from, to] = [query.number('from'), query.number('to')];
  query.end();
  const key = `lateness ${JSON.stringify([queue, from, to])}`;
  return view.shared.value(key, VALID_MS, () => lateness(view, queue, from, to));
}

async function lateness(
  view: InstanceView,
  queue: string,
  from: number | undefined,
  to: number | undefined,
): Promise<LatenessResponse> {
  const { minutes, total } = await view.history.minutes(queue, { from, to });
  const now = await nowOf(view);
  const until = to ?? now;
  return {
    from: from ?? until - HOUR_MS,
    to: until,
    minutes: minutes.map(({ at, ...counts }) => ({ at: at.getTime(), ...shown(counts) })),
    total: shown(total),
    boundsMs: [...LATENESS_BOUNDS_MS],
    degradedMs: HEALTH_DEFAULTS.lagDegradedMs,
    lagMs: sumCounts(await view.countsOf(queue)).lagMs,
  };
}

async function nowOf({ context }: InstanceView): Promise<number> {
  try {
    return await serverTime(context.connection);
  } catch (error) {
    throw typedError(error, 'the time of Redis');
  }
}

/** JSON knows no Infinity: `mostMs` is left out instead. */
function shown({ lateness: late, meanDurationMs, ...counts }: HistoryCounts): LatenessCounts {
  return {
    ...counts,
    ...(late && { lateness: { ...late, mostMs: Number.isFinite(late.mostMs) ? late.mostMs : undefined } }),
    ...(meanDurationMs !== undefined && { meanDurationMs }),
  };
}

export async function readProcesses(view: InstanceView, query: Fields): Promise<ProcessesResponse> {
  query.end();
  return view.shared.value('processes', PROCESSES_VALID_MS, async () => {
    const processes = await view.history.processes();
    return {
      processes: processes.map(({ startedAt, seenAt, ...process }) => ({
        ...process,
        startedAt: startedAt.getTime(),
        seenAt: seenAt.getTime(),
      })),
    };
  });
}
