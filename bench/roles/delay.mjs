// A Redis that is so far away: tells the port of a proxy that delays each direction, and in the end what the proxy took.
import { openDelayProxy } from '../measure/delay-proxy.mjs';

export default async function delay({ url, delayMs }, channel) {
  const { hostname, port } = new URL(url);
  const proxy = await openDelayProxy({ host: hostname, port: Number(port || 6379), delayMs });
  const since = process.cpuUsage();
  channel.note(proxy.port);
  await channel.asked;
  const { user, system } = process.cpuUsage(since);
  await proxy.close();
  return { cpuMicroseconds: user + system };
}
