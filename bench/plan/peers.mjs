// Peers that keep their jobs on disk, or in order by groups, and ours beside them. What each of them promises stands in its adapter.
import { row } from './row.mjs';

const LIBRARIES = ['ours', 'groupmq', 'graphileWorker', 'pgBoss'];
/** groupmq runs on the Redis of the run: it has nothing to say of disks. */
const DISKS = { second: 'on disk within a second', all: 'on disk before it is answered' };

const on = (disk) => {
  const where = DISKS[disk];
  const drain = (concurrency) => ({
    name: `peers: drain, concurrency ${concurrency}, ${where}`,
    file: 'drain',
    libraries: LIBRARIES,
    args: { jobs: 50_000, concurrency, warmUp: 5_000, disk },
    runs: 3,
    rows: [row(`drain, one process, concurrency ${concurrency}, ${where}`, 'jobs/s', 'perSecond')],
  });
  return [
    {
      name: `peers: enqueue, ${where}`,
      file: 'enqueue',
      libraries: LIBRARIES,
      args: { jobs: 30_000, callers: 100, warmUp: 3_000, disk },
      runs: 3,
      rows: [row(`enqueue, 100 callers, ${where}`, 'jobs/s', 'perSecond')],
    },
    {
      name: `peers: enqueueMany, ${where}`,
      file: 'enqueue-many',
      libraries: LIBRARIES,
      args: { jobs: 100_000, chunk: 1_000, warmUp: 10_000, disk },
      runs: 3,
      rows: [
        row(`enqueueMany, 1,000 each, ${where}`, 'jobs/s', 'perSecond'),
        row(`enqueueMany, 1,000 each, ${where}: CPU of Node per job`, 'us', 'cpuMicrosecondsPerJob'),
      ],
    },
    drain(100),
    drain(500),
  ];
};

export const PEERS = [...on('second'), ...on('all')];
