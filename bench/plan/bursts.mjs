// What a backlog that falls due at once does to the server and to its other clients.
import { count, MINUTE_MS, OURS, row } from './row.mjs';

const named =
  (what) =>
  ({ jobs }) =>
    `${count(jobs)} jobs due at one moment: ${what}`;

export const BURSTS = [
  {
    name: 'burst',
    file: 'burst',
    libraries: OURS,
    args: { jobs: 1_000_000, processes: 2, concurrency: 100, baselineMs: 10_000 },
    timeoutMs: 20 * MINUTE_MS,
    rows: [
      row(named('two workers'), 'jobs/s', 'perSecond', { goal: { least: 120_000 } }),
      row(named('worst script by SLOWLOG'), 'ms', 'worstScriptMs', { goal: { most: 5 } }),
      row('idle server before: worst of a steady script of about 1 ms', 'ms', 'idleWorstScriptMs'),
      row(named("another client's PING, p99"), 'ms', 'pingP99', { goal: { most: 5 } }),
      row("idle server before: another client's PING, p99", 'ms', 'idlePingP99'),
    ],
  },
];
