// Asks a Redis for its INFO over a bare socket: this runs before the dependencies are there.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const ANSWER_MS = 1_000;
const RETRY_MS = 20;

/** Resolves with `{ version, pid }` of the server at this address; rejects when it does not serve (yet). */
export function serverInfo(port, host = '127.0.0.1') {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect({ port, host, timeout: ANSWER_MS }, () => socket.write('INFO server\r\n'));
    const fail = (error) => {
      socket.destroy();
      reject(error ?? new Error(`no answer from ${host}:${port}`));
    };
    socket.on('error', fail);
    socket.on('timeout', () => fail());
    socket.on('close', () => fail());
    socket.setEncoding('utf8').on('data', (text) => {
      answer += text;
      // A server that wants a password is up, and says no more than that.
      if (answer.startsWith('-NOAUTH')) resolve({});
      else if (answer.startsWith('-')) fail(new Error(answer.trim()));
      else if (!/process_id:\d+\r\n/.test(answer)) return;
      else
        resolve({
          version: field(answer, 'valkey_version') ?? field(answer, 'redis_version'),
          pid: Number(field(answer, 'process_id')),
        });
      socket.destroy();
    });
  });
}

/** The same, patiently: a server that starts refuses connections, then loads its data. */
export async function untilServing(port, { host, timeoutMs = 30_000, given = () => true } = {}) {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await serverInfo(port, host);
    } catch (error) {
      if (!given() || Date.now() > deadline) throw error;
      await sleep(RETRY_MS);
    }
  }
}

function field(info, name) {
  return new RegExp(`^${name}:(.*)\r$`, 'm').exec(info)?.[1];
}
