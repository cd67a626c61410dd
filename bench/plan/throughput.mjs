// How many jobs a second.
import { ALL, count, megabytes, row, WITH_BARE } from './row.mjs';

const OF_BARE = 0.7;
/** Jobs of each library before the clock starts: a process lives for days, its first half second on cold code is not its speed. */
const WARM_UP = 50_000;
const QUICK_WARM_UP = 5_000;

const perSecond = (name, label, goal) => row(name, 'jobs/s', 'perSecond', { chart: 'throughput', label, goal });

/** What the time is made of: two processes that work at the same time, on two cores at best. */
const cpu = (what, most) => [
  row(`${what}: CPU of Node per job`, 'us', 'cpuMicrosecondsPerJob', { ...(most && { goal: { most } }) }),
  row(`${what}: CPU of Redis per job`, 'us', 'redisMicrosecondsPerJob'),
];

const drain = (concurrency, goal, redisUs) => ({
  name: `drain, concurrency ${concurrency}`,
  file: 'drain',
  libraries: WITH_BARE,
  args: { jobs: 200_000, concurrency, warmUp: WARM_UP },
  quick: { jobs: 50_000, concurrency, warmUp: QUICK_WARM_UP },
  rows: [
    perSecond(
      ({ jobs }) => `drain of ${count(jobs)} jobs due at one moment, one process, concurrency ${concurrency}`,
      `drain, concurrency ${concurrency}`,
      { ...goal, ofBare: OF_BARE },
    ),
    row(`Node CPU per job in the drain, empty handler, concurrency ${concurrency}`, 'us', 'cpuMicrosecondsPerJob', {
      goal: { most: 5 },
    }),
    row(`Redis CPU per job in the drain, concurrency ${concurrency}`, 'us', 'redisMicrosecondsPerJob', {
      ...(redisUs && { goal: { most: redisUs } }),
    }),
  ],
});

export const THROUGHPUT = [
  {
    name: 'enqueue',
    file: 'enqueue',
    libraries: ALL,
    args: { jobs: 100_000, callers: 100, warmUp: WARM_UP },
    quick: { jobs: 30_000, callers: 100, warmUp: QUICK_WARM_UP },
    rows: [
      perSecond('enqueue, 100 callers in flight', 'enqueue, 100 callers', { timesBullmq: 5 }),
      ...cpu('enqueue, 100 callers in flight'),
    ],
  },
  {
    name: 'enqueueMany',
    file: 'enqueue-many',
    libraries: ALL,
    args: { jobs: 200_000, chunk: 1_000, warmUp: WARM_UP },
    quick: { jobs: 30_000, chunk: 1_000, warmUp: QUICK_WARM_UP },
    rows: [
      perSecond('enqueueMany, 1,000 each', 'enqueueMany, 1,000 each', { timesBullmq: 8 }),
      ...cpu('enqueueMany, 1,000 each', 4),
    ],
  },
  drain(100, { timesBullmq: 10, timesBee: 6 }),
  drain(500, { timesBullmq: 10, timesBee: 6 }, 4.5),
  {
    name: 'steady',
    file: 'steady',
    libraries: ALL,
    args: { seconds: 60, callers: 100, concurrency: 100 },
    runs: 3,
    peerRuns: 1,
    rows: [
      perSecond('enqueue while draining, one process, steady state for a minute', 'enqueue while draining', {
        timesBullmq: 8,
      }),
      ...cpu('enqueue while draining'),
      megabytes('enqueue while draining: heap of Node, first third', 'heapFirst'),
      megabytes('enqueue while draining: heap of Node, last third', 'heapLast'),
      row('enqueue while draining: heap of Node, last third against the first', 'x', 'heapGrowth', {
        goal: { most: 1.2 },
      }),
      megabytes('enqueue while draining: used_memory of Redis, first third', 'redisFirst'),
      megabytes('enqueue while draining: used_memory of Redis, last third', 'redisLast'),
      row('enqueue while draining: used_memory of Redis, last third against the first', 'x', 'redisGrowth', {
        goal: { most: 1.2 },
      }),
    ],
  },
];
