// What the proxy of the rows "away" adds by itself: to a round trip beyond the delay it is there for, and to a stream of commands.
import { Redis } from 'ioredis';
import { openAway } from '../measure/away.mjs';
import { ascending, percentile } from '../measure/numbers.mjs';
import { connectionOptions } from '../measure/redis.mjs';
import { payload } from '../payload.mjs';

const PIPELINE = 500;
/** More than a round trip holds, so that the stream never waits for an answer. */
const AT_A_TIME = 8;

export default async function proxy({ place, ms, pings, jobs }) {
  const here = await measured(place, pings, jobs);
  const away = await openAway(place.url, ms);
  const there = await measured({ ...place, url: away.url }, pings, jobs);
  const { cpuMicroseconds } = await away.close();
  return {
    pingHereP50: here.p50,
    pingP50: there.p50,
    beyondP50: there.p50 - 2 * ms,
    beyondP99: there.p99 - 2 * ms,
    streamPerSecond: there.perSecond,
    streamShare: there.perSecond / here.perSecond,
    cpuMicrosecondsPerSet: cpuMicroseconds / jobs,
  };
}

async function measured({ url, space }, pings, jobs) {
  const redis = new Redis(connectionOptions(url));
  for (let n = 0; n < 50; n++) await redis.ping();
  const took = [];
  for (let n = 0; n < pings; n++) {
    const since = performance.now();
    await redis.ping();
    took.push(performance.now() - since);
  }
  const sorted = ascending(took);
  const perSecond = await stream(redis, space, jobs);
  redis.disconnect();
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), perSecond };
}

/** SETs of the payload, in pipelines. @returns how many a second */
async function stream(redis, space, jobs) {
  const since = performance.now();
  let next = 0;
  const caller = async () => {
    while (next < jobs) {
      const pipeline = redis.pipeline();
      for (let n = 0; n < PIPELINE && next < jobs; n++)
        pipeline.set(`${space}:set:${n}`, JSON.stringify(payload(next++)));
      await pipeline.exec();
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, caller));
  return (jobs / (performance.now() - since)) * 1000;
}
