// How late, and what waiting costs.
import { ALL, count, OURS, row } from './row.mjs';

const TITLES = { p50: 'p50', p99: 'p99', p999: 'p99.9' };

const late = (name, part, most, label) =>
  row(`${name}, ${TITLES[part]}`, 'ms', part, { goal: { most }, ...(label && { chart: 'lateness', label }) });

const lateness = (perSecond, seconds, [p50, p99, p999]) => ({
  name: `lateness at ${perSecond} jobs/s`,
  file: 'lateness',
  libraries: ALL,
  args: { perSecond, seconds },
  quick: { perSecond, seconds: 3 },
  quickRuns: 1,
  peerRuns: 3,
  rows: [
    late(`lateness at ${count(perSecond)} jobs/s, random due times`, 'p50', p50),
    late(`lateness at ${count(perSecond)} jobs/s, random due times`, 'p99', p99, `${count(perSecond)} jobs/s`),
    late(`lateness at ${count(perSecond)} jobs/s, random due times`, 'p999', p999),
  ],
});

const idle = (queues, libraries, most) => ({
  name: queues === 50 ? 'idle' : `idle, ${count(queues)} queues`,
  file: 'idle',
  libraries,
  args: { queues, seconds: 30 },
  runs: 1,
  rows: [
    row(`idle process with ${count(queues)} queues: script calls`, '/s', 'scriptsPerSecond', { goal: { most: 20 } }),
    row(`idle process with ${count(queues)} queues: all commands`, '/s', 'commandsPerSecond', { goal: { most } }),
    row(`idle process with ${count(queues)} queues: connections`, '', 'connections', { goal: { most: 2 } }),
  ],
});

export const LATENESS = [
  lateness(200, 20, [0, 2, 5]),
  lateness(2_000, 10, [0, 2, 5]),
  {
    name: 'fleet',
    file: 'fleet',
    libraries: ALL,
    args: { processes: 20, perSecond: 200, seconds: 10 },
    quick: { processes: 20, perSecond: 200, seconds: 3 },
    runs: 3,
    quickRuns: 1,
    rows: [
      late('lateness with 20 processes at 200 jobs/s', 'p50', 1),
      late('lateness with 20 processes at 200 jobs/s', 'p99', 3, '20 processes'),
      late('lateness with 20 processes at 200 jobs/s', 'p999', 10),
      row('Redis commands per job with 20 processes at 200 jobs/s', 'calls', 'commandsPerJob', {
        goal: { most: 25 },
      }),
      row('script calls per job with 20 processes at 200 jobs/s', 'calls', 'scriptsPerJob'),
      row('Redis CPU per job with 20 processes at 200 jobs/s', 'us', 'redisMicrosecondsPerJob'),
    ],
  },
  idle(50, ALL, 50),
  idle(1_000, OURS, 100),
  {
    name: 'many queues',
    file: 'many-queues',
    libraries: OURS,
    args: { queues: 1_000, seconds: 60 },
    runs: 1,
    rows: [
      row('1,000 queues with a job each per minute, one process: commands per job', 'calls', 'commandsPerJob'),
      late('1,000 queues with a job each per minute, one process: lateness', 'p50', 1),
      late('1,000 queues with a job each per minute, one process: lateness', 'p99', 5),
    ],
  },
];
