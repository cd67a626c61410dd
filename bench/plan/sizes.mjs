// What grows with what is stored or declared.
import { ALL, count, MINUTE_MS, OURS, row } from './row.mjs';

const PENDING = [100_000, 1_000_000, 10_000_000];
const LAST = PENDING.length - 1;

const atSize = (n, what, unit, figure) => ({
  name: ({ sizes }) => `${what} at ${count(sizes[n])} pending`,
  unit,
  pick: ({ bySize }) => bySize[n]?.[figure],
});

const growth = (what, figure) => ({
  name: ({ sizes }) => `${what}: Redis CPU at ${count(sizes[LAST])} pending against ${count(sizes[0])}`,
  unit: 'x',
  pick: ({ bySize }) => bySize[LAST] && bySize[LAST][figure] / bySize[0][figure],
  goal: { most: 3 },
});

export const SIZES = [
  {
    name: 'memory',
    file: 'memory',
    libraries: ALL,
    args: { jobs: 200_000 },
    quick: { jobs: 50_000 },
    runs: 3,
    quickRuns: 1,
    rows: [
      row('memory per pending job, 75-byte payload', 'B', 'bytesPerJob', {
        chart: 'memory',
        label: 'per pending job',
        goal: { most: 250, shareOfBullmq: 0.35 },
      }),
    ],
  },
  {
    name: 'pending',
    file: 'pending',
    libraries: ALL,
    args: { sizes: PENDING, probe: 50_000 },
    argsOfPeers: { sizes: PENDING.slice(0, 1), probe: 50_000 },
    runs: 1,
    timeoutMs: 60 * MINUTE_MS,
    needsMemory: 6e9,
    rows: [
      ...PENDING.flatMap((_, n) => [
        atSize(n, 'memory per job', 'B', 'bytesPerJob'),
        atSize(n, 'Redis CPU per enqueued job', 'us', 'enqueueUs'),
        atSize(n, 'Redis CPU per claimed and settled job', 'us', 'claimUs'),
      ]),
      growth('enqueue', 'enqueueUs'),
      growth('claim and settle', 'claimUs'),
    ],
  },
  {
    name: 'startup',
    file: 'startup',
    libraries: OURS,
    args: { handlers: 200 },
    rows: [
      row('start-up with 200 handlers: discovery', 'ms', 'discoveryMs', { goal: { most: 50 } }),
      row('start-up with 200 handlers: whole boot, connecting included', 'ms', 'bootMs'),
    ],
  },
  {
    name: 'cluster',
    file: 'cluster',
    libraries: OURS,
    args: { masters: 3, shards: 12, jobs: 200_000, concurrency: 500 },
    rows: [
      row('three-master Cluster, 12 shards: drain', 'jobs/s', 'perSecond'),
      {
        name: 'three-master Cluster, 12 shards: drain per node',
        unit: 'jobs/s',
        pick: ({ perSecond, perNode }) => perSecond / perNode.length,
      },
      row('three-master Cluster, 12 shards: busiest node against idlest', 'x', 'spread'),
      row('three-master Cluster, 12 shards: Redis CPU per job against a single node', 'x', 'costAgainstOne'),
    ],
  },
];
