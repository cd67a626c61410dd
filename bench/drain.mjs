// Jobs due at one moment, drained by one process through Nest handlers.
import { DelayQueueInspector } from 'nestjs-delay-queue';
import { assertDrained, connect, newPrefix, PAYLOAD, removeAll, startApp } from './harness.mjs';

export async function drain({ jobs, concurrency }) {
  const prefix = newPrefix();
  const queue = 'bench.drain';
  const redis = connect();
  const { app: filler, producer } = await startApp({ queue, concurrency, prefix, consume: false, handle() {} });
  const since = performance.now();
  for (let done = 0; done < jobs; done += 5000) {
    await producer.enqueueMany(
      queue,
      Array.from({ length: Math.min(5000, jobs - done) }, (_, n) => ({ payload: { ...PAYLOAD, n } })),
    );
  }
  const filledAt = performance.now();
  await filler.close();
  let ran = 0;
  let started;
  const finished = Promise.withResolvers ? Promise.withResolvers() : deferred();
  const { app } = await startApp({
    queue,
    concurrency,
    prefix,
    handle() {
      started ??= performance.now();
      if (++ran === jobs) finished.resolve();
    },
  });
  await finished.promise;
  const seconds = (performance.now() - started) / 1000;
  const inspector = app.get(DelayQueueInspector);
  while ((await inspector.counts(queue)).running > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  await app.close();
  await assertDrained(redis, prefix, queue);
  await removeAll(redis, prefix);
  redis.disconnect();
  return {
    jobsPerSecond: Math.round(jobs / seconds),
    enqueuedPerSecond: Math.round((jobs / (filledAt - since)) * 1000),
  };
}

function deferred() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const [jobs = 100000, concurrency = 200] = process.argv.slice(2).map(Number);
  console.log(JSON.stringify(await drain({ jobs, concurrency })));
}
