// One queue and more and more worker processes: a job should not cost more because many look for it.
import { OURS, row } from './row.mjs';

const MOST = 1.3;
const COUNTS = [1, 2, 4, 8, 16];

const at = (processes) => (processes === 1 ? '1 worker process' : `${processes} worker processes`);

export const WORKERS = COUNTS.map((processes) => ({
  name: `workers, ${processes}`,
  file: 'workers',
  libraries: OURS,
  args: { jobs: 200_000, processes, concurrency: 100 },
  runs: 3,
  rows: [
    row(`drain by ${at(processes)}`, 'jobs/s', 'perSecond'),
    row(`drain by ${at(processes)}: CPU of Node per job`, 'us', 'cpuMicrosecondsPerJob'),
    row(`drain by ${at(processes)}: CPU of Redis per job`, 'us', 'redisMicrosecondsPerJob'),
    ...(processes === 1
      ? []
      : [
          row(
            `drain by ${at(processes)}: CPU of all per job, against one process of the same run`,
            'x',
            'costAgainstOne',
            {
              goal: { most: MOST },
            },
          ),
        ]),
  ],
}));
