// Ours on the servers that are at hand, a column each. Servers of other versions than the machine's own: test/servers/get.mjs.
import { SERVERS } from '../measure/servers.mjs';
import { OURS, row } from './row.mjs';

const WARM_UP = 20_000;

const on = (scenario) => ({ ...scenario, libraries: OURS, servers: Object.keys(SERVERS), runs: 3 });

export const BY_SERVER = [
  on({
    name: 'servers: enqueue',
    file: 'enqueue',
    args: { jobs: 100_000, callers: 100, warmUp: WARM_UP },
    rows: [
      row('enqueue, 100 callers in flight, by server', 'jobs/s', 'perSecond'),
      row('enqueue, 100 callers in flight, by server: CPU of Redis per job', 'us', 'redisMicrosecondsPerJob'),
    ],
  }),
  on({
    name: 'servers: drain',
    file: 'drain',
    args: { jobs: 100_000, concurrency: 100, warmUp: WARM_UP },
    rows: [
      row('drain, one process, concurrency 100, by server', 'jobs/s', 'perSecond'),
      row('drain, one process, concurrency 100, by server: CPU of Redis per job', 'us', 'redisMicrosecondsPerJob'),
    ],
  }),
  on({
    name: 'servers: memory',
    file: 'memory',
    args: { jobs: 100_000 },
    rows: [row('memory per pending job, 75-byte payload, by server', 'B', 'bytesPerJob')],
  }),
];
