// The same as in throughput.mjs and lateness.mjs, where users' Redis is: half a millisecond or a millisecond away, as a managed one
// in this zone or the next is, and behind TLS.
import { ALL, row, WITH_BARE } from './row.mjs';

const WARM_UP = 5_000;
/** Beyond the round trip. */
const LATE_MS = 3;

/** `goals`: of the rows of a way, by their kind. */
const WAYS = [
  { name: '0.5 ms', where: 'Redis 0.5 ms away each way', args: { delayMs: 0.5 } },
  {
    name: '1 ms',
    where: 'Redis 1 ms away each way',
    args: { delayMs: 1 },
    goals: { enqueue: { ofBare: 0.85, timesBee: 1.2 }, 100: { timesBullmq: 5 }, 500: { timesBullmq: 8 } },
  },
  { name: 'TLS', where: 'over TLS', args: { tls: true } },
  { name: 'TLS, 1 ms', where: 'over TLS, Redis 1 ms away each way', args: { tls: true, delayMs: 1 } },
];

const rowsOfWay = ({ name: way, where, args, goals = {} }) => {
  const scenario = (name, file, libraries, more) => ({
    name: `network, ${way}: ${name}`,
    file,
    libraries,
    runs: 3,
    ...more,
    args: { ...more.args, ...args },
  });
  const drain = (concurrency) =>
    scenario(`drain, concurrency ${concurrency}`, 'drain', WITH_BARE, {
      args: { jobs: 50_000, concurrency, warmUp: WARM_UP },
      rows: [
        row(`drain of 50,000 jobs, one process, concurrency ${concurrency}, ${where}`, 'jobs/s', 'perSecond', {
          goal: goals[concurrency],
        }),
        row(`Node CPU per job in the drain, concurrency ${concurrency}, ${where}`, 'us', 'cpuMicrosecondsPerJob'),
      ],
    });
  const late = (part, title, goal) =>
    row(`lateness at 200 jobs/s, ${where}, ${title}`, 'ms', part, { ...(goal && { goal: { most: goal } }) });
  return [
    // Bare is a SET of the payload: what one connection and 100 callers that wait can do at all.
    scenario('enqueue', 'enqueue', WITH_BARE, {
      args: { jobs: 50_000, callers: 100, warmUp: WARM_UP },
      rows: [row(`enqueue, 100 callers in flight, ${where}`, 'jobs/s', 'perSecond', { goal: goals.enqueue })],
    }),
    scenario('enqueueMany', 'enqueue-many', ALL, {
      args: { jobs: 100_000, chunk: 1_000, warmUp: WARM_UP },
      rows: [row(`enqueueMany, 1,000 each, ${where}`, 'jobs/s', 'perSecond')],
    }),
    drain(100),
    drain(500),
    scenario('steady', 'steady', ALL, {
      args: { seconds: 20, callers: 100, concurrency: 100 },
      runs: 1,
      rows: [row(`enqueue while draining, one process, ${where}`, 'jobs/s', 'perSecond')],
    }),
    scenario('lateness', 'lateness', ALL, {
      args: { perSecond: 200, seconds: 10 },
      peerRuns: 1,
      rows: [late('p50', 'p50'), late('p99', 'p99', 2 * (args.delayMs ?? 0) + LATE_MS), late('p999', 'p99.9')],
    }),
  ];
};

/** What the proxy costs by itself: it must delay and not limit. */
const proxy = (ms) => ({
  name: `network, ${ms} ms: the proxy itself`,
  file: 'proxy',
  libraries: ['bare'],
  args: { ms, pings: 500, jobs: 200_000 },
  runs: 3,
  rows: [
    row(`the proxy of ${ms} ms each way: PING without it, p50`, 'ms', 'pingHereP50'),
    row(`the proxy of ${ms} ms each way: PING beyond the delay, p50`, 'ms', 'beyondP50'),
    row(`the proxy of ${ms} ms each way: PING beyond the delay, p99`, 'ms', 'beyondP99'),
    row(`the proxy of ${ms} ms each way: SETs in pipelines`, '/s', 'streamPerSecond'),
    row(`the proxy of ${ms} ms each way: SETs in pipelines, against none`, 'x', 'streamShare'),
    row(`the proxy of ${ms} ms each way: its CPU per SET`, 'us', 'cpuMicrosecondsPerSet'),
  ],
});

export const NETWORK = [proxy(0.5), proxy(1), ...WAYS.flatMap(rowsOfWay)];
