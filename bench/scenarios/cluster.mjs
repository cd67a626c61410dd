// One queue in twelve shards on three masters: what the nodes do together and each, and what a job costs them against one
// node without shards. All on one machine, so this is about balance and cost; more nodes bring no more cores.
//
// Skipped while there is no tools/redis-cluster.mjs with startClusterNodes(tether, count), which comes with sharded queues.
import { jobsOn, startCluster } from '../cluster.mjs';
import { handlerClass, startApp } from '../libraries/ours.mjs';
import { DelayQueueProducer } from '../../dist-modules/esm/index.js';
import { deferred } from '../measure/numbers.mjs';
import { cpuMicroseconds } from '../measure/redis.mjs';
import { payload } from '../payload.mjs';

const CHUNK = 5_000;

export default async function cluster({ url, space, queue, redis, masters, shards, jobs, concurrency }) {
  const started = await startCluster(masters);
  if (!started) return { skipped: 'no helper that starts a Cluster (tools/redis-cluster.mjs)' };
  try {
    const queues = { [queue]: { shards } };
    const common = { space, queue, jobs, concurrency };
    const sharded = await enqueueAndDrain({ ...common, url: started.connection, queues, nodes: started.nodes });
    const single = await enqueueAndDrain({ ...common, url, queues: {}, nodes: [redis] });
    return {
      perSecond: sharded.perSecond,
      perNode: sharded.perNode,
      spread: Math.max(...sharded.perNode) / Math.min(...sharded.perNode),
      cpuUsPerJob: sharded.cpuUsPerJob,
      costAgainstOne: sharded.cpuUsPerJob / single.cpuUsPerJob,
    };
  } finally {
    await started.close();
  }
}

async function enqueueAndDrain({ url, space, queue, queues, nodes, jobs, concurrency }) {
  const cpuBefore = await cpuOf(nodes);
  const filler = await startApp({ url, space, queues, consume: false, providers: [] });
  const producer = filler.get(DelayQueueProducer);
  for (let done = 0; done < jobs; done += CHUNK) {
    const n = Math.min(CHUNK, jobs - done);
    await producer.enqueueMany(
      queue,
      Array.from({ length: n }, (_, i) => ({ payload: payload(done + i) })),
    );
  }
  await filler.close();
  const stored = await Promise.all(nodes.map((node) => jobsOn(node, space)));
  const finished = deferred();
  let ran = 0;
  let since;
  const handle = () => {
    since ??= performance.now();
    if (++ran === jobs) finished.resolve(performance.now());
  };
  const providers = [handlerClass([queue], concurrency, handle)];
  const app = await startApp({ url, space, queues, consume: true, providers });
  const seconds = ((await finished.promise) - since) / 1000;
  await app.close();
  const left = await Promise.all(nodes.map((node) => jobsOn(node, space)));
  if (ran !== jobs || left.some((node) => node.jobs > 0)) throw new Error(`${ran} runs of ${jobs} jobs`);
  return {
    perSecond: jobs / seconds,
    perNode: stored.map((node) => node.jobs / seconds),
    cpuUsPerJob: ((await cpuOf(nodes)) - cpuBefore) / jobs,
  };
}

async function cpuOf(nodes) {
  const all = await Promise.all(nodes.map(cpuMicroseconds));
  return all.reduce((sum, each) => sum + each, 0);
}
