// Three masters, one queue in twelve shards: what each node does, and what a job costs against a single node.
//
// PLACE FOR SHARDING. This needs two things, and is skipped (figures null) while one of them is missing:
// - `bench/cluster.mjs` exporting `startCluster(masters) -> { nodes: [{ host, port }], close() }`, for a private Cluster;
// - the module option `queues: { [name]: { shards: 12 } }`.
// Then: start it, fill and drain `jobs` through ours.startApp({ url: { cluster: nodes }, queues }) as drain.mjs does, read
// commandstats (scripts) and cpuMicroseconds() of each node before and after, and return
//   perSecond     jobs per second, all nodes together
//   perNode       [jobs per second of each node]: its share of the step calls' jobs
//   spread        busiest node divided by idlest
//   cpuUsPerJob   CPU of all nodes per job;  costAgainstOne: the same divided by that of a drain on `url`
export default async function cluster() {
  return { skipped: 'no Cluster helper (bench/cluster.mjs) and no sharded queues yet' };
}
