// A Sentinel as a child of a tether: free port, own folder, gone with the tether.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from './free-port.mjs';
import { serverOnPath } from './local-redis.mjs';
import { untilServing } from './server-info.mjs';

const HOST = '127.0.0.1';

/** Resolves with its port, when it serves. It wants one more of its kind before it replaces a master. */
export async function startSentinel(tether, { name, masterPort, downAfterMs, failoverTimeoutMs }, env = process.env) {
  const port = await freePort();
  const directory = join(tether.directory, `sentinel-${port}`);
  const file = join(directory, 'sentinel.conf'); // which the Sentinel writes its own state to
  mkdirSync(directory);
  const lines = [
    `port ${port}`,
    `bind ${HOST}`,
    `dir ${directory}`,
    `sentinel monitor ${name} ${HOST} ${masterPort} 2`,
    `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
    `sentinel failover-timeout ${name} ${failoverTimeoutMs}`,
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  await tether.spawn(serverOnPath(env), [file, '--sentinel'], {
    log: join(directory, 'sentinel.log'),
    stopSignal: 'SIGKILL',
  });
  await untilServing(port);
  return port;
}
