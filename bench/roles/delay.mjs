// A Redis that is so far away: tells the port of a proxy that delays each direction.
import { openDelayProxy } from '../measure/delay-proxy.mjs';

export default async function delay({ url, delayMs }, channel) {
  const { hostname, port } = new URL(url);
  const proxy = await openDelayProxy({ host: hostname, port: Number(port || 6379), delayMs });
  channel.note(proxy.port);
  await channel.asked;
  await proxy.close();
}
