// What applications do beside the plain case: large payloads, another codec, enhancers around each job, request scope.
import { ALL, count, OURS, row } from './row.mjs';

const KB = 1_000;

const payloads = (bytes, jobs) => {
  const size = `payloads of ${count(bytes / KB)} KB`;
  return [
    {
      name: `enqueue, ${size}`,
      file: 'enqueue',
      libraries: ALL,
      args: { jobs, callers: 100, warmUp: jobs / 10, bytes },
      runs: 3,
      rows: [row(`enqueue, 100 callers, ${size}`, 'jobs/s', 'perSecond')],
    },
    {
      name: `drain, ${size}`,
      file: 'drain',
      libraries: ALL,
      args: { jobs, concurrency: 100, warmUp: jobs / 10, bytes, chunk: Math.max(10, (100 * KB * KB) / bytes / 100) },
      runs: 3,
      rows: [row(`drain, concurrency 100, ${size}`, 'jobs/s', 'perSecond')],
    },
  ];
};

const kind = (variant, what) => ({
  name: `drain, ${what}`,
  file: 'drain',
  libraries: OURS,
  args: { jobs: 100_000, concurrency: 100, warmUp: 20_000, variant },
  runs: 3,
  rows: [
    row(`drain, concurrency 100, ${what}`, 'jobs/s', 'perSecond'),
    row(`drain, concurrency 100, ${what}: CPU of Node per job`, 'us', 'cpuMicrosecondsPerJob'),
  ],
});

export const KINDS = [
  ...payloads(10 * KB, 20_000),
  ...payloads(200 * KB, 2_000),
  kind('devalue', 'codec devalue'),
  kind('enhanced', 'a guard, a pipe and an interceptor'),
  kind('requestScope', 'a provider of request scope'),
];
