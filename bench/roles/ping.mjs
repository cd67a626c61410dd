// Another client of the same server: sends PING after PING, one in flight, until asked; tells how long they took.
import { setTimeout as sleep } from 'node:timers/promises';
import { ascending, percentile } from '../measure/numbers.mjs';
import { connect } from '../measure/redis.mjs';

const PAUSE_MS = 2;

export default async function ping({ url }, channel) {
  const redis = connect(url);
  await redis.ping();
  channel.ready();
  const took = [];
  let asked = false;
  void channel.asked.then(() => (asked = true));
  while (!asked) {
    const since = performance.now();
    await redis.ping();
    took.push(performance.now() - since);
    await sleep(PAUSE_MS);
  }
  redis.disconnect();
  const sorted = ascending(took);
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), max: sorted.at(-1), pings: sorted.length };
}
