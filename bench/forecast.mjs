// node bench/forecast.mjs: is the forecast right? Two processes work off a first load, whose rate the history measures. Then a burst
// is enqueued for one moment ahead, the forecast is asked, and what it said is compared with what happens.
//
//   --jobs 200000   --handler 50 (ms)   --concurrency 100   --processes 2   --spread 0 (ms over which the burst is due)
//
// Uses REDIS_URL, else starts a Redis of its own. Ends with exit code 1 when the lateness was foretold with an error of over 15 %.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DelayQueueInspector, DelayQueueProducer } from '../dist-modules/esm/index.js';
import { DelayQueueHistory, DelayQueueHistoryModule } from '../dist-modules/esm/history/index.js';
import { findRedis, START_ORDER } from '../tools/find-redis.mjs';
import { Tether } from '../tools/tether.mjs';
import { startApp } from './libraries/ours.mjs';
import { endAll, start } from './processes.mjs';

const MOST_ERROR = 0.15;
const AT_ONCE = 20_000;
const number = (standard) => ({ type: 'string', default: String(standard) });
const { values } = parseArgs({
  options: {
    jobs: number(200_000),
    handler: number(50),
    concurrency: number(100),
    processes: number(2),
    spread: number(0),
  },
});
const [jobs, handlerMs, concurrency, processes, spread] = Object.values({
  jobs: values.jobs,
  handler: values.handler,
  concurrency: values.concurrency,
  processes: values.processes,
  spread: values.spread,
}).map(Number);
const queue = 'forecast';
const space = `forecast-${process.pid}`;
const seconds = (ms) => `${(ms / 1_000).toFixed(1)} s`;

const tether = await Tether.open();
const { url, description } = await findRedis({ tether, order: START_ORDER });
try {
  const app = await startApp({ url, space, imports: [DelayQueueHistoryModule], consume: false, providers: [] });
  const [producer, inspector, history] = [DelayQueueProducer, DelayQueueInspector, DelayQueueHistory].map((token) =>
    app.get(token),
  );
  const args = { url, space, queue, concurrency, handlerMs };
  const timeoutMs = 3_600_000;
  const workers = Array.from({ length: processes }, () => start('./roles/forecast-worker.mjs', args, { timeoutMs }));
  await Promise.all(workers.map(({ ready }) => ready));

  const enqueue = async (count, item) => {
    for (let done = 0; done < count; done += AT_ONCE) {
      await producer.enqueueMany(
        queue,
        Array.from({ length: Math.min(AT_ONCE, count - done) }, (_, n) => item(done + n)),
      );
    }
  };
  const drained = async () => {
    for (;;) {
      const { delayed, due, running } = await inspector.counts(queue);
      if (delayed + due + running === 0) return;
      await sleep(500);
    }
  };
  // As long as it takes for some seconds of work, whatever the machine can do.
  await enqueue(Math.ceil(jobs / 10), () => ({ payload: { burst: false } }));
  await drained();
  console.log(`${description}; ${processes} processes, ${concurrency} slots each, handlers of ${handlerMs} ms.`);
  console.log('The first load is done; its last minute is written within 65 seconds.');
  for (let rate; rate === undefined || rate.basis !== 'measured';) {
    await sleep(5_000);
    rate = await history.forecast(queue);
  }
  await sleep(10_000); // The other process may write a little later.

  const at = Date.now() + 30_000 + jobs / 5;
  await enqueue(jobs, (n) => ({ payload: { burst: true }, at: at + Math.floor((spread * n) / jobs) }));
  const forecast = await history.forecast(queue);
  const [peak] = forecast.peaks;
  if (!peak) throw new Error(`no peak was foretold: ${JSON.stringify(forecast)}`);
  console.log(
    `Foretold ${seconds(at - forecast.at.getTime())} ahead: ${peak.jobs} jobs at ${forecast.rate.toFixed(0)} a second ` +
      `(${forecast.basis}), the latest ${seconds(peak.latestMs)} late, over after ${seconds(peak.until.getTime() - at)}.`,
  );
  await drained();
  // The same method on the load that it foretold: without what a machine with other work gave to the one and not to the other.
  await sleep(70_000);
  const { rate: measured } = await history.forecast(queue);
  for (const worker of workers) worker.ask();
  const results = await Promise.all(workers.map(({ result }) => result));
  const latestMs = Math.max(...results.map((result) => result.latestMs));
  const tookMs = Math.max(...results.map((result) => result.lastAt)) - at;
  const error = peak.latestMs / latestMs - 1;
  console.log(
    `Happened: the latest ${seconds(latestMs)} late, over after ${seconds(tookMs)}: ${((jobs * 1_000) / tookMs).toFixed(0)} a second. ` +
      `Error of the lateness: ${(error * 100).toFixed(1)} %.`,
  );
  const really = (jobs * 1_000) / (latestMs + spread);
  console.log(
    `The rate of the burst was ${really.toFixed(0)} a second, and measured as ${measured.toFixed(0)}: ${((measured / really - 1) * 100).toFixed(1)} %.`,
  );
  await app.close();
  if (Math.abs(error) > MOST_ERROR) process.exitCode = 1;
} finally {
  await endAll();
  await tether.close();
}
