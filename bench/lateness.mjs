// How late handlers start at a steady rate with random due times: the handler's first line against the due time, by the
// wall clock that this process shares with a Redis on the same machine.
import { connect, newPrefix, PAYLOAD, percentile, removeAll, startApp } from './harness.mjs';

export async function lateness({ perSecond, seconds, concurrency = 100 }) {
  const prefix = newPrefix();
  const queue = 'bench.lateness';
  const redis = connect();
  const late = [];
  const { app, producer } = await startApp({
    queue,
    concurrency,
    prefix,
    handle(_, job) {
      late.push(Date.now() - job.dueAt.getTime());
    },
  });
  const total = perSecond * seconds;
  const jobs = Array.from({ length: total }, () => ({
    payload: PAYLOAD,
    delay: 1000 + Math.floor(Math.random() * seconds * 1000),
  }));
  for (let at = 0; at < total; at += 1000) await producer.enqueueMany(queue, jobs.slice(at, at + 1000));
  while (late.length < total) await new Promise((resolve) => setTimeout(resolve, 20));
  await app.close();
  await removeAll(redis, prefix);
  redis.disconnect();
  late.sort((a, b) => a - b);
  return { p50: percentile(late, 0.5), p99: percentile(late, 0.99), max: late.at(-1) };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const [perSecond = 200, seconds = 10] = process.argv.slice(2).map(Number);
  console.log(JSON.stringify(await lateness({ perSecond, seconds })));
}
