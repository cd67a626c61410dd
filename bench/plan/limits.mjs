// Limits over all processes, and groups.
import { count, MINUTE_MS, OURS, row } from './row.mjs';

const WITH_LIMITS = ['ours', 'bullmq'];

const under = (name, limits, more) => ({
  name,
  file: 'limited',
  libraries: WITH_LIMITS,
  runs: 3,
  quickRuns: 1,
  ...more,
  args: { processes: 4, concurrency: 50, limits, ...more.args },
  quick: { processes: 4, concurrency: 50, limits, ...more.quick },
});

export const LIMITS = [
  under(
    'rate limit',
    { rate: { max: 500, perMs: 1_000 } },
    {
      args: { jobs: 10_000 },
      quick: { jobs: 3_000 },
      rows: [
        row('rate limit of 500 per 1 s, 4 processes: used', '%', 'usedPercent', { goal: { least: 95 } }),
        row('rate limit of 500 per 1 s, 4 processes: most handlers that began within 1 s', 'jobs', 'worst'),
      ],
    },
  ),
  under(
    'global concurrency',
    { running: 30 },
    {
      args: { jobs: 20_000, handlerMs: 20 },
      quick: { jobs: 5_000, handlerMs: 20 },
      rows: [
        row('global concurrency of 30, 4 processes, handlers of 20 ms: used', '%', 'usedPercent', {
          goal: { least: 95 },
        }),
        row('global concurrency of 30, 4 processes: most handlers at a time', 'jobs', 'worst', { goal: { most: 30 } }),
      ],
    },
  ),
  {
    name: 'quiet tenant',
    file: 'quiet-tenant',
    libraries: OURS,
    args: { backlog: 1_000_000, concurrency: 100, probes: 200, everyMs: 50 },
    runs: 3,
    timeoutMs: 20 * MINUTE_MS,
    rows: [
      row('lateness of a quiet tenant, alone, p50', 'ms', 'aloneP50'),
      row('lateness of a quiet tenant, alone, p99', 'ms', 'aloneP99'),
      row(({ backlog }) => `the same beside ${count(backlog)} due jobs of another tenant, p50`, 'ms', 'p50'),
      row(({ backlog }) => `the same beside ${count(backlog)} due jobs of another tenant, p99`, 'ms', 'p99'),
    ],
  },
  ...[1, 1_000, 100_000].map((groups) => ({
    name: `drain, ${count(groups)} ${groups === 1 ? 'group' : 'groups'}`,
    file: 'drain',
    libraries: OURS,
    args: { jobs: 200_000, concurrency: 100, warmUp: 50_000, groups },
    ...(groups === 100_000 && { quick: { jobs: 50_000, concurrency: 100, warmUp: 5_000, groups } }),
    rows: [
      row(
        `drain of jobs in ${count(groups)} ${groups === 1 ? 'group' : 'groups'}, concurrency 100`,
        'jobs/s',
        'perSecond',
      ),
      row(
        `the same, ${count(groups)} ${groups === 1 ? 'group' : 'groups'}: CPU of Redis per job`,
        'us',
        'redisMicrosecondsPerJob',
      ),
    ],
  })),
];
