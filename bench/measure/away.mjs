// The same server, so many ms away in each direction: a proxy in a process of its own stands before it.
import { start } from '../processes.mjs';

/** @returns {Promise<{ url: string, close(): Promise<{ cpuMicroseconds: number }> }>} `close` tells what the proxy took */
export async function openAway(url, delayMs) {
  const proxy = start('./roles/delay.mjs', { url, delayMs }, { timeoutMs: 3_600_000 });
  proxy.result.catch(() => {}); // Whoever does not close it kills it at the end.
  const port = await new Promise((resolve) => proxy.onNote(resolve));
  const there = new URL(url);
  there.hostname = '127.0.0.1';
  there.port = port;
  return {
    url: there.href,
    close() {
      proxy.ask();
      return proxy.result;
    },
  };
}
