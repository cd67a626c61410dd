// The same as in throughput.mjs, with a Redis that is a millisecond away, as a managed one in the next zone is.
import { ALL, row, WITH_BARE } from './row.mjs';

const DELAY_MS = 1;
const WARM_UP = 5_000;
const AWAY = `Redis ${DELAY_MS} ms away each way`;

const drain = (concurrency, goal) => ({
  name: `network: drain, concurrency ${concurrency}`,
  file: 'drain',
  libraries: WITH_BARE,
  args: { jobs: 50_000, concurrency, warmUp: WARM_UP, delayMs: DELAY_MS },
  runs: 3,
  rows: [
    row(`drain of 50,000 jobs, one process, concurrency ${concurrency}, ${AWAY}`, 'jobs/s', 'perSecond', { goal }),
    row(`Node CPU per job in the drain, concurrency ${concurrency}, ${AWAY}`, 'us', 'cpuMicrosecondsPerJob'),
  ],
});

export const NETWORK = [
  {
    name: 'network: enqueue',
    file: 'enqueue',
    // Bare is a SET of the payload: what one connection and 100 callers that wait can do at all.
    libraries: WITH_BARE,
    args: { jobs: 50_000, callers: 100, warmUp: WARM_UP, delayMs: DELAY_MS },
    runs: 3,
    rows: [
      row(`enqueue, 100 callers in flight, ${AWAY}`, 'jobs/s', 'perSecond', { goal: { ofBare: 0.85, timesBee: 1.2 } }),
    ],
  },
  {
    name: 'network: enqueueMany',
    file: 'enqueue-many',
    libraries: ALL,
    args: { jobs: 100_000, chunk: 1_000, warmUp: WARM_UP, delayMs: DELAY_MS },
    runs: 3,
    rows: [row(`enqueueMany, 1,000 each, ${AWAY}`, 'jobs/s', 'perSecond')],
  },
  drain(100, { timesBullmq: 5 }),
  drain(500, { timesBullmq: 8 }),
];
