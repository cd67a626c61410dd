// How late, and what waiting costs.
import { ALL, count, row } from './row.mjs';

const late = (name, part, most, label) =>
  row(`${name}, ${part}`, 'ms', part, { goal: { most }, ...(label && { chart: 'lateness', label }) });

const lateness = (perSecond) => ({
  name: `lateness at ${perSecond} jobs/s`,
  file: 'lateness',
  libraries: ALL,
  args: { perSecond, seconds: 10 },
  quick: { perSecond, seconds: 3 },
  quickRuns: 1,
  peerRuns: 3,
  rows: [
    late(`lateness at ${count(perSecond)} jobs/s, random due times`, 'p50', 1),
    late(`lateness at ${count(perSecond)} jobs/s, random due times`, 'p99', 5, `${count(perSecond)} jobs/s`),
  ],
});

export const LATENESS = [
  lateness(200),
  lateness(2_000),
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
      late('lateness with 20 processes at 200 jobs/s', 'p99', 10, '20 processes'),
      row('Redis commands per job with 20 processes at 200 jobs/s', 'calls', 'commandsPerJob', {
        goal: { shareOfBullmq: 0.5 },
      }),
      row('script calls per job with 20 processes at 200 jobs/s', 'calls', 'scriptsPerJob'),
    ],
  },
  {
    name: 'idle',
    file: 'idle',
    libraries: ALL,
    args: { queues: 50, seconds: 30 },
    runs: 1,
    rows: [
      row('idle process with 50 queues: script calls', '/s', 'scriptsPerSecond', { goal: { most: 20 } }),
      row('idle process with 50 queues: all commands', '/s', 'commandsPerSecond'),
      row('idle process with 50 queues: connections', '', 'connections', { goal: { most: 2 } }),
    ],
  },
];
